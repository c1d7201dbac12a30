"""Branches of a conversation, and test cases from it."""

from __future__ import annotations

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
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desks
from tests.e2e.support.config_network import run_config

NETWORK = """\
network: {{name: shop, listen: "127.0.0.1:0", auth: open, store: "sqlite:shop.db"}}
models: {{default: {{model: scripted, base_url: "{url}"}}}}
humans: {{ann: {{roles: [owner]}}}}
agents:
  clerk: {{instruction: You answer., tools: ['orders.py:find_order']}}
"""
ORDERS = """\
from hubbub import tool


@tool
def find_order(number: int) -> str:
    '''Look an order up.'''
    return "a lamp"
"""


def script() -> Script:
    """The clerk answers directly, or looks up the order first if its instruction says so."""

    def rule(when: When, tool: str, **arguments: str | int) -> ScriptRule:
        return ScriptRule(
            when=when,
            answer=ScriptedAnswer(calls=[ScriptedCall(tool=tool, arguments=dict(arguments))]),
        )

    return Script(
        rules=[
            rule(When(system="Check first", step=1), "find_order", number=7),
            rule(When(system="Check first"), "finish", reason="said", message="A chair, I see."),
            rule(When(), "finish", reason="said", message="No idea."),
        ]
    )


@pytest.mark.behaviour("Q-12", "Q-13")
async def test_an_owner_branches_a_conversation_and_makes_a_test_case_of_it(
    desks: Desks, tmp_path: Path
) -> None:
    async with ModelServer(script()) as model:
        (tmp_path / "net.yaml").write_text(NETWORK.format(url=model.base_url))
        (tmp_path / "orders.py").write_text(ORDERS)
        async with run_config(str(tmp_path / "net"), tmp_path) as network:
            desk = await desks.sit(network.url, "ann")
            await desk.talk_to("clerk")
            await desk.says("What is order 7?")
            await desk.sees("No idea.")

            await desk.act(desk.message("No idea."), "More")
            await desk.page.get_by_role("menuitem", name="Make a test case of this").click()
            case = desk.page.get_by_role("dialog", name="Make a test case")
            await expect(case).to_contain_text("answered_by: clerk")
            await expect(case).to_contain_text("text: What is order 7?")
            await case.get_by_role("button", name="Close").click()
            await expect(case).to_be_hidden()

            await desk.act(desk.message("No idea."), "More")
            await desk.page.get_by_role("menuitem", name="What if…").click()
            form = desk.main.locator("form").filter(has_text="Instruction")
            await form.get_by_label("Instruction").fill("Check first.")
            await form.get_by_role("button", name="Continue from there").click()
            result = form.get_by_label('What should find_order {"number":7} return?')
            await result.fill("a chair")
            await form.get_by_role("button", name="Continue from there").click()
            branch = desk.main.get_by_role("region", name="In the branch")
            await expect(branch).to_contain_text("A chair, I see.")
            original = desk.main.get_by_role("region", name="Original")
            await expect(original).to_contain_text("No idea.")
            await audit(desk.page)
            await desk.visit("thread", "dm.ann.clerk")
            await expect(desk.message("A chair, I see.")).to_have_count(0)
            await desks.leave()
