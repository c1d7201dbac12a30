"""The cases that the page shows run, and pass with a model that does what they want."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.app.case_files import find_cases, load_cases
from hubbub.app.prompt_tests import run_cases
from hubbub.config.loader import LoadedConfig, load
from hubbub.testing.model_server import Answer, Call, ModelServer, Rule, Script, When
from tests.doc_pages import ROOT, blocks

PAGE = ROOT / "docs/how-to/test-your-prompts.md"
SCRIPT = Script(
    rules=[
        Rule(
            when=When.model_validate({"system": "You sort the mail of Acme"}),
            answer=Answer(text='{"queue": "billing", "urgent": true}'),
        ),
        Rule(
            when=When.model_validate({"incoming": "order 7", "step": 1}),
            answer=Answer(calls=[Call(tool="find_order", arguments={"number": 7})]),
        ),
        Rule(
            when=When.model_validate({"tool_result": "sent on Monday"}),
            answer=Answer(
                calls=[
                    Call(
                        tool="send_text_message",
                        arguments={"to": "ann", "text": "It was sent on Monday."},
                    ),
                    Call(tool="finish", arguments={"reason": "answered"}),
                ]
            ),
        ),
    ]
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The folder that the page lets its reader write."""
    for block in blocks(PAGE):
        if block.name is not None:
            (tmp_path / block.name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / block.name).write_text(block.text)
    return tmp_path


def loaded(folder: Path, server: ModelServer) -> LoadedConfig:
    return load(folder / "shop.yaml", environ={"OPENAI_BASE_URL": server.base_url})


@pytest.mark.behaviour("Q-10")
async def test_the_cases_of_the_page_pass(shop: Path) -> None:
    async with ModelServer(SCRIPT) as server:
        config = loaded(shop, server)
        files = [*find_cases(config), shop / "clerk.yaml"]
        report = await run_cases(config, load_cases(config, files))
    assert [case.placed.case.name for case in report.cases] == [
        "a refund goes to billing",
        "an order is looked up before it is spoken of",
    ]
    assert [run.failures for case in report.cases for run in case.runs] == [()] * 10
    assert report.passed


@pytest.mark.slow
async def test_the_program_of_the_page_runs(shop: Path) -> None:
    async with ModelServer(SCRIPT) as server:
        process = await start(shop, server)
    assert process.startswith("an order is looked up before it is spoken of 1.0 Interval(low=0.56")


async def start(shop: Path, server: ModelServer) -> str:
    """What the program prints."""
    environ = {**os.environ, "OPENAI_BASE_URL": server.base_url, "PYTHONPATH": str(ROOT)}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "rehearsal.py", cwd=shop, env=environ, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode()
