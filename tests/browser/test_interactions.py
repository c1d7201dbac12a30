"""Sequence diagrams of interactions and threads."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.agents import LAST, QUESTION, TEAM, team_script
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.room import Room


def drawing(desk: Desk) -> Locator:
    return desk.page.get_by_role("group", name="Messages in order")


@pytest.mark.behaviour("U-13")
async def test_a_message_links_to_a_diagram_of_its_messages_and_wakes(
    desk: Desk,
) -> None:
    took = desk.message(LAST).get_by_role(
        "link", name=re.compile("2 agents · 7 calls · .* · .*0\\.")
    )
    await took.click()
    await expect(desk.main.get_by_text("4 messages · 3 turns")).to_be_visible()
    await expect(desk.main.get_by_text("not visible to you")).to_have_count(0)
    drawn, page = drawing(desk), desk.main
    for name in (f"helper to ann: {LAST}", "expert to helper, wakes helper"):
        await expect(drawn.get_by_role("link", name=name)).to_be_visible()
    heads = page.get_by_role("group", name="Sequence diagram").get_by_role("listitem")
    await expect(heads).to_have_text(["ANann", "HEhelper", "EXexpert"])
    await drawn.get_by_role("link", name="ann to helper, wakes helper").press("Enter")
    await expect(desk.details.get_by_text("Who was woken")).to_be_visible()
    await drawn.get_by_role("link", name="Turn helper-m1: Finished").press("Enter")
    await expect(desk.details.get_by_text("the expert was asked").first).to_be_visible()
    await page.get_by_role("button", name="Table").click()
    await expect(page.get_by_role("row").nth(1)).to_contain_text("ann")
    await expect(page.get_by_role("row").nth(1).get_by_role("link")).to_have_text(QUESTION)
    await desk.visit("sequence", "dm.ann.helper")  # it is remembered
    await expect(page.get_by_role("row")).to_have_count(3)
    await desk.visit("thread", "dm.ann.helper")
    await desk.message(LAST).focus()
    await desk.page.keyboard.press("w")
    await expect(page.get_by_text("4 messages · 3 turns")).to_be_visible()


async def test_an_unreadable_message_is_an_arrow_without_text(desks: Desks, team: Room) -> None:
    desk = await desks.sit(team, "bob")  # in an open network he is an owner too
    await desk.visit("interaction", "i1")
    await expect(desk.main.get_by_text("2 of them not visible to you")).to_be_visible()
    closed = drawing(desk).get_by_role("img")
    await expect(closed).to_have_count(2)
    await expect(closed.first).to_have_accessible_name(
        "ann to helper, wakes helper: not visible to you"
    )
    await expect(drawing(desk).get_by_role("link", name="helper to expert")).to_be_visible()
    await expect(desk.main.get_by_text(QUESTION)).to_have_count(1)  # quoted to the expert
    await desk.main.get_by_role("button", name="Table").click()
    row = desk.main.get_by_role("row").nth(1)
    await expect(row).to_contain_text("not visible to you")
    await expect(row.get_by_role("link")).to_have_count(0)


async def test_a_diagram_and_a_turn_are_updated_live(desks: Desks) -> None:
    async with ModelServer(team_script()) as model, Room.open(plan=TEAM, model=model) as room:
        desk = await desks.sit(room, "ann")
        await desk.talk_to("helper")
        await desk.says(f"{QUESTION} Think slowly.")
        await model.held("end")
        await desk.visit("interaction", "i1", opened=("turn", "helper-m1"))
        turn = drawing(desk).get_by_role("link", name="Turn helper-m1")
        await expect(turn).to_have_accessible_name("Turn helper-m1: Running")
        await expect(desk.details.get_by_text("The agent is working.")).to_be_visible()
        model.release("end")
        await expect(turn).to_have_accessible_name("Turn helper-m1: Finished")
        await expect(desk.details.get_by_text("the expert was asked").first).to_be_visible()
        await expect(drawing(desk).get_by_role("link", name=LAST)).to_be_visible()
        # An owner reads a thread of agents without read markers there.
        await desk.visit("thread", "dm.expert.helper", "m2")
        await desk.sees("Big.")
        await desk.send_read_markers()
        await desk.visit("thread", "dm.ann.helper")
        await desk.says("thank you")  # stored after the read markers
        assert await desk.page.locator(".announcer").inner_text() == ""
        await desks.leave()


async def test_the_diagram_of_a_thread_is_updated_live_and_its_names_do_not_overlap_on_a_phone(
    desks: Desks, room: Room
) -> None:
    name = "W" * 64
    bob, cyd = await room.join(name), await room.join("cyd")
    for n in range(3):
        await bob.posts("general", f"number {n}")
    desk = await desks.sit(room, "ann", "channel.general")
    await desk.page.get_by_role("link", name="As a diagram").click()
    arrows = drawing(desk).get_by_role("link")
    await expect(arrows).to_have_count(3)
    await expect(arrows.first).to_have_accessible_name(f"{name} to #general: number 0")
    await cyd.posts("general", "I agree")
    await expect(arrows.last).to_have_accessible_name("cyd to #general: I agree")
    await bob.tells("ann", "hello")
    await desk.page.set_viewport_size(NARROW)
    await desk.visit("sequence", f"dm.{name}.ann")
    heads = desk.main.locator(".heads li")
    await expect(heads).to_have_count(2)
    edges = "([one, two]) => [one.getBoundingClientRect().right, two.getBoundingClientRect().left]"
    end, start = await heads.evaluate_all(edges)
    assert end <= start
