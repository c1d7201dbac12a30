"""Costs and budgets of agents, and marks on messages."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect
from pydantic import JsonValue

from hubbub.protocol.operations import SendResult
from hubbub.protocol.turns import TurnEnd
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.room import Room, call
from tests.browser.support.worker import Worker, at_work, worker

pytestmark = pytest.mark.behaviour("H-144")

THREAD = "dm.ann.clerk"


def meter(desk: Desk, name: str) -> Locator:
    return desk.main.get_by_role("region", name="Budget").get_by_role("meter", name=name)


async def test_budgets_and_costs_are_shown_for_interactions_agents_and_threads(
    desks: Desks,
) -> None:
    budgets: JsonValue = {"tokens": 2000, "usd": 0.5, "wakes": 2}
    daily: JsonValue = {"agent": {"usd": 2.0}}
    async with (
        Room.open({"budgets": budgets, "daily": daily}) as room,
        at_work(desks, room) as (desk, clerk),
    ):
        await clerk.spends(600, 50, 0.125)
        await desk.visit("interaction", "i1")
        await expect(meter(desk, "Tokens")).to_have_attribute("aria-valuetext", "650 of 2,000")
        await expect(meter(desk, "Money")).to_have_attribute("aria-valuetext", "$0.13 of $0.50")
        await expect(meter(desk, "Turns")).to_have_attribute("aria-valuenow", "1")
        await expect(desk.main.get_by_text("reached")).to_have_count(0)
        await clerk.spends(1950, 84, 0.375)
        await clerk.ends()
        await expect(meter(desk, "Tokens")).to_have_attribute("aria-valuenow", "2000")
        await expect(desk.main.get_by_text("reached").first).to_be_visible()
        await desk.page.set_viewport_size(NARROW)
        await audit(desk.page)
        await desk.fits()
        await desk.page.set_viewport_size({"width": 1280, "height": 800})
        await desk.person("clerk").click()
        costs = desk.details.get_by_role("region", name="Costs")
        row = costs.get_by_role("row").filter(has=desk.page.get_by_role("link", name="clerk"))
        await expect(row).to_contain_text("2,034")
        await expect(row).to_contain_text("$0.38")
        await expect(costs.get_by_role("meter")).to_have_attribute(
            "aria-valuetext", "$0.38 of $2.00"
        )
        await costs.get_by_role("button", name="30 days").click()
        await expect(row).to_contain_text("$0.38")
        await desk.visit("costs")
        await expect(desk.main.get_by_role("list", name="Day by day")).to_contain_text("$0.38")
        for name in ("clerk", "2,034"):
            await expect(desk.main.get_by_role("row").filter(has_text=name).first).to_contain_text(
                "$0.38"
            )
        await audit(desk.page)
        bob = await room.join("bob")
        for spends in (True, False):
            await call(bob.client, "send_text_message", to="clerk", text="and my desk")
            await clerk.begins()
            if spends:
                await clerk.spends(1, 1, 0.125)
            await clerk.ends()
        asked_by = desk.main.get_by_role("table").filter(has_text="Asked by")
        await expect(asked_by.get_by_role("row", name="bob")).to_contain_text("1")
        await expect(asked_by.get_by_role("row", name="Total")).to_have_text("Total22,036$0.50")
        await desk.visit("thread", THREAD, opened=("thread", THREAD))
        await expect(costs.get_by_role("row").filter(has_text="clerk")).to_contain_text("$0.38")


async def test_a_message_shows_its_state_at_a_busy_agent_and_at_one_over_its_limit(
    desks: Desks,
) -> None:
    async with (
        Room.open({"daily": {"agent": {"wakes": 2}}}) as room,
        at_work(desks, room) as (desk, clerk),
    ):
        await desk.visit("thread", THREAD, opened=("message", "m1"))
        await expect(desk.details).to_contain_text("in its prompt since step 1")
        await desk.says("another one")
        note = desk.message("another one").get_by_text("clerk is busy with 1 other message.")
        await expect(note).to_be_visible()
        await clerk.spends(10, 10, 0.1)
        await clerk.says("ann", "It is tidy.")
        await clerk.ends()
        await expect(desk.details).to_contain_text("Answered")
        await expect(note).to_have_count(0)
        await clerk.begins()
        await desk.says("and the cellar")
        reason = "clerk was not woken: it reached its daily limit."
        await expect(desk.message("and the cellar").first).to_contain_text(reason)


async def test_untrusted_messages_requests_results_and_notices_are_marked(
    desks: Desks, room: Room
) -> None:
    async with at_work(desks, room) as (desk, clerk), worker(room, "scribe") as scribe:
        for text, marked in (("the page says", 1), ("and it says", 0)):
            await clerk.says("ann", text, untrusted=True)
            await expect((await desk.sees(text)).get_by_text("untrusted")).to_have_count(marked)
        await clerk.says("ann", "I say hello")
        await expect(await desk.sees("I say hello")).not_to_contain_text("untrusted")
        asked = SendResult.model_validate(
            await call(
                clerk.client,
                "delegate", to="scribe", task="count the files", cause=clerk.turn, deadline_s=600,
            )
        )  # fmt: skip
        await scribe.begins()
        report = {"request": asked.id, "status": "failed", "text": "no such folder"}
        await scribe.client.call("report", **report, cause=scribe.turn)
        await desk.visit("thread", "dm.clerk.scribe")
        await expect(await desk.sees("count the files")).to_contain_text("Task, until")
        ended = await desk.sees("no such folder")
        await expect(ended).to_contain_text("Failed")
        await expect(ended.get_by_role("link", name="the task")).to_be_visible()
        # An error message has no mentions or links, and the notice has no author.
        porter = Worker(await room.enters("porter"))
        await desk.talk_to("porter")
        await desk.says("carry this")
        await porter.begins()
        reason = "500: `model` said @ann [see](https://elsewhere.example/) m1"
        end = TurnEnd(id=porter.turn, outcome="model_error", reason=reason)
        await porter.client.call("end_turn", end=end)
        notice = desk.conversation.get_by_role("article", name="Notice from the hub")
        await expect(notice).to_contain_text(reason)
        await expect(notice.locator(".prose").locator("a, button")).to_have_count(0)
        await expect(notice.locator(".avatar")).to_have_count(0)
        await audit(desk.page)
        await desk.composer.press("Escape")
        await desk.page.keyboard.press("k")
        await expect(notice).to_be_focused()
