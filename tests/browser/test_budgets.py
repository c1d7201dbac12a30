"""What work may cost and has cost, whom a limit keeps asleep, and what marks messages carry."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, expect

from hubbub.protocol.operations import SendResult
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Plan, Room
from tests.browser.support.worker import Worker, worker

pytestmark = pytest.mark.behaviour("H-144")

THREAD = "dm.ann.clerk"
BUDGETS: Plan = {"budgets": {"tokens": 1000, "usd": 0.5, "wakes": 2}}


@asynccontextmanager
async def working(desks: Desks, settings: Plan) -> AsyncIterator[tuple[Desk, Worker, Room]]:
    """The clerk works at what ann has asked it for in its first turn."""
    async with Room.open(settings) as room, worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        yield desk, clerk, room
        await desks.leave()


def meter(desk: Desk, name: str) -> Locator:
    return desk.main.get_by_role("region", name="Budget").get_by_role("meter", name=name)


async def test_an_interaction_shows_what_is_used_of_each_limit(desks: Desks) -> None:
    async with working(desks, BUDGETS) as (desk, clerk, _):
        await clerk.spends(600, 50, 0.125)
        await desk.visit("interaction", f"i{clerk.turn.rpartition('-m')[2]}")
        await expect(meter(desk, "Tokens")).to_have_attribute("aria-valuetext", "650 of 1,000")
        await expect(meter(desk, "Money")).to_have_attribute("aria-valuetext", "$0.13 of $0.50")
        await expect(meter(desk, "Turns")).to_have_attribute("aria-valuenow", "1")
        await expect(desk.main.get_by_text("reached")).to_have_count(0)
        await clerk.spends(1100, 50, 0.2)
        await clerk.ends()
        await expect(meter(desk, "Tokens")).to_have_attribute("aria-valuenow", "1000")
        await expect(desk.main.get_by_text("reached").first).to_be_visible()


async def test_who_writes_is_told_whom_a_limit_has_kept_asleep(desks: Desks) -> None:
    async with working(desks, {"daily": {"agent": {"wakes": 1}}}) as (desk, _, _):
        await desk.says("and the cellar")
        words = "clerk is not woken: it has spent what it may spend in a day."
        await expect(desk.message("and the cellar").first).to_contain_text(words)
        await audit(desk.page)


async def test_who_writes_to_somebody_busy_is_told_so(desks: Desks) -> None:
    async with working(desks, {}) as (desk, _, room):
        ann = await room.join("ann")
        result = await ann.client.call("send_text_message", to="clerk", text="one more")
        waits = SendResult.model_validate(result).queued["clerk"]
        await desk.says("and another one")
        words = f"clerk gets to it after {waits} other{'s' if waits > 1 else ''}."
        await expect(desk.message("and another one")).to_contain_text(words)


async def test_a_message_tells_where_it_was_read_and_what_came_of_it(desks: Desks) -> None:
    async with working(desks, {}) as (desk, clerk, _):
        await desk.visit("thread", THREAD, opened=("message", f"m{clerk.turn.rpartition('-m')[2]}"))
        await expect(desk.details).to_contain_text("in the prompt from step 1 on")
        await clerk.spends(10, 10, 0.1)
        await clerk.says("ann", "It is tidy.")
        await clerk.ends()
        await expect(desk.details).to_contain_text("Answered")


async def test_an_agent_and_a_thread_show_what_they_cost(desks: Desks) -> None:
    settings: Plan = {"daily": {"agent": {"usd": 2.0}}}
    async with working(desks, settings) as (desk, clerk, _):
        await clerk.spends(1200, 34, 0.5)
        await clerk.ends()
        await desk.person("clerk").click()
        costs = desk.details.get_by_role("region", name="What it costs")
        row = costs.get_by_role("row").filter(has=desk.page.get_by_role("link", name="clerk"))
        await expect(row).to_contain_text("1,234")
        await expect(row).to_contain_text("$0.50")
        await expect(costs.get_by_role("meter")).to_have_attribute(
            "aria-valuetext", "$0.50 of $2.00"
        )
        await costs.get_by_role("button", name="30 days").click()
        await expect(row).to_contain_text("$0.50")
        await audit(desk.page)
        await desk.visit("thread", THREAD, opened=("thread", THREAD))
        row = costs.get_by_role("row").filter(has_text="clerk")
        await expect(row).to_contain_text("$0.50")


async def test_a_list_of_turns_says_which_wait_for_a_person(desks: Desks) -> None:
    async with working(desks, {}) as (desk, clerk, _):
        await clerk.asks()
        await desk.visit("turns")
        await expect(desk.main.get_by_role("row").nth(1)).to_contain_text("Waits for approval")


async def test_what_comes_from_outside_is_marked(desks: Desks) -> None:
    async with working(desks, {}) as (desk, clerk, _):
        await clerk.says("ann", "the page says hello", outside=True)
        await expect(await desk.sees("the page says hello")).to_contain_text("from outside")
        await clerk.says("ann", "and it says goodbye", outside=True)
        await expect(await desk.sees("and it says goodbye")).not_to_contain_text("from outside")
        await clerk.says("ann", "I say hello")
        await expect(await desk.sees("I say hello")).not_to_contain_text("from outside")


async def test_requests_and_their_ends_are_marked(desks: Desks) -> None:
    async with working(desks, {}) as (desk, clerk, room), worker(room, "scribe") as scribe:
        asked = SendResult.model_validate(
            await clerk.client.call(
                "delegate", to="scribe", task="count the files", cause=clerk.turn, deadline_s=600
            )
        )
        await scribe.begins()
        await scribe.client.call(
            "report", request=asked.id, status="failed", text="no such folder", cause=scribe.turn
        )
        await desk.visit("thread", "dm.clerk.scribe")
        await expect(await desk.sees("count the files")).to_contain_text("Task, until")
        ended = await desk.sees("no such folder")
        await expect(ended).to_contain_text("Failed")
        await expect(ended.get_by_role("link", name="the task")).to_be_visible()
        await audit(desk.page)


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_budgets_are_accessible_on_a_telephone(desks: Desks, color: str) -> None:
    async with working(desks, BUDGETS) as (desk, clerk, _):
        await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
        await clerk.spends(900, 99, 0.6)
        await clerk.ends()
        await desk.page.set_viewport_size(NARROW)
        await desk.visit("interaction", f"i{clerk.turn.rpartition('-m')[2]}")
        await expect(meter(desk, "Tokens")).to_be_visible()
        await audit(desk.page)
        assert await desk.page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
