"""Looking into what agents did: a turn, two side by side, the latest, and whom a message woke."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Networks
from tests.browser.support.team import LAST, PLAN, QUESTION, THREAD, asked, script


async def first_turn(desk: Desk) -> str:
    """The turn that ann's question started."""
    asked = await desk.message(QUESTION).first.get_attribute("data-message")
    return f"helper-{asked}"


def fact(within: Locator, name: str) -> Locator:
    return within.locator(f"dt:text-is('{name}') + dd")


async def test_a_message_leads_to_the_turn_that_sent_it(desk: Desk) -> None:
    await desk.act(desk.message(LAST), "Show the turn behind it")
    await expect(desk.details.get_by_role("heading", name="Turn")).to_be_visible()
    await expect(fact(desk.details, "Agent")).to_have_text("helper")
    await expect(desk.details.get_by_role("link", name=LAST)).to_be_visible()


async def test_i_shows_the_turn_of_the_message_that_has_the_focus(desk: Desk) -> None:
    await desk.message(LAST).focus()
    await desk.page.keyboard.press("i")
    await expect(fact(desk.details, "Agent")).to_have_text("helper")


async def test_a_turn_tells_what_was_done_and_spent(desk: Desk) -> None:
    turn = await first_turn(desk)
    await desk.visit("turn", turn)
    page = desk.page.get_by_role("main")
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


async def test_the_time_of_a_turn_is_a_table_that_leads_to_its_steps(desk: Desk) -> None:
    await desk.visit("turn", await first_turn(desk))
    table = desk.page.get_by_role("table", name="in order")
    await expect(table.get_by_role("rowheader")).to_have_text(
        ["scripted", "send_text_message", "send_text_message", "scripted", "finish"]
    )
    await table.get_by_role("button", name="scripted").nth(1).press("Enter")
    await expect(desk.page.locator("[data-step='2']")).to_be_focused()


async def test_the_prompt_opens_when_asked_for(desk: Desk) -> None:
    await desk.visit("turn", await first_turn(desk))
    page = desk.page.get_by_role("main")
    await expect(page.get_by_text("You are the helper.")).to_have_count(0)
    await page.get_by_text("System prompt").click()
    await expect(page.get_by_text("You are the helper.")).to_be_visible()


async def test_a_running_turn_is_shown_as_it_goes(desks: Desks, networks: Networks) -> None:
    async with ModelServer(script(hold="end")) as model:
        network = await networks.start(PLAN, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.visit("thread", THREAD)
        await desk.says(QUESTION)
        await model.held("end")
        await desk.visit("turn", await first_turn(desk))
        page = desk.page.get_by_role("main")
        await expect(page.get_by_text("The agent is at work.")).to_be_visible()
        await expect(fact(page, "Steps")).to_have_text("1")
        model.release("end")
        await expect(page.get_by_text("the expert was asked").first).to_be_visible()
        await expect(fact(page, "Steps")).to_have_text("2")
        await desks.leave()
        await network.close()


async def test_two_turns_stand_side_by_side(desk: Desk) -> None:
    turn = await first_turn(desk)
    await desk.visit("turn", turn)
    page = desk.page.get_by_role("main")
    await page.get_by_text("Compare with…").click()
    await page.get_by_role("listitem").get_by_role("link", name="helper-m").first.click()
    await expect(page.get_by_role("heading", name="Two turns")).to_be_visible()
    calls = page.get_by_role("row", name="Tool calls")
    await expect(calls.get_by_role("img", name="Differs")).to_be_visible()
    await expect(page.get_by_role("row", name="Model").get_by_role("img")).to_have_count(0)
    prompt = page.get_by_role("region", name="What differs").first
    await expect(prompt.locator("ins").filter(has_text="Big.").first).to_be_visible()
    await expect(page.get_by_text("The same in both.")).to_be_visible()  # the system prompt


async def test_the_latest_turns_are_listed_and_narrowed_to_an_agent(desk: Desk) -> None:
    await desk.page.keyboard.press("Escape")
    await desk.visit("turns")
    page = desk.page.get_by_role("main")
    await expect(page.get_by_role("row")).to_have_count(4)  # with the heads
    await page.get_by_label("Turns of").select_option("expert")
    await expect(page.get_by_role("row")).to_have_count(2)
    await page.get_by_role("link", name="expert-m").click()
    await expect(fact(page, "Agent")).to_have_text("expert")


async def test_an_agents_panel_has_its_latest_turns(desk: Desk) -> None:
    await desk.visit("thread", THREAD, opened=("participant", "expert"))
    turns = desk.details.locator("section").filter(has_text="Latest turns")
    await expect(turns.get_by_text("Finished")).to_have_count(1)


async def test_a_message_tells_whom_it_woke_and_why(desks: Desks, networks: Networks) -> None:
    async with asked(desks, networks) as desk:
        await desk.visit("thread", "channel.desk")
        await desk.says("@expert are you there?")
        asked_by = await desk.message("are you there").get_attribute("data-message")
        assert asked_by is not None
        await desk.visit("thread", "channel.desk", opened=("message", asked_by))
        woken = desk.details.get_by_role("listitem").filter(has_text="Because")
        await expect(woken.filter(has_text="expert")).to_contain_text("it mentions the agent")
        await expect(woken.filter(has_text="helper")).to_contain_text("Not woken")
        await woken.get_by_role("link", name=f"Turn expert-{asked_by}").click()
        await expect(fact(desk.page.get_by_role("main"), "In")).to_have_text("#desk")


async def test_who_is_no_owner_is_told_why_there_is_nothing_to_see(
    desks: Desks, networks: Networks
) -> None:
    async with ModelServer(script()) as model:
        network = await networks.start(PLAN, auth="tokens", model=model)
        token = await network.token("bob")
        desk = await desks.sit(network.page)
        await desk.join_with_token("bob", token)
        await desk.visit("turn", "helper-m1")
        await expect(desk.page.get_by_text("Only owners of the network")).to_be_visible()
        await desk.visit("turns")
        await expect(desk.page.get_by_text("Only owners of the network")).to_be_visible()
        await desks.leave()
        await network.close()


async def test_a_turn_that_does_not_exist_is_said_so(desk: Desk) -> None:
    await desk.visit("turn", "helper-m999")
    await expect(desk.page.get_by_text("There is no record of this turn")).to_be_visible()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_views_of_turns_are_accessible(desk: Desk, color: str) -> None:
    await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
    turn = await first_turn(desk)
    await desk.visit("turn", turn)
    page = desk.page.get_by_role("main")
    await page.get_by_text("Prompt", exact=False).last.click()
    await audit(desk.page)
    await desk.visit("turns")
    await expect(page.get_by_role("row")).to_have_count(4)
    await audit(desk.page)
    newest = await page.get_by_role("link", name="helper-m").first.inner_text()
    await desk.page.set_viewport_size(NARROW)
    await audit(desk.page)
    await desk.visit("turns", turn, newest)
    await expect(page.get_by_role("region", name="What differs").first).to_be_visible()
    await audit(desk.page)
    await desk.visit("thread", THREAD, opened=("turn", turn))
    await expect(fact(desk.details, "Agent")).to_be_visible()
    await audit(desk.page)
