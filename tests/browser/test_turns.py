"""Turns of agents: the inspector, lists, comparison, and the wakes of a message."""

from __future__ import annotations

import re

from playwright.async_api import expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.agents import LAST, QUESTION, TEAM, team_script
from tests.browser.support.desk import Desk, Desks, fact
from tests.browser.support.room import Room

FIRST = "helper-m1"
"""The turn started by ann's question."""


async def test_a_message_links_to_its_turn_which_shows_calls_and_costs(
    desk: Desk,
) -> None:
    await desk.act(desk.message(LAST), "Turn")
    await expect(fact(desk.details, "Agent")).to_have_text("helper")
    await expect(desk.details.get_by_role("link", name=LAST)).to_be_visible()
    await desk.page.keyboard.press("Escape")
    await desk.message(LAST).focus()
    await desk.page.keyboard.press("i")
    await expect(fact(desk.details, "Agent")).to_have_text("helper")
    await desk.visit("turn", FIRST)
    page = desk.main
    await expect(page.get_by_text("the expert was asked").first).to_be_visible()
    await expect(fact(page, "Model")).to_have_text("scripted")
    await expect(fact(page, "Tool calls")).to_have_text("3, 1 failed")
    await expect(fact(page, "Cost")).to_have_text(re.compile(r"^(US)?\$0\.00\d+$"))
    await expect(page.get_by_role("link", name=f"ann {QUESTION}")).to_be_visible()
    await expect(page.get_by_role("link", name=f"Please tell me: {QUESTION}")).to_be_visible()
    await expect(page.get_by_text("The expert knows.")).to_be_visible()
    failed = page.get_by_role("region", name="send_text_message").nth(1)
    await expect(failed).to_contain_text("unknown_participant")
    await expect(failed).to_contain_text('"to": "nobody"')
    table = page.get_by_role("table", name="in order")
    await expect(table.get_by_role("rowheader")).to_have_text(
        ["scripted", "send_text_message", "send_text_message", "scripted", "finish"]
    )
    await table.get_by_role("button", name="scripted").nth(1).press("Enter")
    await expect(desk.page.locator("[data-step='2']")).to_be_focused()
    await expect(page.get_by_text("You are the helper.")).to_have_count(0)
    await page.get_by_text("System prompt").click()
    await expect(page.get_by_text("You are the helper.")).to_be_visible()


async def test_ids_in_a_text_are_links_and_messages_have_a_preview(
    desks: Desks, room: Room
) -> None:
    helper = await room.enters("helper")
    desk = await desks.sit(room, "ann", "channel.general")
    await desk.says("first")
    await helper.call("join_channel", channel="general")
    await helper.call("post_to_channel", channel="general", text="m1 began helper-m1")
    link = desk.conversation.get_by_role("link", name="m1", exact=True)
    card = desk.page.get_by_role("tooltip")
    await link.hover()
    await expect(card).to_contain_text("first")
    await expect(card).to_contain_text("m1 · #general")
    await desk.composer.hover()
    await expect(card).to_have_count(0)
    await link.focus()
    await expect(card).to_contain_text("ann")
    await desk.page.keyboard.press("Escape")
    await expect(card).to_have_count(0)
    await desk.conversation.get_by_role("link", name="helper-m1").click()
    await expect(desk.details.get_by_role("heading", name="Turn")).to_be_visible()


async def test_turns_are_listed_by_agent_and_compared(desk: Desk) -> None:
    page = desk.main
    await desk.visit("turns")
    await expect(page.get_by_role("row")).to_have_count(4)  # with the header row
    await page.get_by_label("Turns of").select_option("expert")
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.get_by_role("link", name="expert-m").click()
    await expect(fact(page, "Agent")).to_have_text("expert")
    await desk.visit("turn", FIRST)
    await page.get_by_text("Compare with…").click()
    await page.get_by_role("listitem").get_by_role("link", name="helper-m").first.click()
    await expect(page.get_by_role("heading", name="Two turns")).to_be_visible()
    calls = page.get_by_role("row", name="Tool calls")
    await expect(calls.get_by_role("img", name="Differs")).to_be_visible()
    await expect(page.get_by_role("row", name="Model").get_by_role("img")).to_have_count(0)
    prompt = page.get_by_role("region", name="What differs").first
    await expect(prompt.locator("ins").filter(has_text="Big.").first).to_be_visible()
    await expect(page.get_by_text("The same in both.")).to_be_visible()  # the system prompt
    await desk.visit("thread", "dm.ann.helper", opened=("participant", "expert"))
    turns = desk.details.locator("section").filter(has_text="Latest turns")
    await expect(turns.get_by_text("Finished")).to_have_count(1)


async def test_a_message_shows_which_agents_it_woke_and_why(desks: Desks) -> None:
    async with ModelServer(team_script()) as model, Room.open(plan=TEAM, model=model) as room:
        desk = await desks.sit(room, "ann", "channel.desk")
        await desk.says("@expert are you there?")
        await desk.visit("thread", "channel.desk", opened=("message", "m1"))
        woken = desk.details.get_by_role("listitem").filter(has_text="Because")
        await expect(woken.filter(has_text="expert")).to_contain_text("it mentions the agent")
        helper = woken.filter(has_text="helper")
        await expect(helper).to_contain_text("Not woken")
        await helper.get_by_role("button", name="Ask helper").click()
        await expect(desk.composer).to_have_value("@helper ")
        await expect(desk.composer).to_be_focused()
        await woken.get_by_role("link", name="Turn expert-m1").click()
        await expect(fact(desk.main, "In")).to_have_text("#desk")
        await desks.leave()
