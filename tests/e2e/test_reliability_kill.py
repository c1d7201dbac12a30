"""A hub killed or restarted under load keeps each acknowledged message once, at its position."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.hubs import DEADLINE_S, QUICK, HubProcess, running_hub
from tests.e2e.support.traffic import HandMade, Ledger, Stream, exchange, write

KILLS = 20
pytestmark = [pytest.mark.slow, pytest.mark.timeout((KILLS + 2) * DEADLINE_S)]
"""Each kill has its own deadline; the total depends on the machine."""
SEED = 20_26
KINDS: dict[str, Kind] = {"ann": "human", "bob": "agent", "cyd": "agent"}
DIALOGUE = [Stream("ann", "bob"), Stream("bob", "ann")]
BY_HAND = Stream("raw", "cyd")
"""From a participant without our client library."""
STREAMS = [*DIALOGUE, Stream("ann", "all"), Stream("cyd", "general"), Stream("cyd", "raw")]


@pytest.mark.behaviour("R-1", "S-1")
async def test_twenty_kills_under_load_neither_lose_nor_duplicate_messages(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    ledger, stop = Ledger(), asyncio.Event()
    by_hand = HandMade(BY_HAND.sender, BY_HAND, ledger)
    streams, names = [*STREAMS, BY_HAND], [*KINDS, BY_HAND.sender]
    async with (
        running_hub(tmp_path, channels=["general"]) as hub,
        _clients(hub, KINDS) as clients,
        asyncio.TaskGroup() as tasks,
    ):
        task = tasks.create_task(by_hand.run(hub, stop))
        await ledger.more_acks(1)  # it has joined, so others can write to it
        async with exchange(clients, STREAMS, ledger, write):
            for _ in range(KILLS):
                async with asyncio.timeout(DEADLINE_S):
                    await ledger.more_acks(chance.randint(10, 100))
                    await hub.kill()
                    await hub.start()
                    await ledger.more_acks(1)
            stop.set()
            async with asyncio.timeout(DEADLINE_S):
                await by_hand.settled.wait()
                await ledger.all_arrived([BY_HAND], [BY_HAND.to])
        async with asyncio.timeout(DEADLINE_S):
            await ledger.all_arrived(STREAMS, [BY_HAND.sender])
        task.cancel()
    ledger.check_readers(streams, names)
    ledger.check_log(hub.database, streams)
    assert ledger.fresh_starts == 0, "a client did not resume where it was"


async def test_clients_resume_where_they_were_after_a_hub_restart(tmp_path: Path) -> None:
    ledger = Ledger()
    async with (
        running_hub(tmp_path) as hub,
        _clients(hub, ["ann", "bob"]) as clients,
        exchange(clients, DIALOGUE, ledger),
    ):
        for _ in range(2):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(50)
                assert await hub.terminate() == 0
                await hub.start()
                await ledger.more_acks(50)
    ledger.check_log(hub.database, DIALOGUE)


@asynccontextmanager
async def _clients(hub: HubProcess, names: Iterable[str]) -> AsyncIterator[dict[str, Client]]:
    async with AsyncExitStack() as stack:
        clients = {}
        for name in names:
            client = Client(WebSocketTransport(hub.url), name, KINDS[name], options=QUICK)
            clients[name] = await stack.enter_async_context(client)
        yield clients
