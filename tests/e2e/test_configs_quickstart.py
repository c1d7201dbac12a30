"""The network of `make run`, as a new user sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.e2e.support.config_network import ROOT, ConfigNetwork, run_config, run_here
from tests.unit.configs.people import Person

pytestmark = [pytest.mark.slow, pytest.mark.asyncio(loop_scope="module")]

QUICKSTART = ROOT / "configs" / "quickstart.yaml"
QUESTION = "how many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?"
INTEROP = re.compile(r"(hubbub\.interop|acp|mcp)(\.|$)")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def network(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ConfigNetwork]:
    """The quickstart in its own processes, which log their imports. It must stop cleanly."""
    folder, variables = tmp_path_factory.mktemp("quickstart"), {"PYTHONPROFILEIMPORTTIME": "1"}
    async with run_config("quickstart", folder, variables) as network:
        await network.shows("Hello! I am concierge")
        yield network


@pytest.mark.behaviour("L-7", "L-5")
async def test_the_quickstart_agents_greet_answer_and_stop_cleanly(
    network: ConfigNetwork,
) -> None:
    ann, ben = await network.join("ann"), await network.join("ben")
    await _ask_in_the_channel(ann, ben)
    await _ask_directly(ann)
    await _tell_a_secret(ann, ben)
    await _see_it_in_the_terminal(network)


@pytest.mark.behaviour("I-9")
async def test_the_quickstart_imports_no_interop_code(network: ConfigNetwork) -> None:
    await network.shows(r"import time:.*hubbub\.agents\.runner")  # in an agent's process
    ann = await network.join("ann")
    await ann.asks("concierge", "hello, what can you do?")
    lines = [line for line in network.output if "import time:" in line]
    imported = [line.rpartition("|")[2].strip() for line in lines]
    assert "hubbub.network.hub" in imported
    assert [module for module in imported if INTEROP.match(module)] == []


async def test_hubbub_ask_answers_questions_from_a_pipe(
    network: ConfigNetwork, tmp_path: Path
) -> None:
    environment = {
        **os.environ, "HUBBUB_ADDRESS": network.url, "HUBBUB_AS": "zoe",
        "HUBBUB_STATE_DIR": str(tmp_path),
    }  # fmt: skip

    def ask(*words: str, piped: str = "") -> str:
        done = subprocess.run(
            [sys.executable, "-m", "hubbub", "ask", *words], env=environment, input=piped,
            capture_output=True, text=True, timeout=100, check=True,
        )  # fmt: skip
        return done.stdout

    answer = "12 * 7 km in miles ≈ 52.19518 miles\n"
    assert ask("calculator", piped="12 * 7 km in miles") == answer
    assert "You can ask:" in ask("hello, what can you do?")


async def _ask_in_the_channel(ann: Person, ben: Person) -> None:
    await ann.posts("general", f"@concierge {QUESTION}")
    for person in (ann, ben):
        answer = await person.hears("concierge", lambda m: m.type == "channel")
        assert answer.text.startswith("≈ 163,743.74 miles")
        assert "librarian: The diameter of Jupiter is 142,984 km." in answer.text
        assert "calculator: (142,984 km) + (120,536 km) in miles" in answer.text


async def _ask_directly(ann: Person) -> None:
    assert await ann.asks("calculator", "what is 0.1 + 0.2?") == "0.1 + 0.2 = 0.3"
    assert "log is the truth" in await ann.asks("librarian", "is the log the truth?")
    assert "calculator: Calculates" in await ann.asks("concierge", "who can calculate?")


async def _tell_a_secret(ann: Person, ben: Person) -> None:
    await ann.asks("librarian", "My locker code is swordfish.")
    assert "swordfish" in await ann.asks("librarian", "what is my locker code?")
    assert "swordfish" not in await ben.asks("librarian", "what is the locker code?")


async def _see_it_in_the_terminal(network: ConfigNetwork) -> None:
    """The terminal shows sender and recipient of a direct message, but not its text."""
    await network.shows(r"librarian → concierge +\(\d+ characters\)")
    assert "swordfish" not in "".join(network.output)


async def test_the_librarian_remembers_messages_from_before_a_restart(tmp_path: Path) -> None:
    async with run_here(QUICKSTART, tmp_path) as network:
        ann = await network.join("ann")
        await ann.posts("general", "The password of the wiki is tulip.")
    async with run_here(QUICKSTART, tmp_path) as network:
        ben = await network.join("ben")
        assert "tulip" in await ben.asks("librarian", "what is the password of the wiki?")
