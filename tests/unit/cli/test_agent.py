"""`agent run` and `testing model-server`: what they refuse."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.joining import Target, default_person
from hubbub.client import Client, WebSocketTransport
from tests.unit.cli.conftest import Command, Ran


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "agent run needs a Python file, or --config with --name"),
        (("bot.py", "--config", "net.yaml"), "agent run needs a Python file, or --config"),
        (("gone.py",), "gone.py: this file does not exist"),
        (("empty.py",), "empty.py: defines no subclass of hubbub.Agent"),
        (("--config", "gone.yaml"), "gone.yaml: does not exist"),
    ],
)
def test_what_cannot_be_run_is_told(
    home: Path, hubbub: Command, args: tuple[str, ...], expected: str
) -> None:
    (home / "empty.py").write_text("x = 1\n")
    ran = hubbub("agent", "run", *args)
    assert (ran.code, ran.out) == (2, "")
    assert expected in ran.err


def test_an_agent_that_is_connected_already_is_not_joined_by_another(
    town: str, home: Path, hubbub: Command
) -> None:
    (home / "notes.py").write_text("from hubbub import Agent\n\n\nclass Notes(Agent):\n    pass\n")

    async def while_it_runs() -> Ran:
        async with Client(WebSocketTransport(town), "notes", "agent"):
            return await asyncio.to_thread(hubbub, "agent", "run", "notes.py")

    ran = asyncio.run(while_it_runs())
    assert (ran.code, ran.out) == (2, "")
    assert "notes: already connected; give another --name, or --replace" in ran.err


@pytest.mark.slow
async def test_an_agent_says_what_it_joins_until_ctrl_c(town: str, home: Path) -> None:
    (home / "notes.py").write_text("from hubbub import Agent\n\n\nclass Notes(Agent):\n    pass\n")
    command = [sys.executable, "-m", "hubbub", "agent", "run", "notes.py"]
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    assert process.stdout is not None
    async with asyncio.timeout(30):
        said = (await process.stdout.readline()).decode()
        assert said == f"notes joins town at {town}; Ctrl-C stops\n"
        async with Client(WebSocketTransport(town), "ann", "human") as ann:
            async for item in ann.events():  # until its presence is told
                if "notes" in str(item):
                    break
        process.send_signal(signal.SIGINT)
        await process.wait()


def test_a_script_that_is_not_there_is_told(hubbub: Command) -> None:
    ran = hubbub("testing", "model-server", "gone.yaml")
    assert ran.code == 2
    assert "gone.yaml" in ran.err


def test_who_says_nothing_is_the_networks_person(town: str) -> None:
    assert default_person(Target(), None) == "ann"
    assert default_person(Target(), "bob") == "bob"
