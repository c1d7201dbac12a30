"""`hubbub ask` as people and scripts use it: processes of its own, a network, a pipe, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.support.config_network import run_config

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEADLINE_S = 100.0
HUBBUB = [sys.executable, "-m", "hubbub"]
DREAMER = """
import asyncio

from hubbub import Agent, Message


class Dreamer(Agent):
    async def on_direct(self, message: Message) -> str:
        await asyncio.Event().wait()
        return "never"
"""
FILE = """
network: {name: office, auth: open, listen: '127.0.0.1:0', store: 'sqlite::memory:'}
humans: {ann: {}}
agents: {dreamer: {kind: python, class: 'dreamer.py:Dreamer'}}
"""


@contextmanager
def office(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a user whose network runs."""
    (folder / "office.yaml").write_text(FILE)
    (folder / "dreamer.py").write_text(DREAMER)
    environment = {
        **os.environ,
        "HUBBUB_STATE_DIR": str(folder / "state"),
        "HUBBUB_AS": "ann",
    }
    up = subprocess.Popen(
        [*HUBBUB, "up", str(folder / "office.yaml"), "--json"],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert up.stdout is not None
    try:
        told = iter(up.stdout.readline, "")
        assert any('"event": "up"' in line for line in told), "the network does not come up"
        yield environment
    finally:
        up.terminate()
        up.communicate(timeout=DEADLINE_S)


def test_ctrl_c_stops_the_turn_that_is_waited_for(tmp_path: Path) -> None:
    with office(tmp_path) as environment:

        def run(*words: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*HUBBUB, *words], env=environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=DEADLINE_S,
            )  # fmt: skip

        follow = subprocess.Popen(
            [*HUBBUB, "messages", "list", "--follow", "--json"], env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        asking = subprocess.Popen(
            [*HUBBUB, "ask", "dreamer", "sleep well"], env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            assert follow.stdout is not None
            said = json.loads(follow.stdout.readline())
            assert said["content"] == "sleep well"
            while "running" not in run("turns", "list").stdout:
                assert asking.poll() is None
            asking.send_signal(signal.SIGINT)
            _, errors = asking.communicate(timeout=DEADLINE_S)
            assert (asking.returncode, errors.count("Traceback")) == (130, 0)
            turns = json.loads(run("turns", "list", "--json").stdout)["turns"]
            assert len(turns) == 1, turns
            (turn,) = turns
            assert (turn["agent"], turn["outcome"]) == ("dreamer", "cancelled")
        finally:
            for process in (follow, asking):
                process.kill()
                process.communicate(timeout=DEADLINE_S)


async def test_the_quickstart_answers_in_a_pipe(tmp_path: Path) -> None:
    async with run_config("quickstart", tmp_path) as network:
        await network.shows("Hello! I am concierge")
        environment = {
            **os.environ, "HUBBUB_ADDRESS": network.url, "HUBBUB_AS": "ann",
            "HUBBUB_STATE_DIR": str(tmp_path / "none"),
        }  # fmt: skip

        def ask(*words: str, piped: str = "") -> str:
            done = subprocess.run(
                [*HUBBUB, "ask", *words], env=environment, input=piped,
                capture_output=True, text=True, timeout=DEADLINE_S,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            return done.stdout

        assert (
            ask("calculator", piped="12 * 7 km in miles") == "12 * 7 km in miles ≈ 52.19518 miles\n"
        )
        assert "You can ask:" in ask("hello, what can you do?")
