"""A whole network in one call."""

from __future__ import annotations

import asyncio
import os
import signal
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hubbub.app.happenings import MessageSeen, NetworkUp, Stopping
from hubbub.app.network import serve
from hubbub.client import Client, WebSocketTransport
from hubbub.client.runfile import find_run_files, state_dir
from hubbub.config.loader import LoadedConfig
from hubbub.errors import ConnectionLost, OperationError, UserError
from hubbub.protocol.operations import SendResult
from tests.unit.app.conftest import Loading
from tests.unit.app.seen import Seen

TEXT = """
network: {{name: n, auth: {auth}, listen: '127.0.0.1:0', store: 'sqlite::memory:'}}
channels: {{general: {{}}}}
humans: {{ann: {{roles: [owner]}}, bob: {{}}}}
"""


@asynccontextmanager
async def running(config: LoadedConfig) -> AsyncIterator[tuple[Seen, str]]:
    """The network, until the block ends; what is seen of it, and its URL."""
    seen, stop = Seen(), asyncio.Event()
    task = asyncio.create_task(serve(config, seen, stop=stop))
    await seen.until(lambda all: bool(all) or task.done())
    try:
        up = seen.all[0]
        assert isinstance(up, NetworkUp)
        yield seen, up.url
    finally:
        stop.set()
        await task


async def test_the_network_tells_when_it_is_up_and_where(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (seen, url):
        up = seen.all[0]
        assert isinstance(up, NetworkUp)
        assert (up.network, up.auth, up.humans, up.channels) == (
            "n",
            "open",
            ("ann", "bob"),
            ("general",),
        )
        assert url.startswith("ws://127.0.0.1:")
        assert not url.endswith(":0")


async def test_every_message_is_reported(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (seen, url):
        async with Client(WebSocketTransport(url), "ann", "human") as ann:
            await ann.call("send_text_message", to="bob", text="psst")
        await seen.until(lambda all: any(isinstance(h, MessageSeen) for h in all))
    message = next(h.message for h in seen.all if isinstance(h, MessageSeen))
    assert (message.sender_id, message.text) == ("ann", "psst")


@pytest.mark.behaviour("C-4")
async def test_programs_of_the_same_user_find_the_network_and_its_tokens(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="tokens"))) as (_, url):
        (run,) = find_run_files()
        assert (run.url, run.network, run.pid, run.humans) == (
            url,
            "n",
            os.getpid(),
            ["ann", "bob"],
        )
        assert set(run.tokens) == {"operator", "ann", "bob"}
        async with Client(WebSocketTransport(url), "bob", "human", token=run.tokens["bob"]) as bob:
            value = await bob.call("send_text_message", to="ann", text="hi")
            assert SendResult.model_validate(value).absent == ("ann",)
    assert find_run_files() == []


async def test_the_run_file_is_readable_by_its_user_alone(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="tokens"))):
        (path,) = find_files(state_dir())
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def find_files(folder: Path) -> list[Path]:
    return list(folder.glob("run/*.json"))


async def test_tokens_of_one_run_do_not_open_the_next(loading: Loading) -> None:
    config = loading(TEXT.format(auth="tokens"))
    async with running(config):
        token = find_run_files()[0].tokens["ann"]
    async with running(config) as (_, url):
        with pytest.raises(OperationError, match="does not prove 'ann'"):
            async with Client(WebSocketTransport(url), "ann", "human", token=token):
                pass


async def test_stopping_sends_everybody_away_to_come_back(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (_, url):
        client = Client(WebSocketTransport(url), "guest", "human")
        await client.__aenter__()
    try:
        async with asyncio.timeout(30):
            async for item in client.events():
                if type(item).__name__ == "Disconnected":
                    break
    finally:
        await client.__aexit__(None, None, None)


async def test_a_port_in_use_stops_the_start_with_a_sentence(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (_, url):
        address = url.removeprefix("ws://")
        taken = loading(TEXT.format(auth="open").replace("127.0.0.1:0", address))
        seen = Seen()
        with pytest.raises(UserError, match="in use"):
            await serve(taken, seen, stop=asyncio.Event())
        assert seen.all == []


@pytest.mark.behaviour("L-5")
async def test_a_signal_stops_the_network(loading: Loading) -> None:
    seen = Seen()
    task = asyncio.create_task(serve(loading(TEXT.format(auth="open")), seen, signals=True))
    await seen.until(lambda all: bool(all))
    os.kill(os.getpid(), signal.SIGTERM)
    async with asyncio.timeout(30):
        await task
    assert seen.all[-1] == Stopping("SIGTERM")
    assert find_run_files() == []


async def fetched(url: str, path: str) -> str:
    """The hub's answer to a browser."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = f"GET {path} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n"
    writer.write(request.encode())
    async with asyncio.timeout(30):
        text = (await reader.read(-1)).decode()
    writer.close()
    return text


async def test_the_hub_serves_the_page_and_says_how_else_to_join(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="tokens"))) as (_, url):
        page, joining = await fetched(url, "/"), await fetched(url, "/join")
    for text in (page, joining):
        assert text.startswith("HTTP/1.1 200 OK")
    assert "<!doctype html>" in page.lower()
    assert f"hubbub chat --address {url.removeprefix('ws://')}" in joining
    assert '"token"' in joining


async def test_one_who_comes_after_the_end_is_refused(loading: Loading) -> None:
    async with running(loading(TEXT.format(auth="open"))) as (_, url):
        pass
    with pytest.raises(ConnectionLost):
        async with Client(WebSocketTransport(url), "guest", "human"):
            pass
