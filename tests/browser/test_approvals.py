"""Approvals of tool calls on the page."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect
from pydantic import JsonValue

from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
    When,
)
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Plan, Room
from tests.browser.support.worker import ARGUMENTS, Worker, at_work

pytestmark = pytest.mark.behaviour("H-140")


@asynccontextmanager
async def asked(desks: Desks, room: Room) -> AsyncIterator[tuple[Desk, Worker, str]]:
    """Ann asked the clerk to tidy up, and the clerk requests approval for deleting a file."""
    async with at_work(desks, room) as (desk, clerk):
        yield desk, clerk, await clerk.asks()


def card(desk: Desk, tool: str = "delete_file") -> Locator:
    return desk.page.get_by_role("article", name=f"clerk: {tool}")


def waiting(desk: Desk) -> Locator:
    """The link in the left column with the number of pending approvals."""
    return desk.threads.get_by_role("link", name="Approvals")


async def test_a_person_sees_the_exact_call_and_approves_or_denies_it(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        await expect(waiting(desk)).to_contain_text("1 call needs your approval")
        here = desk.main.get_by_role("article", name="clerk: delete_file")
        await expect(here.get_by_role("button", name="Approve")).to_be_visible()
        await waiting(desk).click()
        it = desk.main.get_by_role("article", name="clerk: delete_file")
        await expect(it).to_contain_text("it cannot be taken back")
        await expect(it).to_contain_text("Deletes a file for good.")
        terms = it.get_by_role("region", name="With these arguments")
        await expect(terms.get_by_role("term")).to_have_text(list(ARGUMENTS))
        await expect(terms.get_by_role("definition")).to_have_text(["/srv/old.md", "3"])
        await expect(it).to_contain_text("(denied)")
        await it.get_by_role("button", name="Approve").click()
        decided = await clerk.decision(approval)
        assert (decided.state, decided.decided_by) == ("approved", "ann")
        assert decided.final == ARGUMENTS
        await expect(it).to_contain_text("Approved by ann")
        await expect(it.get_by_role("button", name="Approve")).to_have_count(0)
        await expect(waiting(desk)).to_have_count(0)

        # Invisible characters are shown, and a denial gives the agent the reason.
        denied = await clerk.asks("write_file", {"path": "a\u202efdp.exe\u200b"})
        it = card(desk, "write_file")
        await expect(it.get_by_role("definition")).to_have_text(["a\\u202efdp.exe\\u200b"])
        await it.get_by_role("button", name="Deny…").click()
        await expect(it.get_by_label("Why not")).to_be_focused()
        await it.get_by_label("Why not").fill("Not before Monday.")
        await it.get_by_role("button", name="Deny").click()
        decided = await clerk.decision(denied)
        assert (decided.state, decided.verdict) == ("denied", "Not before Monday.")
        await expect(it).to_contain_text("Denied by ann")

        # The turn record offers the decision too, and a decision by someone else shows live.
        third = await clerk.asks("move_file")
        await desk.visit("turns")
        await expect(desk.main.get_by_role("row").nth(1)).to_contain_text("Needs approval")
        await desk.visit("inbox", "approvals", opened=("turn", clerk.turn))
        await expect(desk.details.get_by_role("button", name="Approve")).to_be_visible()
        bob = await room.join("bob")
        await bob.client.call("deny", id=third, reason="I know that file.")
        it = desk.main.get_by_role("article", name="clerk: move_file")
        await expect(it).to_contain_text("Denied by bob")
        await expect(it).to_contain_text("I know that file.")
        await expect(desk.details.get_by_role("button", name="Approve")).to_have_count(0)


async def test_arguments_are_validated_while_edited_and_survive_a_reload(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        await desk.composer.press("Escape")
        await desk.press_sequence("ga")
        it = card(desk)
        deny = it.get_by_role("button", name="Deny…")
        await deny.press("Enter")
        await expect(it.get_by_label("Why not")).to_be_focused()
        await desk.page.keyboard.press("Escape")
        await expect(deny).to_be_visible()
        await it.get_by_role("button", name="Edit…").press("Enter")
        await expect(it.get_by_label("path")).to_be_focused()
        await it.get_by_label("times").fill("4")
        await expect(it.locator("del")).to_have_text("3")
        await expect(it.locator("ins")).to_have_text("4")
        await audit(desk.page)
        await it.get_by_role("button", name="Edit as JSON").click()
        field = it.get_by_label("Arguments as JSON")
        await expect(field).to_be_focused()
        await field.fill(json.dumps({"path": "/srv/old.md", "times": 9, "force": True}))
        send = it.get_by_role("button", name="Approve with changes")
        await send.click()
        await expect(it).to_contain_text("9 is greater than the maximum of 5")
        await expect(it).to_contain_text("'force' was unexpected")
        await audit(desk.page)
        await field.fill("{")
        await expect(it).to_contain_text("This is not valid JSON")
        await expect(send).to_be_disabled()
        changed = json.dumps({"path": "/srv/other.md", "times": 3})
        await field.fill(changed)
        await expect(it.locator("ins")).to_have_text("/srv/other.md")
        await desk.reload()
        await expect(field).to_have_value(changed)
        await field.press("Control+Enter")
        decided = await clerk.decision(approval)
        assert decided.state == "approved"
        assert decided.final == {"path": "/srv/other.md", "times": 3}
        await desk.page.reload()
        await expect(it).to_contain_text("Approved by ann with changes")
        await expect(waiting(desk)).to_have_count(0)


async def test_the_approval_of_an_agent_that_is_gone_says_when_the_call_runs(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, _approval):
        await waiting(desk).click()
        await clerk.client.__aexit__(None, None, None)
        it = desk.main.get_by_role("article", name="clerk: delete_file")
        await it.get_by_role("button", name="Approve").click()
        await expect(it).to_contain_text("It runs once clerk is connected again.")


@pytest.mark.behaviour("H-145")
async def test_calls_are_approved_together_one_by_a_double_click_and_with_values_as_typed(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        others = [await clerk.asks(arguments={"path": f"/srv/{n}.md"}) for n in (1, 2)]
        every = desk.main.get_by_role("button", name="Approve all 3 calls of delete_file")
        await expect(every).to_be_visible()
        await desk.composer.press("Escape")
        while not await every.evaluate("(it) => it === document.activeElement"):
            await desk.page.keyboard.press("Tab")
        await desk.page.keyboard.press("Enter")
        for each in (approval, *others):
            assert (await clerk.decision(each)).state == "approved"
        await expect(card(desk)).to_have_count(0)
        await expect(desk.composer).to_be_focused()  # not the page, where letters are commands
        first, second = await clerk.asks("move_file"), await clerk.asks("write_file")
        mouse = desk.page.mouse
        await desk.visit("inbox", "approvals")
        await expect(card(desk, "write_file")).to_be_visible()
        await card(desk, "move_file").get_by_role("button", name="Approve").hover()
        await mouse.down()
        await mouse.up()
        assert (await clerk.decision(first)).state == "approved"
        await expect(card(desk, "move_file")).to_contain_text("Approved")
        await mouse.down(click_count=2)
        await mouse.up(click_count=2)
        await card(desk, "write_file").get_by_role("button", name="Deny…").press("Enter")
        await card(desk, "write_file").get_by_label("Why not").press("Control+Enter")
        assert (await clerk.decision(second)).state == "denied"
        approval = await clerk.asks("pay", {"path": "/srv", "price": 2, "lines": [1]})
        it = card(desk, "pay")
        await it.get_by_role("button", name="Edit…").click()
        await it.get_by_label("price").fill("")
        await it.get_by_label("price").press_sequentially("0.05")
        await expect(it.locator("ins")).to_have_text("0.05")
        family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
        await it.get_by_label("path").fill("")
        await it.get_by_label("path").press_sequentially(f"/{family}/a")
        await it.get_by_label("lines").fill("[1, 2")
        await it.get_by_label("lines").press("Control+Enter")
        await it.get_by_role("button", name="Approve with changes").click()
        await expect(it).to_contain_text("This is not valid JSON")
        await it.get_by_label("lines").fill("[1, 2]")
        await it.get_by_label("lines").press("Control+Enter")
        decided = await clerk.decision(approval)
        assert decided.final == {"path": f"/{family}/a", "price": 0.05, "lines": [1, 2]}


async def test_an_undecided_approval_expires(desks: Desks) -> None:
    async with (
        Room.open({"approvals": {"expire": "1s"}}) as room,
        asked(desks, room) as (desk, clerk, approval),
    ):
        await desk.visit("inbox", "approvals")
        await expect(card(desk)).to_contain_text("Expired")
        assert (await clerk.decision(approval)).state == "expired"
        await expect(card(desk).get_by_role("button", name="Approve")).to_have_count(0)


TOOL = """
from pathlib import Path

