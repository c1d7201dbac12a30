"""`kill -9` of the hub under load: what was acknowledged stays, once, in its place."""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hubbub.client import Backoff, Client, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.hubs import DEADLINE_S, HubProcess
from tests.e2e.support.traffic import HandMade, Ledger, Stream, read, write

KILLS = 20
pytestmark = [pytest.mark.slow, pytest.mark.timeout((KILLS + 2) * DEADLINE_S)]
"""Each kill has a deadline of its own: how long all of them take is the machine's."""
SEED = 20_26
QUICK = Backoff(first_s=0.02, most_s=0.1)
"""Clients that come back at once, so that the hub's own time shows."""
KINDS: dict[str, Kind] = {"ann": "human", "bob": "agent", "cyd": "agent"}
STREAMS = [
    Stream("ann", "bob"),
    Stream("bob", "ann"),
    Stream("ann", "all"),
    Stream("cyd", "general"),
    Stream("cyd", "raw"),
    Stream("raw", "cyd"),
]


@pytest.mark.behaviour("R-1", "S-1")
async def test_twenty_kills_under_load_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path, channels=["general"])
    ledger, stop = Ledger(), asyncio.Event()
    await hub.start()
    try:
        async with AsyncExitStack() as stack:
            crowd = await _join(hub, ledger, stop, stack)
            await _kill_again_and_again(hub, ledger)
            stop.set()
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(*crowd.writers)
                await ledger.all_arrived(STREAMS, [*KINDS, "raw"])
            for task in crowd.endless:
                task.cancel()
        assert await hub.terminate() == 0
    finally:
        await hub.stop()
    ledger.check_readers(STREAMS, [*KINDS, "raw"])
    ledger.check_log(hub.database, STREAMS)
    assert ledger.fresh_starts == 0, "every client resumed where it was"
    assert "Traceback" not in hub.stderr()


class _Crowd:
    """The tasks of all participants."""

    def __init__(self, tasks: asyncio.TaskGroup) -> None:
        self.tasks = tasks
        self.writers: list[asyncio.Task[object]] = []
        """They end after `stop`."""
        self.endless: list[asyncio.Task[None]] = []


async def _join(
    hub: HubProcess, ledger: Ledger, stop: asyncio.Event, stack: AsyncExitStack
) -> _Crowd:
    crowd = _Crowd(await stack.enter_async_context(asyncio.TaskGroup()))
    clients = {}
    for name, kind in KINDS.items():
        client = Client(WebSocketTransport(hub.url), name, kind, backoff=QUICK)
        clients[name] = await stack.enter_async_context(client)
        crowd.endless.append(crowd.tasks.create_task(read(client, ledger)))
    raw = next(stream for stream in STREAMS if stream.sender == "raw")
    by_hand = HandMade("raw", raw, ledger)
    crowd.endless.append(crowd.tasks.create_task(by_hand.run(hub, stop)))
    await ledger.more_acks(1)  # it is there: others may write to it
    crowd.writers.append(crowd.tasks.create_task(by_hand.settled.wait()))
    for stream in STREAMS:
        if stream is not raw:
            work = write(clients[stream.sender], stream, ledger, stop)
            crowd.writers.append(crowd.tasks.create_task(work))
    return crowd


async def _kill_again_and_again(hub: HubProcess, ledger: Ledger) -> None:
    """Each time after a random number of acknowledgements."""
    chance = random.Random(SEED)
    for _ in range(KILLS):
        async with asyncio.timeout(DEADLINE_S):
            await ledger.more_acks(chance.randint(10, 100))
            await hub.kill()
            await hub.start()
            await ledger.more_acks(1)
