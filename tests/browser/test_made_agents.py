"""Agents created and changed on the page, and their models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import expect

from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
    When,
)
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.scene import Scene, View
from tests.browser.test_accessibility import audit_views
from tests.e2e.support.config_network import run_config
from tests.unit.configs.people import Person

SENTENCE = "a reviewer who reads diffs and is blunt"
DRAFT = {"name": "reviewer", "description": "Reads diffs", "instruction": "You read diffs."}
NETWORK = """\
network:
  {{name: made, listen: "127.0.0.1:0", auth: open, store: "sqlite::memory:", agent_folder: {{}}}}
channels: {{general: {{}}, desk: {{members: []}}}}
models:
  default: {{model: scripted, base_url: "{url}", price: {{input: 1, output: 2}}}}
  gone: {{model: gone, base_url: "http://127.0.0.1:9/v1", retries: 0}}
"""


def script() -> Script:
    """The model writes drafts, answers beside the form, and is the agent's model."""

    def says(system: str, text: str, *, tool: bool = False) -> ScriptRule:
        finish = ScriptedCall(tool="finish", arguments={"reason": "said", "message": text})
        answer = ScriptedAnswer(calls=[finish]) if tool else ScriptedAnswer(text=text)
        return ScriptRule(when=When(system=system), answer=answer)

    return Script(
        rules=[
            says("You draft an agent", json.dumps(DRAFT)),
            says("^You read diffs kindly.$", "That is a nice diff."),
            says("You read diffs kindly", "Kindly: no.", tool=True),
            says("You read diffs", "Bluntly: no.", tool=True),
            ScriptRule(answer=ScriptedAnswer(text="Paris")),
        ]
    )


async def _looks_right(desk: Desk) -> None:
    """Audit the current view."""
    await audit_views(desk, [View(desk.page.url)], Scene({}))


async def _stopped_and_started(desk: Desk) -> None:
    reviewer = desk.main.get_by_role("listitem", name="reviewer")
    await expect(reviewer).to_contain_text("Running")
    await reviewer.get_by_role("button", name="Log reviewer").click()
    await _looks_right(desk)
    await reviewer.get_by_role("button", name="Stop reviewer").click()
    await expect(reviewer).to_contain_text("Stopped")
    await expect(reviewer).to_contain_text("ann stopped it")
    await desk.visit("thread", "dm.ann.reviewer")
    await desk.says("Are you there?")
    await desk.sees("reviewer is not running: ann stopped it")
    await desk.visit("agents")
    await reviewer.get_by_role("button", name="Start reviewer").click()
    await expect(reviewer).to_contain_text("Running")
    await desk.visit("thread", "dm.ann.reviewer")
    await expect(desk.message("Bluntly: no.")).to_have_count(2)
    await desk.visit("agents")


async def _costs_and_another_try(desk: Desk) -> None:
    await desk.message("Bluntly").get_by_role("link", name="Try it again").click()
    await desk.main.get_by_label("System prompt").fill("You read diffs kindly, always.")
    await desk.main.get_by_role("button", name="Try", exact=True).click()
    sides = desk.main.locator(".side-by-side")
    await expect(sides).to_contain_text("Bluntly: no.")
    await expect(sides).to_contain_text("Kindly: no.")
    await desk.visit("costs")
    for name, title in (("Model", "scripted"), ("Asked by", "ann"), ("Agent", "reviewer")):
        await expect(desk.main.get_by_role("table").filter(has_text=name)).to_contain_text(title)


@pytest.mark.behaviour("U-16", "U-17")
async def test_an_agent_is_created_from_a_sentence_tried_changed_and_rolled_back(
    desks: Desks, tmp_path: Path
) -> None:
    async with ModelServer(script()) as model:
        (tmp_path / "net.yaml").write_text(NETWORK.format(url=model.base_url))
        async with run_config(str(tmp_path / "net"), tmp_path) as network:
            desk = await desks.sit(network.url, "ann")
            page, main = desk.page, desk.main
            await main.get_by_role("button", name="Make your own agent").click()
            await expect(main.get_by_label("What should it do?")).to_be_focused()
            await page.keyboard.type(SENTENCE)
            await _looks_right(desk)
            await main.get_by_role("button", name="Make it and talk to it").click()
            await expect(desk.composer).to_have_attribute("aria-label", "Message reviewer")
            await desk.composer.fill("What of this diff?")
            await page.get_by_role("button", name="Send").click()
            await desk.sees("Bluntly: no.")
            await expect(main.get_by_role("button", name="Spent here today: $")).to_be_visible()
            await _costs_and_another_try(desk)

            await desk.visit("agents")
            await _stopped_and_started(desk)
            await main.get_by_role("link", name="Change reviewer").click()
            instruction = main.get_by_label("Instruction")
            await instruction.fill("You read diffs kindly.")
            await main.get_by_label("Send it a message").fill("Hello?")
            await main.get_by_role("button", name="Ask").click()
            await expect(main).to_contain_text("That is a nice diff.")
            await main.get_by_label("Steps per turn").fill("0")
            await expect(main.get_by_role("alert")).to_have_text(
                "max_steps is 0: expected at least 1"
            )
            await main.get_by_label("Steps per turn").fill("")
            await expect(main.get_by_role("alert")).to_have_count(0)
            await _looks_right(desk)
            await main.get_by_role("button", name="Save and restart").click()
            versions = main.get_by_role("region", name="Versions").get_by_role("listitem")
            await expect(versions).to_have_count(2)
            await expect(versions.first).to_contain_text("Version 2")
            await desk.visit("thread", "dm.ann.reviewer")
            await desk.says("And now?")
            await desk.sees("Kindly: no.")

            await desk.visit("agent", "reviewer")
            await instruction.fill("You read diffs gladly.")
            await main.get_by_label("Roll out to").select_option("20 % of the threads")
            await main.get_by_role("button", name="Save and restart").click()
            await expect(versions.first).to_contain_text("Version 3")
            text = (tmp_path / "agents.d" / "reviewer.yaml").read_text()
            assert "instruction: You read diffs kindly.\n" in text
            assert "rollout:\n      share: 0.2\n      instruction: You read diffs gladly.\n" in text
            await main.get_by_label("Roll out to").select_option("all threads")
            await main.get_by_role("button", name="Save and restart").click()
            await expect(versions.first).to_contain_text("Version 4")
            await main.get_by_role("button", name="Use this version: Version 1").click()
            await expect(instruction).to_have_value("You read diffs.")
            await main.get_by_role("button", name="Remove").click()
            await main.get_by_role("button", name="Remove reviewer").click()
            await expect(main.get_by_role("listitem", name="reviewer")).to_contain_text(
                "no longer exists"
            )
            assert list((tmp_path / "agents.d").iterdir()) == []

            await desk.visit("models")
            await main.get_by_role("button", name="Test all").click()
            await expect(main.get_by_role("listitem", name="default")).to_contain_text("Paris")
            gone = main.get_by_role("listitem", name="gone")
            await expect(gone).to_contain_text("its endpoint cannot be reached")
            await _looks_right(desk)
            await desks.leave()


