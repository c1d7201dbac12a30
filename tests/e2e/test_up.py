"""`hubbub up` as a user runs it, with real processes, signals and agents."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.cli.init import starter_files
from hubbub.client import Client, WebSocketTransport
from tests.e2e.support.agents import all_present
from tests.e2e.support.config_network import running_up
from tests.interaction import acp_program

pytestmark = pytest.mark.slow

WITHIN_S = 100.0
Line = Mapping[str, JsonValue]


class Up:
    """A running `hubbub up --json`, and the lines it has printed."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        self.lines: list[Line] = []

    async def until(self, condition: Callable[[Line], bool]) -> Line:
        """The next line for which the condition holds."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while raw := await self.process.stdout.readline():
                line: Line = json.loads(raw)
                self.lines.append(line)
                if condition(line):
                    return line
        _, err = await self.process.communicate()
        exited = f"it exited with {self.process.returncode} after {self.lines}"
        raise AssertionError(f"{exited}: {(err or b'').decode()}")

    async def event(self, name: str) -> Line:
        return await self.until(lambda line: line["event"] == name)

    async def message(self, text: str) -> Line:
        """The next message with this text."""
        return await self.until(lambda line: content(line) == text)

    async def ended(self) -> int:
        async with asyncio.timeout(WITHIN_S):
            await self.process.communicate()
        return self.process.returncode if self.process.returncode is not None else -1

    def pids(self) -> list[int]:
        return [int(str(line["pid"])) for line in self.lines if line["event"] == "agent_started"]


def content(line: Line) -> JsonValue:
    message = line.get("message")
    return message["content"] if isinstance(message, dict) else None


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new folder with the starter network and its own state folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for name, text in starter_files([]).items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


async def start(*args: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "hubbub", *args,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, limit=1024 * 1024,
    )  # fmt: skip


@asynccontextmanager
async def up(*args: str) -> AsyncIterator[Up]:
    """A network on a free port, killed at the end if it is still running."""
    process = await start("up", "--json", "--direct-texts", "--listen", "127.0.0.1:0", *args)
    try:
        yield Up(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def refused(*args: str) -> str:
    """The error of a `hubbub up` that must exit with 2 and start nothing."""
    process = await start("up", *args)
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert b"Traceback" not in err
    return err.decode()


async def hubbub(*args: str) -> str:
    """The output of a command, which must succeed."""
    process = await start(*args)
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err
    return out.decode()


async def running(pids: list[int]) -> bool:
    """Whether one of the processes exists and is not a zombie."""
    probe = await asyncio.create_subprocess_exec(
        "ps", "-o", "stat=", "-p", ",".join(map(str, pids)), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await probe.communicate()
    return any(not state.startswith(b"Z") for state in out.split())


async def gone(pids: list[int]) -> None:
    """Waits until none of the processes runs."""
    async with asyncio.timeout(WITHIN_S):
        while await running(pids):
            pass


TOGETHER = ["greeter", "second"]
GREETING = "Hello! Write to me with /dm greeter, or mention @greeter in a channel."
BAD = """
import os
from hubbub.agents.python.agent import Agent

class Bad(Agent):
    async def on_start(self):
        print('about to die')
        os._exit(9)
"""
THREE = """
include: hubbub.yaml
agents:
  greeter: {process: shared}
  second: {kind: python, class: agents/greeter.py:Greeter, process: shared}
  bad: {kind: python, class: bad.py:Bad}
