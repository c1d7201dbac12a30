"""The left column: threads in groups, with what is new in them."""

from __future__ import annotations

import re

from playwright.async_api import Locator, expect

from hubbub.client import Client, WebSocketTransport
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Networks, Room

AGENT = "scout"


def badge(row: Locator, words: str) -> Locator:
    """A count at a thread, by what it says to screen readers."""
    return row.locator(".badge").filter(has_text=words)


def group(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("region", name=name, exact=True)


async def stand(desk: Desk, name: str, *threads: str) -> None:
    """Waits until these are the threads of a group, from top to bottom."""
    found = group(desk, name).locator("[data-thread]")
    await expect(found).to_have_count(len(threads))
    for n, thread in enumerate(threads):
        await expect(found.nth(n)).to_have_attribute("data-thread", thread)


async def joined(desks: Desks, network: Network | Room, name: str = "ann") -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as(name)
    return desk


async def test_channels_and_everyone_are_there_before_anything_was_said(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    await expect(desk.thread("channel.general")).to_be_visible()
    await expect(desk.thread("broadcast")).to_have_text("Everyone")


async def test_a_direct_message_counts_as_unread_until_its_thread_is_opened(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    await bob.tells("ann", "one")
    await bob.tells("ann", "two")
    row = desk.thread("dm.ann.bob")
    await expect(badge(row, "2 unread")).to_be_visible()
    await row.click()
    await desk.sees("two")
    await expect(row.locator(".badge")).to_have_count(0)
    await expect(row).to_have_attribute("aria-current", "page")


async def test_mentions_are_counted_apart_from_what_is_unread(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    await bob.posts("general", "something for everybody")
    await bob.posts("general", "@ann something for you")
    row = desk.thread("channel.general")
    await expect(badge(row, "2 unread")).to_be_visible()
    await expect(badge(row, "1 mention")).to_be_visible()
    inbox = desk.page.get_by_role("link", name="Inbox")
    await expect(badge(inbox, "1 mention")).to_be_visible()


async def test_channels_stand_by_name_and_direct_threads_by_activity(
    desks: Desks, networks: Networks
) -> None:
    network = await networks.start({"channels": {"zoo": {}, "art": {}, "mid": {}}})
    desk = await joined(desks, network)
    for name in ("bob", "cyd", "bob"):
        await (await network.join(name)).tells("ann", f"from {name}")
        await expect(group(desk, "Direct").locator("[data-thread]").first).to_have_attribute(
            "data-thread", f"dm.ann.{name}"
        )
    await stand(desk, "Direct", "dm.ann.bob", "dm.ann.cyd")
    await stand(desk, "Channels", "channel.art", "channel.mid", "channel.zoo")


async def test_new_replies_hang_under_the_thread_of_the_message_they_reply_to(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    said = await bob.client.call("post_to_channel", channel="general", text="Shall we start?")
    assert isinstance(said, dict)
    await bob.client.call("reply", message_id=said["id"], text="I would.")
    replies = desk.thread(f"channel.general.t{said['seq']}")
    await expect(badge(replies, "1 unread")).to_be_visible()
    await expect(replies).to_contain_text("Shall we start?")
    under = 'li:has(> [data-thread="channel.general"]) > ul [data-thread]'
    await expect(desk.page.locator(under)).to_have_count(1)


async def test_replies_that_are_read_can_be_folded_away(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    said = await bob.client.call("post_to_channel", channel="general", text="Shall we start?")
    assert isinstance(said, dict)
    await bob.client.call("reply", message_id=said["id"], text="I would.")
    replies = desk.thread(f"channel.general.t{said['seq']}")
    await desk.thread("channel.general").hover()
    await desk.page.get_by_role("button", name="What to do with #general").click()
    await desk.page.get_by_role("menuitem", name="Hide replies that are read").click()
    await expect(replies).to_be_visible()  # it is not read
    await replies.click()
    await desk.sees("I would.")
    await expect(replies.locator(".badge")).to_have_count(0)
    await desk.thread("channel.general").click()
    await expect(replies).to_have_count(0)
    await desk.thread("channel.general").hover()
    await desk.page.get_by_role("button", name="What to do with #general").click()
    await desk.page.get_by_role("menuitem", name="Show its replies").click()
    await expect(replies).to_be_visible()


async def test_a_tab_of_somebody_else_stays_when_one_leaves(desks: Desks, room: Room) -> None:
    ann = await joined(desks, room)
    bob = await ann.another_tab(room.page)
    await bob.is_joined()
    await bob.page.get_by_role("button", name="ann: settings, help, leave").click()
    await bob.page.get_by_role("menuitem", name="Leave the network").click()
    await ann.join_as("ann")
    await bob.join_as("bob")
    await bob.page.get_by_role("button", name="bob: settings, help, leave").click()
    await bob.page.get_by_role("menuitem", name="Leave the network").click()
    await expect(bob.page.get_by_label("Your name")).to_be_visible()
    await ann.open_thread("channel.general")
    await ann.says("still here")
    await ann.page.reload()
    await ann.is_joined()
    await ann.sees("still here")


async def test_a_folded_group_shows_only_what_is_new_and_stays_folded(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    fold = desk.page.get_by_role("button", name="Channels", exact=True)
    await fold.click()
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await expect(desk.thread("channel.general")).to_have_count(0)
    bob = await room.join("bob")
    await bob.posts("general", "news")
    await expect(desk.thread("channel.general")).to_be_visible()
    await desk.page.reload()
    await expect(fold).to_have_attribute("aria-expanded", "false")


async def test_many_read_threads_are_a_few_and_a_button_for_the_others(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    for n in range(15):
        async with Client(WebSocketTransport(room.url), f"p{n:02}", "human") as client:
            await client.call("send_text_message", to="ann", text="hello")
    rows = group(desk, "Direct").locator("[data-thread]")
    await expect(rows).to_have_count(15)
    await desk.page.get_by_role("link", name="Inbox").click()
    await desk.page.get_by_role("button", name="Mark everything as read").click()
    await expect(rows).to_have_count(12)
    await group(desk, "Direct").get_by_role("button", name="3 more").click()
    await expect(rows).to_have_count(15)


async def test_marking_everything_as_read_holds_in_the_other_tab_and_after_a_reload(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    other = await desk.another_tab(room.page)
    await other.is_joined()
    bob = await room.join("bob")
    await bob.tells("ann", "hello")
    await bob.posts("general", "@ann hello")
    for each in (desk, other):
        await expect(badge(each.thread("channel.general"), "1 mention")).to_be_visible()
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Mark everything as read").click()
    for each in (desk, other):
        await expect(each.page.locator("nav .badge")).to_have_count(0)
    await desk.page.reload()
    await desk.is_joined()
    await expect(desk.thread("dm.ann.bob")).to_be_visible()
    await expect(desk.page.locator("nav .badge")).to_have_count(0)


async def test_a_thread_can_be_marked_as_read_from_its_menu(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    await bob.tells("ann", "hello")
    row = desk.thread("dm.ann.bob")
    await expect(badge(row, "1 unread")).to_be_visible()
    await row.hover()
    await desk.page.get_by_role("button", name="What to do with bob").click()
    await desk.page.get_by_role("menuitem", name="Mark as read").click()
    await expect(row.locator(".badge")).to_have_count(0)


async def test_what_an_agent_does_shows_beside_it_and_in_its_thread(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    async with Client(WebSocketTransport(room.url), AGENT, "agent") as agent:
        person = desk.page.locator(f'[data-participant="{AGENT}"]')
        await expect(person.locator(".presence")).to_have_text("here")
        await agent.call("send_text_message", to="ann", text="I shall look.")
        thread = "dm.ann.scout"
        await agent.signal("activity", thread, {"state": "calling", "tool": "search"})
        for place in (person, desk.thread(thread)):
            await expect(place.locator(".activity")).to_contain_text("calling search")
        await expect(person.locator(".presence")).to_have_text("at work")
        await expect(person.locator(".activity time")).to_have_text(re.compile(r"^[1-9]\d* s$"))
        await agent.signal("activity", thread, {"state": "waiting", "for": "bob"})
        await expect(person.locator(".activity")).to_contain_text("waiting for bob")
        await agent.signal("activity", thread, {"state": "idle"})
        await expect(person.locator(".activity")).to_have_count(0)
    await expect(person.locator(".presence")).to_have_text("away")


async def test_work_in_a_thread_that_one_may_not_read_shows_without_saying_what(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await joined(desks, room)
    async with Client(WebSocketTransport(room.url), AGENT, "agent") as agent:
        await bob.tells(AGENT, "between us")
        await agent.signal("activity", "dm.bob.scout", {"state": "thinking"})
        person = desk.page.locator(f'[data-participant="{AGENT}"]')
        await expect(person.locator(".activity")).to_have_text("working elsewhere")


async def test_a_draft_marks_its_thread(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("not yet")
    await desk.open_thread("broadcast")
    await expect(desk.thread("channel.general").locator(".drafted")).to_be_visible()
    await desk.open_thread("channel.general")
    await desk.send()
    await expect(desk.thread("channel.general").locator(".drafted")).to_have_count(0)