async def test_no_draft_and_no_change_made_elsewhere_costs_the_text_in_the_form(
    desks: Desks, tmp_path: Path
) -> None:
    held = ScriptedAnswer(text=json.dumps(DRAFT), hold="draft")
    drafts = ScriptRule(when=When(system="You draft an agent"), answer=held)
    async with ModelServer(Script(rules=[drafts, *script().rules])) as model:
        (tmp_path / "net.yaml").write_text(NETWORK.format(url=model.base_url))
        async with run_config(str(tmp_path / "net"), tmp_path) as network:
            bob = await network.join("bob")
            desk = await desks.sit(network.url, "ann")
            await _writes_while_a_draft_is_generated(desk, model)
            await bob.client.call("add_agent", agent="reviewer", instruction="You read diffs.")
            await _edits_what_bob_edits(desk, bob)
            text = (tmp_path / "agents.d" / "reviewer.yaml").read_text()
            assert "instruction: You read diffs in verse.\n" in text
            assert "usd: 0.5" in text
            await desks.leave()


async def _writes_while_a_draft_is_generated(desk: Desk, model: ModelServer) -> None:
    main = desk.main
    await desk.visit("agent")
    await main.get_by_text("All settings").click()
    await main.get_by_label("What should it do?").fill(SENTENCE)
    await main.get_by_role("button", name="Draft the rest").click()
    await model.held("draft")
    await main.get_by_label("Instruction").fill("You read diffs in verse.")
    model.release("draft")
    await expect(main.get_by_label("Name")).to_have_value("reviewer")
    await expect(main.get_by_label("Description")).to_have_value("Reads diffs")
    await expect(main.get_by_label("Instruction")).to_have_value("You read diffs in verse.")
    await desk.visit("agents")
    await desk.visit("agent")
    await expect(main.get_by_label("Instruction")).to_have_value("You read diffs in verse.")
    await main.get_by_role("button", name="Discard").click()
    await expect(main.get_by_label("What should it do?")).to_have_value("")


async def _edits_what_bob_edits(desk: Desk, bob: Person) -> None:
    main = desk.main
    await desk.visit("agent", "reviewer")
    instruction, limit = main.get_by_label("Instruction"), main.get_by_label("Dollars per")
    await expect(instruction).to_have_value("You read diffs.")
    kindly = "You read diffs kindly."
    await bob.client.call("edit_agent", agent="reviewer", version=1, instruction=kindly)
    save = main.get_by_role("button", name="Save and restart")
    alert = main.get_by_role("alert")
    await limit.fill("$5")  # not the same as no limit
    await expect(alert).to_have_text("input should be a valid number")
    await main.get_by_label("Steps per").fill("2.5")
    await save.click()
    await expect(limit).to_be_focused()
    await main.get_by_label("Steps per").fill("")
    await limit.fill("0.5")
    await expect(alert).to_have_count(0)
    await instruction.fill("You read diffs in verse.")
    await instruction.press("Tab")
    await save.click()
    await expect(alert).to_contain_text("reviewer was changed meanwhile")
    await expect(alert).to_be_in_viewport()
    differs = main.get_by_role("region", name="What differs").first
    await expect(differs).to_contain_text("kindly")
    await expect(instruction).to_have_value("You read diffs in verse.")
    await save.click()
    versions = main.get_by_role("region", name="Versions").get_by_role("listitem")
    await expect(versions.first).to_contain_text("Version 3")
    await expect(alert).to_have_count(0)
    await instruction.fill("You read diffs in prose.")
    await desk.reload()
    await expect(instruction).to_have_value("You read diffs in prose.")
    await main.get_by_role("button", name="Discard").click()
    await expect(instruction).to_have_value("You read diffs in verse.")
