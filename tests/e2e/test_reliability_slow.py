"""Those who do not read cost the others nothing: a slow participant is a cursor that lags."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from benchmarks.wire import text_frame
from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Signal
from tests.e2e.support.crowd import Mute, idle_crowd, mute
from tests.e2e.support.hubs import NO_LIMIT, HubProcess, running_hub
from tests.e2e.support.traffic import Ledger, Stream, read, write

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

IDLE = 500
EXTRA_KIB = 4 * 1024
NAMES = ("ann", "bob", "cyd")
BIG = 60_000
IMPATIENT = {**NO_LIMIT, "unsent_for": 1}
"""A hub that waits 1 s, instead of 10, for one who does not read."""


async def _join(hub: HubProcess, stack: AsyncExitStack, name: str) -> Client:
    return await stack.enter_async_context(Client(WebSocketTransport(hub.url), name, "human"))


async def _gone(client: Client, participant: str) -> None:
    """Wait for the signal that the participant is no longer present."""
    async for item in client.events():
        if isinstance(item, Signal) and item.type == "presence" and isinstance(item.data, dict):
            offline = item.data["offline"]
            assert isinstance(offline, list)
            if participant in offline:
                return


async def _exchange(hub: HubProcess, ledger: Ledger, streams: list[Stream], count: int) -> None:
    """Everybody sends `count` messages per stream while all read; returns when all has arrived."""
    async with AsyncExitStack() as stack:
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        clients = {name: await _join(hub, stack, name) for name in NAMES}
        reading = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        stop = asyncio.Event()
        writing = [
            tasks.create_task(write(clients[s.sender], s, ledger, stop, window=8)) for s in streams
        ]
        while min(len(ledger.acked[s.name]) for s in streams) < count:
            await ledger.more_acks(1)
        stop.set()
        await asyncio.gather(*writing)
        await ledger.all_arrived(streams, [*NAMES])
        for task in reading:
            task.cancel()


async def _peak_with(folder: Path, *, reading: bool) -> int:
    """The hub's peak memory in KiB with a crowd and load, while `mute` is away or does not read."""
    ledger = Ledger()
    streams = [Stream("ann", "bob+mute", BIG), Stream("bob", "all"), Stream("cyd", "ann")]
    async with running_hub(folder, limits=IMPATIENT) as hub, AsyncExitStack() as stack:
        watcher = await _join(hub, stack, "watcher")
        crowd = await stack.enter_async_context(idle_crowd(hub, IDLE))
        async with mute(hub, "mute") as silent:
            if not reading:
                # The hub waits a second for an answer to its close frame, then cuts the line.
                closing = asyncio.create_task(_closing(watcher, silent))
                await _exchange(hub, ledger, streams, 150)
                assert await closing == CloseCode.SLOW
        if reading:
            await _exchange(hub, ledger, streams, 150)
        assert not any(one.lost for one in crowd), "an idle peer was thrown out"
        peak = hub.peak_kib()
        ledger.check_readers(streams, [*NAMES])
        await _returns(hub, ledger, streams)
    return peak


async def _closing(watcher: Client, silent: Mute) -> int | None:
    """The close code that `mute` reads when it is gone."""
    await _gone(watcher, "mute")
    return await silent.read_to_the_end()


async def _returns(hub: HubProcess, ledger: Ledger, streams: list[Stream]) -> None:
    """`mute` comes back, reads, and has missed nothing."""
    before = ledger.disconnects
    async with AsyncExitStack() as stack:
        client = await _join(hub, stack, "mute")
        task = asyncio.create_task(read(client, ledger))
        await ledger.all_arrived(streams, ["mute"])
        task.cancel()
    ledger.check_readers(streams, ["mute"])
    assert ledger.disconnects == before, "one who reads is not closed for having much to read"


@pytest.mark.behaviour("R-4", "B-9")
async def test_five_hundred_idle_peers_and_one_that_never_reads_disturb_nobody(
    tmp_path: Path,
) -> None:
    folders = [tmp_path / "away", tmp_path / "mute"]
    for folder in folders:
        folder.mkdir()
    away = await _peak_with(folders[0], reading=True)
    mute = await _peak_with(folders[1], reading=False)
    assert mute - away <= EXTRA_KIB


async def test_a_peer_that_asks_much_and_reads_nothing_is_closed_before_it_costs_memory(
    tmp_path: Path,
) -> None:
    ledger = Ledger()
    stream = Stream("ann", "mute", BIG)
    async with running_hub(tmp_path) as hub, AsyncExitStack() as stack:
        watcher = await _join(hub, stack, "watcher")
        async with mute(hub, "mute"):
            pass
        await _exchange(hub, ledger, [stream], 100)
        before = hub.peak_kib()
        args = {"thread": "dm.ann.mute", "limit": 100}
        call = {"op": "call", "ref": "r", "name": "read_thread", "args": args}
        asked = text_frame(json.dumps(call).encode()) * 100
        gone = asyncio.create_task(_gone(watcher, "mute"))
        async with mute(hub, "mute", asked):
            await gone
        assert hub.peak_kib() - before <= 32 * 1024
