"""Tool calls that wait for a person's word, as the page shows them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import Answer, Call, ModelServer, Rule, Script, When
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Networks, Plan, Room
from tests.browser.support.worker import ARGUMENTS, Worker, worker

pytestmark = pytest.mark.behaviour("H-140")

THREAD = "dm.ann.clerk"


@asynccontextmanager
async def asked(desks: Desks, room: Room) -> AsyncIterator[tuple[Desk, Worker, str]]:
    """Ann has told the clerk to tidy up, and the clerk asks whether it may delete a file."""
    async with worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        approval = await clerk.asks()
        yield desk, clerk, approval
        await desks.leave()


def card(desk: Desk) -> Locator:
    return desk.page.get_by_role("article", name="clerk: delete_file")


def waiting(desk: Desk) -> Locator:
    """The line on the left that says how much waits."""
    return desk.threads.get_by_role("link", name="Approvals")


async def goes_there(desk: Desk) -> Locator:
    """To the approvals in the inbox, by the line on the left."""
    await waiting(desk).click()
    await expect(card(desk)).to_be_visible()
    return card(desk)


async def edits(desk: Desk, **arguments: object) -> Locator:
    """Begins to edit, and writes these arguments."""
    await card(desk).get_by_role("button", name="Edit…").click()
    field = card(desk).get_by_label("Arguments as JSON")
    await expect(field).to_be_focused()
    await field.fill(json.dumps(arguments))
    return field


async def test_a_person_sees_exactly_what_is_asked_and_why(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, _, _):
        await expect(waiting(desk)).to_contain_text("1 call waits for your word")
        it = await goes_there(desk)
        await expect(it).to_contain_text("it cannot be taken back")
        await expect(it).to_contain_text("Deletes a file for good.")
        terms = it.get_by_role("region", name="With these arguments")
        await expect(terms.get_by_role("term")).to_have_text(list(ARGUMENTS))
        await expect(terms.get_by_role("definition")).to_have_text(["/srv/old.md", "3"])
        await expect(it).to_contain_text("left, then it is a no")


async def test_what_is_hidden_in_a_text_is_shown_to_who_decides(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, _):
        await clerk.asks("write_file", {"path": "a\u202efdp.exe\u200b"})
        await waiting(desk).click()
        it = desk.page.get_by_role("article", name="clerk: write_file")
        await expect(it.get_by_role("definition")).to_have_text(["a\\u202efdp.exe\\u200b"])


async def test_an_approved_call_may_run_as_it_was_asked(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        it = await goes_there(desk)
        await it.get_by_role("button", name="Approve").click()
        decided = await clerk.decision(approval)
        assert (decided.state, decided.decided_by) == ("approved", "ann")
        assert decided.final == ARGUMENTS
        await expect(it).to_contain_text("Approved by ann")
        await expect(it.get_by_role("button", name="Approve")).to_have_count(0)
        await expect(waiting(desk)).to_have_count(0)


async def test_a_denied_call_tells_the_agent_why(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        it = await goes_there(desk)
        await it.get_by_role("button", name="Deny…").click()
        await expect(it.get_by_label("Why not")).to_be_focused()
        await it.get_by_label("Why not").fill("Not before Monday.")
        await it.get_by_role("button", name="Deny").click()
        decided = await clerk.decision(approval)
        assert (decided.state, decided.verdict) == ("denied", "Not before Monday.")
        await expect(it).to_contain_text("Denied by ann")
        await expect(it).to_contain_text("Not before Monday.")


async def test_edited_arguments_are_checked_and_run_in_place_of_those_that_were_asked_for(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        it = await goes_there(desk)
        field = await edits(desk, path="/srv/old.md", times=9, force=True)
        send = it.get_by_role("button", name="Approve as changed")
        await expect(it).to_contain_text("times: must be at most 5")
        await expect(it).to_contain_text("force is unknown")
        await expect(send).to_be_disabled()
        await field.fill("{")
        await expect(it).to_contain_text("This is no JSON")
        await expect(send).to_be_disabled()
        await field.fill(json.dumps({"path": "/srv/other.md", "times": 3}))
        await expect(it).to_contain_text("Changed: path")
        await send.click()
        decided = await clerk.decision(approval)
        assert decided.state == "approved"
        assert decided.final == {"path": "/srv/other.md", "times": 3}
        await expect(it).to_contain_text("Approved by ann with changes")


async def test_a_reload_in_the_middle_loses_nothing(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        await goes_there(desk)
        await edits(desk, path="/srv/half")
        await desk.page.reload()
        await desk.is_joined()
        field = card(desk).get_by_label("Arguments as JSON")
        await expect(field).to_have_value('{"path": "/srv/half"}')
        await field.press("Control+Enter")
        assert (await clerk.decision(approval)).final == {"path": "/srv/half"}
        await desk.page.reload()
        await expect(card(desk)).to_contain_text("Approved by ann with changes")
        await expect(waiting(desk)).to_have_count(0)


async def test_the_thread_says_that_something_waits_and_leads_to_it(
    desks: Desks, room: Room
) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        hint = desk.banner("waits for a person's word")
        await expect(hint).to_contain_text("delete_file")
        await hint.get_by_role("button", name="Look at it").click()
        await desk.details.get_by_role("button", name="Approve").click()
        assert (await clerk.decision(approval)).state == "approved"
        await expect(desk.details).to_contain_text("Approved by ann")
        await expect(hint).to_have_count(0)


async def test_the_record_of_a_turn_shows_what_it_waits_for(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        await desk.visit("thread", THREAD, opened=("turn", clerk.turn))
        await desk.details.get_by_role("button", name="Approve").click()
        assert (await clerk.decision(approval)).state == "approved"


async def test_the_keyboard_is_enough(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, clerk, approval):
        await desk.composer.press("Escape")
        await desk.page.keyboard.press("g")
        await desk.page.keyboard.press("a")
        deny = card(desk).get_by_role("button", name="Deny…")
        await expect(deny).to_be_visible()
        await deny.focus()
        await desk.page.keyboard.press("Enter")
        await expect(card(desk).get_by_label("Why not")).to_be_focused()
        await desk.page.keyboard.press("Escape")
        await expect(deny).to_be_visible()
        await deny.press("Enter")
        await expect(card(desk).get_by_label("Why not")).to_be_focused()
        await desk.page.keyboard.press("Control+Enter")
        assert (await clerk.decision(approval)).state == "denied"


async def test_what_somebody_else_decides_is_decided_here_at_once(desks: Desks, room: Room) -> None:
    async with asked(desks, room) as (desk, _, approval):
        it = await goes_there(desk)
        bob = await room.join("bob")
        await bob.client.call("deny", id=approval, reason="I know that file.")
        await expect(it).to_contain_text("Denied by bob")
        await expect(it).to_contain_text("I know that file.")
        await expect(waiting(desk)).to_have_count(0)


async def test_what_nobody_decides_in_time_is_a_no(desks: Desks) -> None:
    async with (
        Room.open({"approvals": {"expire": "2s"}}) as room,
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


def _paying() -> Script:
    pay = Call(tool="pay", arguments={"amount": 10, "to": "bob"})
    tell = Call(tool="send_text_message", arguments={"to": "ann", "text": "{{ tool_result }}"})
    end = Call(tool="finish", arguments={"reason": "paid"})
    rules = [
        Rule(when=When(step=1), answer=Answer(calls=[pay])),
        Rule(when=When(step=2), answer=Answer(calls=[tell])),
        Rule(answer=Answer(calls=[end])),
    ]
    return Script(rules=rules)


async def test_an_agent_runs_what_was_approved_and_goes_on(
    desks: Desks, networks: Networks, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(TOOL)
    async with ModelServer(_paying()) as model:
        network = await networks.start(_plan(tmp_path), model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("pay bob")
        await desk.page.get_by_role("button", name="Look at it").click()
        await desk.details.get_by_role("button", name="Edit…").click()
        await desk.details.get_by_label("Arguments as JSON").fill('{"amount": 7, "to": "bob"}')
        await desk.details.get_by_role("button", name="Approve as changed").click()
        await desk.sees("paid 7 to bob")
        assert (tmp_path / "paid.txt").read_text() == "7 to bob"
        await expect(desk.details).to_contain_text("Approved, has run")
        await desk.visit("turn", "clerk-m1")
        paid = desk.main.get_by_role("region", name="Call of pay")
        await expect(paid).to_contain_text("Approved by ann with changes: amount")
        await expect(paid).to_contain_text("Arguments, as asked")
        await expect(paid).to_contain_text("Arguments that it ran with")
        await expect(paid).to_contain_text('"amount": 7')
        await desks.leave()
        await network.close()


async def test_an_approval_outlives_hub_and_agent(
    desks: Desks, networks: Networks, tmp_path: Path
) -> None:
    (tmp_path / "shop.py").write_text(TOOL)
    async with ModelServer(_paying()) as model:
        network = await networks.start(_plan(tmp_path), model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("pay bob")
        await desk.page.get_by_role("button", name="Look at it").click()
        await expect(desk.details.get_by_role("button", name="Approve")).to_be_visible()
        desk.expect_losses()
        await network.kill()
        await desk.notices_the_loss()
        await desk.details.get_by_role("button", name="Approve").click()  # said again till answered
        await network.start()
        await desk.sees("paid 10 to bob")
        await expect(desk.details).to_contain_text("Approved, has run")
        await desks.leave()
        await network.close()


def _plan(folder: Path) -> Plan:
    return {
        "models": {
            "default": {
                "model": "scripted",
                "base_url": "${OPENAI_BASE_URL}",
                "api_key": "${OPENAI_API_KEY}",
            }
        },
        "agents": {
            "clerk": {
                "kind": "llm",
                "instruction": "You pay.",
                "tools": [f"{folder}/shop.py:pay", "send_text_message"],
            }
        },
        "humans": {"ann": {"roles": ["owner"]}},
    }


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_approvals_are_accessible(desks: Desks, room: Room, color: str) -> None:
    async with asked(desks, room) as (desk, _, _):
        await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
        await audit(desk.page)  # the hint in the thread
        await goes_there(desk)
        await audit(desk.page)
        await edits(desk, path=1)
        await audit(desk.page)
        await desk.page.set_viewport_size(NARROW)
        await desk.is_drawn()
        await audit(desk.page)
        assert await desk.page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
