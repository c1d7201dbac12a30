"""`hubbub up` as a user runs it: real processes, real signals, real agents."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.app.starters import starter_files
from hubbub.client import Client, WebSocketTransport

pytestmark = pytest.mark.slow

WITHIN_S = 60.0
Line = Mapping[str, JsonValue]


class Up:
    """A `hubbub up --json` that runs, and what it has told."""

    def __init__(self, process: asyncio.subprocess.Process):
        self.process = process
        self.lines: list[Line] = []

    async def until(self, condition: Callable[[Line], bool]) -> Line:
        """The first line, from here on, for which the condition holds."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while raw := await self.process.stdout.readline():
                line: Line = json.loads(raw)
                self.lines.append(line)
                if condition(line):
                    return line
        raise AssertionError(f"it ended with {await self.process.wait()} after {self.lines}")

    async def event(self, name: str) -> Line:
        return await self.until(lambda line: line["event"] == name)

    async def said(self, text: str) -> Line:
        """The message with this text."""
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
    """A fresh folder with the starter network, and a state folder of its own."""
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
        sys.executable,
        "-m",
        "hubbub",
        *args,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=1024 * 1024,
    )


@asynccontextmanager
async def up(*args: str) -> AsyncIterator[Up]:
    """A network on a free port; killed at the end if it still runs."""
    process = await start("up", "--json", "--direct-texts", "--listen", "127.0.0.1:0", *args)
    try:
        yield Up(process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def refused(*args: str) -> str:
    """What `hubbub up` says on stderr when it refuses; it has to end with 2 and start nothing."""
    process = await start("up", *args)
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert (process.returncode, out) == (2, b"")
    assert b"Traceback" not in err
    return err.decode()


async def hubbub(*args: str) -> str:
    """The output of a command that succeeds."""
    process = await start(*args)
    async with asyncio.timeout(WITHIN_S):
        out, err = await process.communicate()
    assert process.returncode == 0, err
    return out.decode()


async def running(pid: int) -> bool:
    """Whether a process is neither gone nor a zombie that waits for somebody to reap it."""
    probe = await asyncio.create_subprocess_exec(
        "ps", "-o", "stat=", "-p", str(pid), stdout=asyncio.subprocess.PIPE
    )
    out, _ = await probe.communicate()
    return bool(out.strip()) and not out.startswith(b"Z")


async def gone(pids: list[int]) -> None:
    async with asyncio.timeout(WITHIN_S):
        for pid in pids:
            while await running(pid):
                pass


GREETING = "Hello! Write to me with /dm greeter, or mention @greeter in a channel."


@pytest.mark.behaviour("L-5")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_agent_greets_answers_and_everything_stops_cleanly(
    home: Path, number: signal.Signals
) -> None:
    async with up() as network:
        told = await network.event("up")
        assert told["agents"] == ["greeter"]
        await network.said(GREETING)
        await hubbub("send", "greeter", "one two three")
        await network.said("Hello me! That was 3 words.")
        network.process.send_signal(number)
        assert await network.ended() == 0
        await gone(network.pids())
    assert not list((home / "state" / "run").iterdir())


@pytest.mark.behaviour("R-6")
async def test_a_terminal_that_was_stopped_stops_nobody_else(home: Path) -> None:
    async with up() as network:
        await network.said(GREETING)
        url = str(network.lines[0]["url"])
        async with (
            asyncio.timeout(WITHIN_S),
            Client(WebSocketTransport(url), "ann", "human") as ann,
        ):
            for _ in range(80):  # more than a pipe and this side's reader take
                await ann.call("broadcast_text_message", text="x" * 60_000)
        network.process.send_signal(signal.SIGINT)
        assert await network.ended() == 0


@pytest.mark.behaviour("L-5")
async def test_a_hub_that_is_killed_leaves_no_processes(home: Path) -> None:
    async with up() as network:
        await network.said(GREETING)
        network.process.kill()
        await network.ended()
        await gone(network.pids())
    async with up() as network:  # and the next one starts as if nothing had been
        await network.said("greeter is here again.")
        network.process.terminate()
        assert await network.ended() == 0


async def test_an_agent_that_is_killed_comes_back_and_greets_no_second_time(home: Path) -> None:
    async with up() as network:
        await network.said(GREETING)
        os.kill(network.pids()[0], signal.SIGKILL)
        died = await network.event("agent_died")
        assert (died["agents"], died["code"]) == (["greeter"], -signal.SIGKILL)
        await network.event("agent_started")
        await hubbub("send", "greeter", "hello again")
        await network.said("Hello me! That was 2 words.")
        assert [content(line) for line in network.lines].count(GREETING) == 1
        network.process.terminate()
        assert await network.ended() == 0


@pytest.mark.behaviour("L-4")
async def test_an_agent_that_cannot_live_is_left_alone_and_the_others_go_on(home: Path) -> None:
    bad = "import os\nfrom hubbub.agents.python.agent import Agent\n\nclass Bad(Agent):\n"
    bad += "    async def on_start(self):\n        print('about to die')\n        os._exit(9)\n"
    (home / "bad.py").write_text(bad)
    (home / "net.yaml").write_text(
        "include: hubbub.yaml\nagents: {bad: {kind: python, class: bad.py:Bad}}\n"
    )
    async with up("net.yaml") as network:
        line = await network.until(lambda line: line["event"] == "agent_output")
        assert (line["agents"], line["line"]) == (["bad"], "about to die")
        died = await network.event("agent_died")
        assert (died["code"], died["retry_in_s"]) == (9, 0.5)
        network.process.terminate()
        assert await network.ended() == 0


async def test_agents_may_share_a_process(home: Path) -> None:
    (home / "net.yaml").write_text(
        "include: hubbub.yaml\nagents:\n  greeter: {process: shared}\n"
        "  second: {kind: python, class: agents/greeter.py:Greeter, process: shared}\n"
    )
    async with up("net.yaml") as network:
        started = await network.event("agent_started")
        assert started["agents"] == ["greeter", "second"]
        await network.said(GREETING)
        await hubbub("send", "second", "hi")
        await network.said("Hello me! That was 1 word.")
        network.process.terminate()
        assert await network.ended() == 0


async def test_a_single_agent_joins_a_running_network(home: Path) -> None:
    async with up("--no-agents") as network:
        await network.event("up")
        agent = await start("agent", "run", "agents/greeter.py")
        await hubbub("send", "--broadcast", "who is there?")
        async with asyncio.timeout(WITHIN_S):
            while "present" not in await hubbub("who"):
                pass
        await hubbub("send", "greeter", "hi")
        await network.said("Hello me! That was 1 word.")
        agent.terminate()
        await agent.communicate()
        assert agent.returncode == 0
        network.process.terminate()
        assert await network.ended() == 0


async def test_the_terminal_shows_a_banner_and_messages(home: Path) -> None:
    process = await start("up", "--listen", "127.0.0.1:0")
    assert process.stdout is not None
    shown = ""
    async with asyncio.timeout(WITHIN_S):
        while GREETING not in shown:
            shown += (await process.stdout.readline()).decode()
    process.send_signal(signal.SIGINT)
    out, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")
    name, page = shown.splitlines()[:2]
    assert name == "hubbub my-network"
    assert page.split()[0] == "page"
    assert page.split()[1].startswith("http://127.0.0.1:")
    assert "greeter → everybody  " in shown
    assert out.decode().endswith("stopping …\n")


# What is refused leaves nothing half-started -------------------------------------------------


@pytest.mark.behaviour("L-3")
async def test_a_port_in_use_is_refused(home: Path) -> None:
    async with up("--no-agents") as network:
        url = str((await network.event("up"))["url"])
        address = url.removeprefix("ws://")
        text = await refused("--listen", address, "--store", "sqlite:second.db")
    assert f"{address} is in use" in text
    assert "--listen" in text
    assert not (home / "second.db").exists()


@pytest.mark.behaviour("S-9")
async def test_a_store_in_use_is_refused(home: Path) -> None:
    async with up("--no-agents") as network:
        await network.event("up")
        text = await refused("--listen", "127.0.0.1:0")
    assert "in use by another hub" in text
    assert text.count("\n") == 1


@pytest.mark.behaviour("S-8", "L-3")
async def test_a_database_of_another_version_is_refused(home: Path) -> None:
    async with up("--no-agents") as network:
        await network.event("up")
        network.process.terminate()
        assert await network.ended() == 0
    await asyncio.to_thread(from_the_future, home / "hubbub.db")
    text = await refused("--listen", "127.0.0.1:0")
    assert "written by a newer Hubbub" in text


def from_the_future(path: Path) -> None:
    import sqlite3

    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 9999")
    database.close()


@pytest.mark.behaviour("L-3")
@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ("network: {name: '${NOT_SET_ANYWHERE}'}", "bad.yaml:2: the environment variable NOT_SET"),
        ("models: {default: {model: m}}\nagents: {a: {}}", "needs a model"),
        ("agents: {x: {kind: python, class: boom.py:Bot}}", "boom.py:1: importing it raises Value"),
        ("agents: {greeter: {class: agents/greter.py:Greeter}}", "did you mean 'greeter.py'?"),
        ("mods: [moderatoin]", "bad.yaml:2: unknown mod 'moderatoin'; did you mean 'moderation'?"),
        ("network: {listen: '0.0.0.0:4820'}", "can be reached from other machines"),
    ],
)
async def test_a_mistake_in_the_config_is_refused_before_anything_starts(
    home: Path, config: str, expected: str
) -> None:
    (home / "boom.py").write_text("raise ValueError('boom')\nBot = 1\n")
    (home / "bad.yaml").write_text(f"include: hubbub.yaml\n{config}\n")
    text = await refused("bad.yaml", "--store", "sqlite:never.db")
    assert expected in text
    assert text.count("\n") == 1
    assert not (home / "never.db").exists()
    assert not (home / "state").exists()
