"""Commands, run in this process, against a network that runs in a thread beside them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pydantic import JsonValue

from hubbub.app.happenings import Happening, NetworkUp
from hubbub.app.network import serve
from hubbub.cli.app import run
from hubbub.config.loader import load

NETWORK = """
network: {name: town, auth: open, listen: '127.0.0.1:0', store: 'sqlite:town.db'}
channels: {general: {description: Everybody}}
humans: {ann: {roles: [owner], card: {description: The mayor}}}
"""


@dataclass
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    def json(self) -> JsonValue:
        assert self.code == 0, self.err
        value: JsonValue = json.loads(self.out)
        return value


Command = Callable[..., Ran]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fresh folder as the current one, and a state folder without any networks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    for name in ("HUBBUB_TOKEN", "HUBBUB_AS", "HUBBUB_DEBUG", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def hubbub(home: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs a command line: `hubbub("send", "ann", "hello")`."""

    def hubbub(*args: str) -> Ran:
        capsys.readouterr()
        code = run(args)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return hubbub


@pytest.fixture
def town(home: Path) -> Iterator[str]:
    """A running network without agents; its URL."""
    with running(NETWORK, home) as url:
        yield url


@contextmanager
def running(text: str, folder: Path) -> Iterator[str]:
    """The network of a YAML text, in a thread of its own; its URL."""
    path = folder / "town.yaml"
    path.write_text(text, encoding="utf-8")
    config = load(path, environ={})
    up = threading.Event()
    urls: list[str] = []
    loops: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    def report(happening: Happening) -> None:
        if isinstance(happening, NetworkUp):
            urls.append(happening.url)
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
