"""Where things stand: nothing lies over what one reads or writes, and one line is one line."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.protocol.turns import TurnEnd
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks, becomes
from tests.browser.support.network import Room
from tests.browser.support.worker import worker

IN_ONE_LINE = """(table) => [...table.querySelectorAll("tbody td:nth-child(-n+2) > *")].map(
  (it) => it.offsetHeight < 2 * parseFloat(getComputedStyle(it).lineHeight))"""
INSIDE_MAIN = """(it) => it.getBoundingClientRect().right
  <= document.querySelector("main").getBoundingClientRect().right"""
ABOVE_COMPOSER = """(it) => it.getBoundingClientRect().bottom
  < document.querySelector(".foot").getBoundingClientRect().top"""


async def with_agents(desks: Desks, room: Room, *agents: str, narrow: bool = False) -> Desk:
    for agent in agents:
        await room.enters(agent)
    desk = await (desks.sit(room.page, size=NARROW) if narrow else desks.sit(room.page))
    await desk.join_as("ann")
    return desk


async def test_the_cards_of_the_first_page_make_room_for_the_panel(
    desks: Desks, room: Room
) -> None:
    desk = await with_agents(desks, room, "concierge", "librarian", "calculator")
    await desk.page.set_viewport_size({"width": 1440, "height": 900})
    await desk.person("librarian").click()
    await expect(desk.details).to_be_visible()
    cards = desk.main.get_by_role("list", name="Agents").get_by_role("button")
    await expect(cards).to_have_count(3)
    for card in await cards.all():
        await becomes(card, INSIDE_MAIN)


async def test_a_telephone_shows_whom_one_may_talk_to_below_the_threads(
    desks: Desks, room: Room
) -> None:
    desk = await with_agents(desks, room, "concierge", narrow=True)
    await expect(desk.threads).to_be_in_viewport()
    await audit(desk.page)
    await desk.main.get_by_role("button", name="concierge").click()
    await expect(desk.composer).to_have_attribute("aria-label", "Message concierge")
    await expect(desk.threads).to_be_hidden()


async def test_ids_and_times_of_turns_stand_in_one_line(desks: Desks, room: Room) -> None:
    name = "an-agent-with-quite-a-long-name-as-teams-give-them"
    async with worker(room, name) as clerk:
        desk = await desks.sit(room.page, size={"width": 1440, "height": 900})
        await desk.join_as("ann")
        await desk.talk_to(name)
        await desk.says("tidy up")
        await clerk.begins()
        end = TurnEnd(id=clerk.turn, outcome="finished", reason="said what there was to say " * 9)
        await clerk.client.call("end_turn", end=end)
        await desk.visit("turns", opened=("participant", name))
        await expect(desk.main.get_by_text("said what there was")).to_be_visible()
        assert await desk.main.get_by_role("table").evaluate(IN_ONE_LINE) == [True, True]
        await desks.leave()


async def test_what_has_just_happened_is_not_told_over_what_one_writes(
    desks: Desks, room: Room
) -> None:
    desk = await with_agents(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("/stops nothing")
    await desk.page.evaluate("location.hash = '#/message/m999'")
    toast = desk.page.locator(".toast")
    await expect(toast).to_be_visible()
    await desk.visit("thread", "channel.general")
    await expect(desk.composer).to_be_visible()
    await becomes(toast, ABOVE_COMPOSER)


async def test_the_row_of_what_one_looks_at_is_marked_and_no_other(
    desks: Desks, room: Room
) -> None:
    async with worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        await clerk.asks()
        await desk.threads.get_by_role("link", name="Approvals").click()
        current = desk.threads.locator("[aria-current=page]")
        await expect(current).to_have_count(1)
        await expect(current).to_contain_text("Approvals")
        await desks.leave()


async def test_a_thread_is_found_by_the_name_that_agents_are_shown(
    desks: Desks, room: Room
) -> None:
    desk = await with_agents(desks, room)
    await desk.visit("thread", "channel_general")
    await expect(desk.composer).to_have_attribute("aria-label", "Message #general")
    assert desk.page.url.endswith("#/thread/channel.general")


async def test_a_thread_and_the_replies_in_it_are_told_apart_where_costs_are(
    desks: Desks, room: Room
) -> None:
    ann = await room.join("ann")
    async with worker(room, "clerk") as clerk:
        await clerk.client.call("join_channel", channel="general")
        await ann.posts("general", "@clerk tidy up")
        first = (await clerk.begins()).removeprefix("clerk-")
        await clerk.ends()
        await ann.client.call("reply", message_id=first, text="@clerk and the cellar")
        await clerk.begins()
        await clerk.ends()
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.person("clerk").click()
        costs = desk.details.get_by_role("region", name="What it costs")
        links = costs.get_by_role("link")
        await expect(links).to_have_count(2)
        assert sorted(await links.all_inner_texts()) == ["#general", f"#general › {first}"]
        await desks.leave()
