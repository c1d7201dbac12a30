"""`serve` runs a whole network."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from hubbub.app.lifecycle import MessagesSeen, NetworkUp, Stopping
from hubbub.app.network import serve
from hubbub.client import Client, Disconnected, WebSocketTransport
from hubbub.client.runfile import find_run_files, state_dir
from hubbub.config.loader import LoadedConfig
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.protocol.operations import SendResult
from tests.unit.app.seen import Seen
from tests.unit.conftest import Loading

TEXT = """
network: {{name: n, auth: {auth}, listen: '127.0.0.1:0', store: 'sqlite::memory:'}}
channels: {{general: {{}}}}
humans: {{ann: {{roles: [owner]}}, bob: {{}}}}
"""


@asynccontextmanager
async def running(config: LoadedConfig) -> AsyncIterator[tuple[Seen, str]]:
    """Run the network during the block; yields its lifecycle events and its URL."""
    seen, stop = Seen(), asyncio.Event()
    task = asyncio.create_task(serve(config, seen, stop=stop))
    await seen.until(lambda events: bool(events) or task.done())
    try:
        up = seen.all[0]
        assert isinstance(up, NetworkUp)
        yield seen, up.url
    finally:
        stop.set()
        await task


@pytest.mark.behaviour("C-4")
async def test_programs_of_the_same_user_find_the_network_with_its_tokens_and_page(
    loading: Loading,
) -> None:
    config = loading(TEXT.format(auth="tokens"))
    async with running(config) as (seen, url):
        up = seen.all[0]
        assert isinstance(up, NetworkUp)
        assert (up.network, up.auth) == ("n", "tokens")
        assert (up.humans, up.channels) == (("ann", "bob"), ("general",))
        assert url.startswith("ws://127.0.0.1:")
        assert not url.endswith(":0")
        (path,) = state_dir().glob("run/*.json")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        (run,) = find_run_files()
        assert (run.url, run.network, run.pid) == (url, "n", os.getpid())
        assert run.humans == ["ann", "bob"]
        assert set(run.tokens) == {"operator", "ann", "bob"}
        async with Client(WebSocketTransport(url), "bob", "human", token=run.tokens["bob"]) as bob:
            value = await bob.call("send_text_message", to="ann", text="psst")
            assert SendResult.model_validate(value).absent == ("ann",)
        await seen.until(lambda events: any(isinstance(e, MessagesSeen) for e in events))
        message = next(e.messages[0].message for e in seen.all if isinstance(e, MessagesSeen))
        assert (message.sender_id, message.text) == ("bob", "psst")
        page, join_page = await fetch(url, "/"), await fetch(url, "/join")
        assert page.startswith("HTTP/1.1 200 OK")
        assert join_page.startswith("HTTP/1.1 200 OK")
        assert "<!doctype html>" in page.lower()
        assert f"hubbub chat --address {url.removeprefix('ws://')}" in join_page
        assert '"token"' in join_page
    assert find_run_files() == []
    async with running(config) as (_, url):
        with pytest.raises(OperationError, match="does not prove 'bob'"):
            async with Client(WebSocketTransport(url), "bob", "human", token=run.tokens["bob"]):
                pass


async def test_stopping_disconnects_clients_and_refuses_new_ones(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (_, url):
        address = url.removeprefix("ws://")
        taken = loading(TEXT.format(auth="open").replace("127.0.0.1:0", address))
        seen = Seen()
        with pytest.raises(UserError, match="in use"):
            await serve(taken, seen, stop=asyncio.Event())
        assert seen.all == []
        client = Client(WebSocketTransport(url), "guest", "human")
        await client.__aenter__()
    try:
        async with asyncio.timeout(100):
            async for item in client.events():
                if isinstance(item, Disconnected):
                    break
    finally:
        await client.__aexit__(None, None, None)
    with pytest.raises(ConnectionLost):
        async with Client(WebSocketTransport(url), "guest", "human"):
            pass


@pytest.mark.behaviour("L-5")
async def test_sigterm_stops_the_network(loading: Loading) -> None:
    seen = Seen()
    task = asyncio.create_task(serve(loading(TEXT.format(auth="open")), seen, signals=True))
    await seen.until(lambda events: bool(events))
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(100):
        await task
    assert seen.all[-1] == Stopping("SIGTERM")
    assert find_run_files() == []


async def fetch(url: str, path: str) -> str:
    """The hub's response to a browser."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    async with asyncio.timeout(100):
        text = (await reader.read(-1)).decode()
    writer.close()
    return text
