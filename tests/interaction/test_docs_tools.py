"""The tools and test cases on the pages do what the pages say."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.loader import load
from hubbub.lab.cases import find_cases, load_cases
from hubbub.lab.prompt_tests import run_cases
from hubbub.loading import load_attribute
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptRule, When
from tests.doc_pages import ROOT, blocks, example
from tests.interaction.agent_harness import call as calls
from tests.interaction.agent_harness import finish, says, send
from tests.unit.agents.calling import Pauses, call, failed, text

OWN = "docs/how-to/give-a-model-your-own-tools.md"


def load_tool(page: str, name: str, function: str, folder: Path) -> FunctionTool[..., object]:
    (folder / name).write_text(example(page, name))
    tool = load_attribute(f"{name}:{function}", folder)
    assert isinstance(tool, FunctionTool)
    return tool


async def test_the_stock_tool_returns_a_number_or_says_which_articles_exist(tmp_path: Path) -> None:
    box = Toolbox([load_tool(OWN, "stock.py", "in_stock", tmp_path)])
    assert await text(box, "in_stock", article="nails") == "300"
    unknown = await failed(box, "in_stock", article="x")
    assert "there are: screws, nails" in str(unknown["message"])
    assert "for example screws" in str((await failed(box, "in_stock"))["message"])


async def test_the_pay_tool_needs_approval_retries_and_pays_once(tmp_path: Path) -> None:
    pay = load_tool(OWN, "pay.py", "pay", tmp_path)
    assert (await failed(Toolbox([pay]), "pay", amount=1))["error"] == "needs_approval"
    approved = ToolPolicy(overrides={"pay": ToolOverrides(confirm=False)}, pause=Pauses())
    box = Toolbox([pay], approved)
    assert await text(box, "pay", amount=5) == "paid 5 EUR"
    assert await text(box, "pay", amount=5) == "paid 5 EUR"
    book = load_attribute("pay.py:BOOK", tmp_path)
    assert isinstance(book, dict)
    assert list(book.values()) == [5]
    result = await call(box, "pay", {"amount": 5000})
    assert (result.error, result.attempts) == ("busy", 4)
    adding = Toolbox([load_tool(OWN, "pay.py", "add_up", tmp_path)])
    assert await text(adding, "add_up", upto=2000) == "2001000"


@pytest.mark.slow
async def test_the_sandboxed_tool_cannot_start_processes_or_exceed_its_memory(
    tmp_path: Path,
) -> None:
    box = Toolbox([load_tool("docs/explanation/sandbox.md", "risky.py", "evaluate", tmp_path)])
    assert await text(box, "evaluate", expression="6 * 7") == "42"
    error = await failed(box, "evaluate", expression="__import__('os').system('true')")
    assert "may not start processes" in str(error["message"])
    error = await failed(box, "evaluate", expression="'x' * 10**9")
    assert "more than 300 MiB" in str(error["message"])


@pytest.mark.slow
async def test_the_mcp_server_on_the_page_answers_in_read_only_mode(tmp_path: Path) -> None:
    page = "docs/how-to/use-mcp-servers.md"
    for name in ("library.py", "reading.yaml"):
        (tmp_path / name).write_text(example(page, name))
    config = load(tmp_path / "reading.yaml", environ={}).file.mcp_servers["library"]
    assert config.command is not None
    command = [sys.executable, *config.command[1:]]
    library = config.model_copy(update={"command": command})
    async with McpServers({"library": library}, tmp_path) as servers:
        box = Toolbox([], ToolPolicy(mode="read_only"), source=servers)
        assert await text(box, "library_year_of", book="Emma") == "1815"


SCRIPT = Script(
    rules=[
        ScriptRule(
            when=When.model_validate({"system": "You sort the mail of Acme"}),
            answer=ScriptedAnswer(text='{"queue": "billing", "urgent": true}'),
        ),
        ScriptRule(
            when=When.model_validate({"incoming": "order 7", "step": 1}),
            answer=says(calls("find_order", number=7)),
        ),
        ScriptRule(
            when=When.model_validate({"tool_result": "sent on Monday"}),
            answer=says(send("ann", "It was sent on Monday."), finish("answered")),
        ),
    ]
)
"""A model that passes the cases on the page."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A folder with the files of the page about test cases."""
    for block in blocks(ROOT / "docs/how-to/test-your-prompts.md"):
        if block.name is not None:
            (tmp_path / block.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.name).write_text(block.text)
    return tmp_path


@pytest.mark.behaviour("Q-10")
async def test_the_cases_on_the_page_pass(shop: Path) -> None:
    async with ModelServer(SCRIPT) as server:
        config = load(shop / "shop.yaml", environ={"OPENAI_BASE_URL": server.base_url})
        files = [*find_cases(config), shop / "clerk.yaml", shop / "desk.yaml"]
        report = await run_cases(config, load_cases(config, files))
    assert [case.placed.case.name for case in report.cases] == [
        "a refund goes to billing",
        "an order is looked up before it is spoken of",
        "the clerk answers by itself",
        "ann gets an answer or a notice, whatever fails",
    ]
    assert [run.failures for case in report.cases for run in case.runs] == [()] * 20
    assert report.passed


@pytest.mark.slow
async def test_the_program_on_the_page_runs_the_cases(shop: Path) -> None:
    async with ModelServer(SCRIPT) as server:
        paths = {"OPENAI_BASE_URL": server.base_url, "PYTHONPATH": str(ROOT)}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "rehearsal.py", cwd=shop, env={**os.environ, **paths},
            stdout=subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
    assert process.returncode == 0
    assert out.startswith(
        b"an order is looked up before it is spoken of 1.0 ConfidenceInterval(low=0.56"
    )