"""


@pytest.mark.behaviour("L-4", "L-5", "R-6")
async def test_agents_greet_answer_and_restart_until_ctrl_c(home: Path) -> None:
    (home / "bad.py").write_text(BAD)
    (home / "net.yaml").write_text(THREE)
    async with up("net.yaml") as network:
        started = await network.event("up")
        assert started["agents"] == ["greeter", "second", "bad"]
        died = await network.event("agent_died")
        assert (died["agents"], died["code"], died["retry_in_s"]) == (["bad"], 9, 0.5)
        output = [line for line in network.lines if line["event"] == "agent_output"]
        assert [(line["agents"], line["line"]) for line in output] == [(["bad"], "about to die")]
        async with Client(WebSocketTransport(str(started["url"])), "ann", "human") as ann:
            await ann.call("send_text_message", to="second", text="one two three")
            await network.message("Hello ann! That was 3 words.")
            (shared,) = [line for line in network.lines if line.get("agents") == TOGETHER]
            os.kill(int(str(shared["pid"])), signal.SIGKILL)
            died = await network.until(lambda line: "code" in line and line["agents"] == TOGETHER)
            assert died["code"] == -signal.SIGKILL
            await ann.call("send_text_message", to="greeter", text="hello again")
            await network.message("Hello ann! That was 2 words.")
            texts = [content(line) for line in network.lines]
            assert texts.count(GREETING) == 1, "a restarted agent greeted again"
            # Output is no longer read, which must not block the network.
            async with asyncio.timeout(WITHIN_S):
                for _ in range(80):  # more than the pipe and its reader can buffer
                    await ann.call("broadcast_text_message", text="x" * 60_000)
        network.process.send_signal(signal.SIGINT)
        assert await network.ended() == 0
        await gone(network.pids())
    assert not list((home / "state" / "run").iterdir())


@pytest.mark.behaviour("L-5")
async def test_a_killed_hub_leaves_no_processes_and_can_be_started_again(
    home: Path,
) -> None:
    async with up() as network:
        await network.message(GREETING)
        network.process.kill()
        await network.ended()
        await gone(network.pids())
    process = await start("up", "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    shown = ""
    async with asyncio.timeout(WITHIN_S):
        while "greeter is here again." not in shown:
            shown += (await process.stdout.readline()).decode()
    process.terminate()
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    name, page = shown.splitlines()[:2]
    assert name == "hubbub my-network"
    assert page.split()[0] == "page"
    assert page.split()[1].startswith("http://127.0.0.1:")
    assert "greeter → everyone  " in shown
    assert out.decode().endswith("stopping …\n")


@pytest.mark.behaviour("L-3", "S-8", "S-9")
async def test_an_unusable_address_or_database_is_reported_before_anything_starts(
    home: Path,
) -> None:
    (home / "same.yaml").write_text("network: {auth: open, store: 'sqlite:hubbub.db'}")
    async with up("--no-agents") as network:
        url = str((await network.event("up"))["url"])
        address = url.removeprefix("ws://")
        text = await refused("same.yaml", "--listen", address, "--store", "sqlite:second.db")
        assert f"{address} is in use" in text
        assert "--listen" in text
        assert not (home / "second.db").exists()
        text = await refused("same.yaml", "--listen", "127.0.0.1:0")
        assert "in use by another hub" in text
        assert text.count("\n") == 1
        agent = await start("agents", "run", "agents/greeter.py")  # started by hand
        await all_present(url, "greeter")
        assert "sent" in await hubbub("send", "greeter", "hi")
        await network.message("Hello me! That was 1 word.")
        agent.terminate()
        await agent.communicate()
        assert agent.returncode == 0
        network.process.terminate()
        assert await network.ended() == 0
    with closing(sqlite3.connect(home / "hubbub.db")) as database:
        database.execute("PRAGMA user_version = 9999")
    assert "written by a newer Hubbub" in await refused("same.yaml", "--listen", "127.0.0.1:0")


QUIET = """
import asyncio
from hubbub.bridges.chat import Chat

class Quiet(Chat):
    title = "quiet"
    async def run(self, take): await asyncio.Event().wait()
    async def say(self, message): return None
"""


async def test_agents_and_bridges_started_by_hand_come_back_to_a_restarted_network(
    home: Path,
) -> None:
    (home / "quiet.py").write_text(QUIET)
    bridge = "bridges: {quiet: {kind: quiet.py:Quiet, channels: {general: there}}}\n"
    (home / "hubbub.yaml").write_text((home / "hubbub.yaml").read_text() + bridge)
    async with up("--no-agents") as network:
        url = str((await network.event("up"))["url"])
        target = ("--config", "hubbub.yaml", "-a", url)
        programs = [
            await start("agents", "run", "--name", "greeter", *target),
            await start("bridges", "run", "--name", "quiet", *target),
        ]
        await all_present(url, "greeter", "quiet")
        network.process.terminate()
        assert await network.ended() == 0
    async with up("--no-agents", "--listen", url.removeprefix("ws://")) as network:
        await network.event("up")
        await all_present(url, "greeter", "quiet")  # with the tokens that this start has made
        for program in programs:
            program.terminate()
            await program.communicate()
            assert program.returncode == 0


@pytest.mark.behaviour("L-3")
async def test_config_errors_are_reported_before_anything_starts(home: Path) -> None:
    (home / "boom.py").write_text("raise ValueError('boom')\nBot = 1\n")
    (home / "bad.yaml").write_text(
        "include: hubbub.yaml\nagents: {x: {kind: python, class: boom.py:Bot}}\n"
    )
    text = await refused("bad.yaml", "--store", "sqlite:never.db")
    assert "boom.py:1: importing it raises Value" in text
    assert text.count("\n") == 1
    assert not (home / "never.db").exists()
    assert not (home / "state").exists()


async def test_a_coding_agent_that_ignores_the_end_of_its_input_ends_with_the_network(
    tmp_path: Path,
) -> None:
    pytest.importorskip("acp", reason="needs the extra `acp`")
    command = [sys.executable, "-I", str(Path(acp_program.__file__)), "stays"]
    coder = {"kind": "acp", "acp": {"command": command, "cwd": str(tmp_path)}}
    config = tmp_path / "network.yaml"
    network: dict[str, JsonValue] = {"name": "coding", "auth": "open"}
    config.write_text(json.dumps({"network": network, "agents": {"coder": coder}}))
    async with running_up(config, tmp_path) as running:
        me = await running.join("me")
        await me.tells("coder", "say hello")
        assert (await me.hears("coder")).text == "hello"
        await running.left()
        assert await running.stop() == 0
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid.txt").read_text()), 0)
