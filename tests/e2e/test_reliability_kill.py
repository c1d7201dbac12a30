"""A hub that is killed, or ended, under load: what was acknowledged stays, once, in its place."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.hubs import DEADLINE_S, QUICK, HubProcess, running_hub
from tests.e2e.support.traffic import HandMade, Ledger, Stream, read, write, write_one_by_one

KILLS = 20
pytestmark = [pytest.mark.slow, pytest.mark.timeout((KILLS + 2) * DEADLINE_S)]
"""Each kill has a deadline of its own: how long all of them take is the machine's."""
SEED = 20_26
KINDS: dict[str, Kind] = {"ann": "human", "bob": "agent", "cyd": "agent"}
DIALOGUE = [Stream("ann", "bob"), Stream("bob", "ann")]
BY_HAND = Stream("raw", "cyd")
"""Of a participant without our client library."""
STREAMS = [
    *DIALOGUE,
    Stream("ann", "all"),
    Stream("cyd", "general"),
    Stream("cyd", "raw"),
    BY_HAND,
]
Writing = Callable[[Client, Stream, Ledger, asyncio.Event], Coroutine[None, None, None]]


@pytest.mark.behaviour("R-1", "S-1")
async def test_twenty_kills_under_load_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    async with _under_load(tmp_path, STREAMS, write) as (hub, ledger):
        for _ in range(KILLS):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(chance.randint(10, 100))
                await hub.kill()
                await hub.start()
                await ledger.more_acks(1)


async def test_clients_of_a_restarted_hub_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    async with _under_load(tmp_path, DIALOGUE, write_one_by_one) as (hub, ledger):
        for _ in range(2):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(50)
                assert await hub.terminate() == 0
                await hub.start()
                await ledger.more_acks(50)


@asynccontextmanager
async def _under_load(
    folder: Path, streams: Sequence[Stream], writing: Writing
) -> AsyncIterator[tuple[HubProcess, Ledger]]:
    """A hub whose participants send these streams; in the end each message is accounted for."""
    ledger, stop = Ledger(), asyncio.Event()
    names = list(dict.fromkeys(stream.sender for stream in streams))
    async with (
        running_hub(folder, channels=["general"]) as hub,
        AsyncExitStack() as stack,
        asyncio.TaskGroup() as tasks,
    ):
        endless = list[asyncio.Task[None]]()
        writers = list[asyncio.Task[object]]()
        clients = {}
        for name in names:
            if name != BY_HAND.sender:
                client = Client(
                    WebSocketTransport(hub.url),
                    name,
                    KINDS[name],
                    options=QUICK,
                )
                clients[name] = await stack.enter_async_context(client)
                endless.append(tasks.create_task(read(client, ledger)))
        if BY_HAND in streams:
            by_hand = HandMade(BY_HAND.sender, BY_HAND, ledger)
            endless.append(tasks.create_task(by_hand.run(hub, stop)))
            await ledger.more_acks(1)  # it is there: others may write to it
            writers.append(tasks.create_task(by_hand.settled.wait()))
        for stream in streams:
            if stream is not BY_HAND:
                work = writing(clients[stream.sender], stream, ledger, stop)
                writers.append(tasks.create_task(work))
        yield hub, ledger
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*writers)
            await ledger.all_arrived(streams, names)
        for task in endless:
            task.cancel()
    ledger.check_readers(streams, names)
    ledger.check_log(hub.database, streams)
    assert ledger.fresh_starts == 0, "every client resumed where it was"