from hubbub import tool


@tool(permission="write", confirm=True)
def pay(amount: int, to: str) -> str:
    \"\"\"Pay an amount to somebody.\"\"\"
    Path(__file__).with_name("paid.txt").write_text(f"{amount} to {to}")
    return f"paid {amount} to {to}"
"""
PAY = ScriptedCall(tool="pay", arguments={"amount": 10, "to": "bob"})
TELL = ScriptedCall(tool="send_text_message", arguments={"to": "ann", "text": "{{ tool_result }}"})
END = ScriptedCall(tool="finish", arguments={"reason": "paid"})
PAYING = Script(
    rules=[
        ScriptRule(when=When(step=1), answer=ScriptedAnswer(calls=[PAY])),
        ScriptRule(when=When(step=2), answer=ScriptedAnswer(calls=[TELL])),
        ScriptRule(answer=ScriptedAnswer(calls=[END])),
    ]
)


async def test_an_approved_call_runs_also_after_a_restart_of_hub_and_agent(
    desks: Desks, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(TOOL)
    tools: JsonValue = [f"{tmp_path}/shop.py:pay", "send_text_message"]
    clerk = {"kind": "llm", "instruction": "You pay.", "tools": tools}
    plan: Plan = {"agents": {"clerk": clerk}, "humans": {"ann": {"roles": ["owner"]}}}
    store = f"sqlite:{tmp_path}/hub.db"
    async with ModelServer(PAYING) as model:
        async with Room.open(plan=plan, model=model, store=store) as room:
            desk = await desks.sit(room, "ann")
            await desk.talk_to("clerk")
            await desk.says("pay bob")
            it = desk.main.get_by_role("article", name="clerk: pay")
            await it.get_by_role("button", name="Edit…").click()
            await it.get_by_label("amount").fill("7")
            desk.expect_losses()
        await desk.notices_the_loss()
        send = it.get_by_role("button", name="Approve with changes")
        await send.click()  # sent again until it is answered
        async with Room.open(plan=plan, model=model, store=store, port=room.port):
            await desk.sees("paid 7 to bob")
            assert (tmp_path / "paid.txt").read_text() == "7 to bob"
            await expect(it).to_have_count(0)
            await desk.visit("turn", "clerk-m1")
            paid = desk.main.get_by_role("region", name="Call of pay")
            await expect(paid).to_contain_text("Approved by ann with changes: amount")
            await expect(paid).to_contain_text("Arguments requested")
            await expect(paid).to_contain_text("Arguments used")
            await expect(paid).to_contain_text('"amount": 7')
            await desks.leave()
