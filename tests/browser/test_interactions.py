"""Sequence diagrams: what a message set in motion, and a thread."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Network, Networks, Room
from tests.browser.support.team import LAST, PLAN, QUESTION, THREAD, asked, script


async def talked(desks: Desks, network: Network | Room, count: int) -> Desk:
    """Ann, in a channel where bob has said something `count` times."""
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    bob = await network.join("bob")
    for n in range(count):
        await bob.posts("general", f"number {n} of bob")
    return desk


async def test_a_message_leads_to_what_it_belongs_to(desk: Desk) -> None:
    await desk.act(desk.message(LAST), "Show what it belongs to, as a diagram", "link")
    page = desk.page.get_by_role("main")
    await expect(page.get_by_text("4 messages · 3 turns")).to_be_visible()
    await expect(page.get_by_text("not for you to read")).to_have_count(0)


async def test_w_does_the_same_for_the_message_that_has_the_focus(desk: Desk) -> None:
    await desk.message(LAST).focus()
    await desk.page.keyboard.press("w")
    await expect(desk.page.get_by_role("group", name="Sequence diagram")).to_be_visible()


async def test_arrows_say_who_spoke_to_whom_and_who_was_woken(desk: Desk) -> None:
    await desk.visit("interaction", "i1")
    drawn = desk.page.get_by_role("group", name="Messages in order")
    await expect(drawn.get_by_role("link", name="ann to helper, wakes helper")).to_be_visible()
    await expect(drawn.get_by_role("link", name=f"helper to ann: {LAST}")).to_be_visible()
    await expect(drawn.get_by_role("link", name="Turn helper-m1: Finished")).to_be_visible()
    heads = desk.page.get_by_role("group", name="Sequence diagram").get_by_role("listitem")
    await expect(heads).to_have_text(["ANann", "HEhelper", "EXexpert"])
    await expect(drawn.get_by_role("link", name="expert to helper, wakes helper")).to_be_visible()


async def test_an_owner_looks_into_what_agents_say_and_marks_nothing_there(
    desks: Desks, networks: Networks
) -> None:
    async with asked(desks, networks) as desk:
        await desk.visit("thread", "dm.expert.helper", "m2")
        await desk.sees("Big.")
        await desk.tells_its_marks()
        await desk.visit("thread", THREAD)
        await desk.says("thank you")  # answered later than a mark
        assert await desk.page.locator(".announcer").inner_text() == ""


async def test_what_one_may_not_read_is_an_arrow_without_words(desks: Desks, team: Network) -> None:
    desk = await desks.sit(team.page)
    await desk.join_as("bob")  # in an open network he is an owner as well
    await desk.visit("interaction", "i1")
    page = desk.page.get_by_role("main")
    await expect(page.get_by_text("2 of them not for you to read")).to_be_visible()
    drawn = desk.page.get_by_role("group", name="Messages in order")
    closed = drawn.get_by_role("img")
    await expect(closed).to_have_count(2)
    await expect(closed.first).to_have_accessible_name(
        "ann to helper, wakes helper: not for you to read"
    )
    await expect(drawn.get_by_role("link", name="helper to expert")).to_be_visible()
    await expect(page.get_by_text(QUESTION)).to_have_count(1)  # quoted to the expert
    await audit(desk.page)
    await page.get_by_role("button", name="Table").click()
    row = page.get_by_role("row").nth(1)
    await expect(row).to_contain_text("not for you to read")
    await expect(row.get_by_role("link")).to_have_count(0)


async def test_an_arrow_opens_its_message_and_a_bar_its_turn_by_keyboard(desk: Desk) -> None:
    await desk.visit("interaction", "i1")
    drawn = desk.page.get_by_role("group", name="Messages in order")
    await drawn.get_by_role("link", name="ann to helper").press("Enter")
    await expect(desk.details.get_by_text("Who was woken")).to_be_visible()
    await drawn.get_by_role("link", name="Turn helper-m1").press("Enter")
    await expect(desk.details.get_by_text("the expert was asked").first).to_be_visible()
    await expect(drawn).to_be_visible()


async def test_the_diagram_is_a_table_for_who_wants_one(desk: Desk) -> None:
    await desk.visit("interaction", "i1")
    page = desk.page.get_by_role("main")
    await page.get_by_role("button", name="Table").click()
    await expect(page.get_by_role("row").nth(1)).to_contain_text("ann")
    await expect(page.get_by_role("row").nth(1).get_by_role("link")).to_have_text(QUESTION)
    await desk.visit("sequence", THREAD)  # it is remembered
    await expect(page.get_by_role("row")).to_have_count(3)


async def test_a_diagram_grows_while_it_is_shown(desks: Desks, networks: Networks) -> None:
    async with ModelServer(script(hold="end")) as model:
        network = await networks.start(PLAN, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.visit("thread", THREAD)
        await desk.says(QUESTION)
        await model.held("end")
        await desk.visit("interaction", "i1")
        drawn = desk.page.get_by_role("group", name="Messages in order")
        await expect(drawn.get_by_role("link", name="Turn helper-m1: Running")).to_be_visible()
        model.release("end")
        await expect(drawn.get_by_role("link", name="Turn helper-m1: Finished")).to_be_visible()
        await expect(drawn.get_by_role("link", name=LAST)).to_be_visible()
        await desks.leave()
        await network.close()


async def test_a_thread_has_a_tool_that_draws_it(desks: Desks, room: Room) -> None:
    desk = await talked(desks, room, 3)
    await desk.open_thread("channel.general")
    await desk.page.get_by_role("link", name="As a diagram").click()
    drawn = desk.page.get_by_role("group", name="Messages in order")
    await expect(drawn.get_by_role("link")).to_have_count(3)
    await expect(drawn.get_by_role("link").first).to_have_accessible_name(
        "bob to #general: number 0 of bob"
    )


async def test_what_is_said_later_joins_the_drawing_of_a_thread(desks: Desks, room: Room) -> None:
    desk = await talked(desks, room, 1)
    await desk.visit("sequence", "channel.general")
    drawn = desk.page.get_by_role("group", name="Messages in order")
    await expect(drawn.get_by_role("link")).to_have_count(1)
    cyd = await room.join("cyd")
    await cyd.posts("general", "I agree")
    await expect(drawn.get_by_role("link", name="cyd to #general: I agree")).to_be_visible()


async def test_an_interaction_that_does_not_exist_is_said_so(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.visit("interaction", "i999")
    await expect(desk.page.get_by_role("alert")).to_contain_text("i999")


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_diagrams_are_accessible(desk: Desk, color: str) -> None:
    await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
    await desk.visit("interaction", "i1")
    await expect(desk.page.get_by_role("group", name="Messages in order")).to_be_visible()
    await audit(desk.page)
    await desk.page.set_viewport_size(NARROW)
    await audit(desk.page)
    await desk.page.get_by_role("button", name="Table").click()
    await audit(desk.page)
