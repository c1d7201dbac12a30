"""Commands run in this process, against a network in another thread."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.app.lifecycle import LifecycleEvent, NetworkUp
from hubbub.app.network import serve
from hubbub.cli.app import run
from hubbub.client import Client, WebSocketTransport
from hubbub.config.loader import load
from hubbub.testing.model_server import ModelServer, Script

NETWORK = """
network: {name: town, auth: open, listen: '127.0.0.1:0', store: 'sqlite::memory:'}
channels: {general: {description: Everybody}}
humans: {ann: {roles: [owner], card: {description: The mayor}}}
"""
_CHANGES = {
    r"127\.0\.0\.1:\d+": "<address>",
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?": "<time>",
    r"\d\d \w{3} \d\d:\d\d|\b\d\d:\d\d(:\d\d)?\b": "<time>",
    r"\b\d+(\.\d+)? m?s\b": "<span>",
    r"([^\s│]) {2,}": r"\1  ",
    r"x{80,}": "x…x",
    r"#[0-9a-f]{8}\b": "#<hash>",
}
"""Replacements for text that differs between runs, and for the column widths that follow."""


@dataclass
class CommandResult:
    code: int
    out: str
    err: str

    def json(self) -> Any:
        assert self.code == 0, self.err
        value: JsonValue = json.loads(self.out)
        return value


class Shell:
    """Runs command lines: `hubbub("send", "ann", "hello")`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *args: str) -> CommandResult:
        self._capsys.readouterr()
        code = run(args)
        out, err = self._capsys.readouterr()
        return CommandResult(code, out, err)

    def transcript(self, *lines: str) -> str:
        """The commands and their output, without text that differs between runs."""
        output = []
        for line in lines:
            result = self(*shlex.split(line))
            output.append(f"$ hubbub {line}\n{result.out}{result.err}")
            if result.code:
                output.append(f"(exit code {result.code})\n")
        return settled("".join(output).replace(str(Path.cwd()), "<cwd>"))


def settled(text: str) -> str:
    """The text with everything that differs between runs replaced."""
    for pattern, replacement in _CHANGES.items():
        text = re.sub(pattern, replacement, text)
    return text


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A new current folder, and a state folder without networks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    for name in (
        "HUBBUB_TOKEN", "HUBBUB_AS", "HUBBUB_ADDRESS", "HUBBUB_DEBUG", "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def hubbub(home: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capsys)


@pytest.fixture
def town(home: Path) -> Iterator[str]:
    """Runs a network without agents; yields its URL."""
    with running(NETWORK, home) as url:
        yield url


@contextmanager
def running(text: str, folder: Path) -> Iterator[str]:
    """Run the network of a YAML text in its own thread; yields its URL."""
    path = folder / "town.yaml"
    path.write_text(text, encoding="utf-8")
    config = load(path, environ={})
    up = threading.Event()
    urls: list[str] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def report(event: LifecycleEvent) -> None:
        if isinstance(event, NetworkUp):
            urls.append(event.url)
            up.set()

    async def work() -> None:
        stop = asyncio.Event()
        loops.append((asyncio.get_running_loop(), stop))
        await serve(config, report, stop=stop)

    thread = threading.Thread(target=asyncio.run, args=(work(),), daemon=True)
    thread.start()
    try:
        assert up.wait(20), "the network did not start"
        yield urls[0]
    finally:
        loop, stop = loops[0]
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        assert not thread.is_alive(), "the network did not stop"


def call(tool: str, **arguments: JsonValue) -> JsonValue:
    return {"tool": tool, "arguments": arguments}


def calls(tool: str, **arguments: JsonValue) -> JsonValue:
    """An answer of a scripted model with one call."""
    return {"calls": [call(tool, **arguments)]}


def sends(to: str, text: str) -> JsonValue:
    """An answer of a scripted model that sends a message and ends the turn."""
    return {"calls": [call("send_text_message", to=to, text=text), call("finish", reason="done")]}


@pytest.fixture(scope="module")
def endpoint(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs a model that follows the `SCRIPT` of the test's module in a thread; yields its URL."""
    loop, up, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()
    server = ModelServer(Script.model_validate(request.module.SCRIPT))
    urls: list[str] = []

    async def serve() -> None:
        async with server:
            urls.append(server.base_url)
            up.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert up.wait(20), "the model server did not start"
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()


def as_person(url: str, name: str, work: Callable[[Client], Awaitable[object]]) -> None:
    """Join the network as a person, and do the work."""

    async def join() -> None:
        async with Client(WebSocketTransport(url), name, "human") as client:
            await work(client)

    asyncio.run(join())
