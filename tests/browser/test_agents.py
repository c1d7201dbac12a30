"""People and agents at work together, as the page shows it."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desks
from tests.browser.support.room import Room
from tests.e2e.support.config_network import run_config


async def test_an_agent_at_work_is_seen_also_by_who_comes_later_until_it_answers(
    desks: Desks, newsroom: Room, model: ModelServer
) -> None:
    ann = await desks.sit(newsroom, "ann")
    await ann.talk_to("editor")
    await ann.says("think slowly")
    await model.held("thinking")
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    await ann.page.reload()
    await expect(ann.thread("dm.ann.editor")).to_contain_text("thinking")
    bob = await desks.sit(newsroom, "bob")
    await expect(bob.person("editor")).to_contain_text("working elsewhere")
    model.release("thinking")
    await ann.sees("I have thought about it.")
    await expect(ann.thread("dm.ann.editor")).not_to_contain_text("thinking")
    await expect(bob.person("editor")).not_to_contain_text("working elsewhere")


@pytest.mark.behaviour("U-16")
async def test_an_owner_stops_an_agent_s_process_and_starts_it_again_and_nothing_is_lost(
    desks: Desks, tmp_path: Path
) -> None:
    async with run_config("quickstart", tmp_path) as network:
        desk = await desks.sit(network.url.replace("ws:", "http:"), "ann")
        await desk.threads.get_by_role("link", name="Agents").click()
        calculator = desk.main.get_by_role("listitem", name="calculator")
        await expect(calculator).to_contain_text("Running")
        await calculator.get_by_role("button", name="Log calculator").click()
        await audit(desk.page)
        await calculator.get_by_role("button", name="Stop calculator").click()
        await expect(calculator).to_contain_text("Stopped")
        await expect(calculator).to_contain_text("ann has stopped it")
        await desk.visit("thread", "dm.ann.calculator")
        await desk.says("what is 6 * 7?")
        await desk.sees("calculator does not run: ann has stopped it")
        await desk.visit("agents")
        await calculator.get_by_role("button", name="Start calculator").click()
        await expect(calculator).to_contain_text("Running")
        await desk.visit("thread", "dm.ann.calculator")
        await desk.sees("6 * 7 = 42")
        await desks.leave()
