"""The tools that the pages show do what the pages say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.tuning import Tuning
from hubbub.config.loader import load
from hubbub.loading import load_attribute
from tests.doc_pages import example
from tests.unit.agents.calling import Pauses, call, failed, text

OWN = "docs/how-to/give-a-model-your-own-tools.md"


def tool_of(page: str, name: str, function: str, folder: Path) -> FunctionTool[..., object]:
    (folder / name).write_text(example(page, name))
    found = load_attribute(f"{name}:{function}", folder)
    assert isinstance(found, FunctionTool)
    return found


async def test_the_stock(tmp_path: Path) -> None:
    box = Toolbox([tool_of(OWN, "stock.py", "in_stock", tmp_path)])
    assert await text(box, "in_stock", article="nails") == "300"
    assert "there are: screws, nails" in str(
        (await failed(box, "in_stock", article="x"))["message"]
    )
    assert "for example screws" in str((await failed(box, "in_stock"))["message"])


async def test_paying_asks_repeats_and_pays_once(tmp_path: Path) -> None:
    pay = tool_of(OWN, "pay.py", "pay", tmp_path)
    assert (await failed(Toolbox([pay]), "pay", amount=1))["error"] == "needs_approval"
    approved = Conduct(tuning={"pay": Tuning(confirm=False)}, pause=Pauses())
    box = Toolbox([pay], approved)
    assert await text(box, "pay", amount=5) == "paid 5 EUR"
    assert await text(box, "pay", amount=5) == "paid 5 EUR"
    book = load_attribute("pay.py:BOOK", tmp_path)
    assert isinstance(book, dict)
    assert list(book.values()) == [5]
    result = await call(box, "pay", {"amount": 5000})
    assert (result.error, result.attempts) == ("busy", 4)


async def test_adding_up(tmp_path: Path) -> None:
    box = Toolbox([tool_of(OWN, "pay.py", "add_up", tmp_path)])
    assert await text(box, "add_up", upto=2000) == "2001000"


@pytest.mark.slow
async def test_the_sandboxed_expression(tmp_path: Path) -> None:
    box = Toolbox([tool_of("docs/explanation/sandbox.md", "risky.py", "evaluate", tmp_path)])
    assert await text(box, "evaluate", expression="6 * 7") == "42"
    told = await failed(box, "evaluate", expression="__import__('os').system('true')")
    assert "may not start processes" in str(told["message"])
    told = await failed(box, "evaluate", expression="'x' * 10**9")
    assert "more than 300 MiB" in str(told["message"])


@pytest.mark.slow
async def test_the_library(tmp_path: Path) -> None:
    page = "docs/how-to/use-mcp-servers.md"
    for name in ("library.py", "reading.yaml"):
        (tmp_path / name).write_text(example(page, name))
    config = load(tmp_path / "reading.yaml", environ={}).file.mcp_servers["library"]
    assert config.command is not None
    command = [sys.executable, *config.command[1:]]
    library = config.model_copy(update={"command": command})
    async with McpServers({"library": library}, tmp_path) as servers:
        box = Toolbox([], Conduct(mode="read_only"), source=servers)
        assert await text(box, "library_year_of", book="Emma") == "1815"
