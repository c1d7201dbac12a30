"""A network under load whose Postgres is killed or paused, or whose hub is killed."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.hubs import DEADLINE_S, UNBOUND, HubProcess, running_hub
from tests.e2e.support.traffic import Ledger, Stream, exchange
from tests.postgres_server import PostgresServer

FAULTS = 20
pytestmark = [pytest.mark.postgres, pytest.mark.timeout((FAULTS + 4) * DEADLINE_S)]
PATIENT = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.1, retries=100_000))
"""Clients retry until the store is back."""
KINDS: dict[str, Kind] = {"ann": "human", "bob": "agent", "cyd": "agent"}
STREAMS = [
    Stream("ann", "bob"),
    Stream("bob", "all"),
    Stream("cyd", "general"),
    Stream("cyd", "ann"),
]


@pytest.mark.behaviour("R-1", "S-1")
async def test_killing_postgres_under_load_neither_loses_nor_duplicates_messages(
    tmp_path: Path, server: PostgresServer
) -> None:
    chance = random.Random(20_26)
    async with _under_load(tmp_path, server) as (_, ledger):
        for _ in range(FAULTS):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(chance.randint(10, 60))
                await asyncio.to_thread(server.kill)
                await asyncio.to_thread(server.start)
                await ledger.more_acks(10)


async def test_pausing_postgres_under_load_only_delays_messages(
    tmp_path: Path, server: PostgresServer
) -> None:
    async with _under_load(tmp_path, server) as (_, ledger):
        for _ in range(FAULTS):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(10)
                server.send(signal.SIGSTOP)
                assert not await asyncio.to_thread(server.answers)
                server.send(signal.SIGCONT)
                await ledger.more_acks(10)


async def test_a_killed_hub_resumes_from_postgres(tmp_path: Path, server: PostgresServer) -> None:
    async with _under_load(tmp_path, server) as (hub, ledger):
        for _ in range(5):
            async with asyncio.timeout(DEADLINE_S):
                await ledger.more_acks(30)
                await hub.kill()
                await hub.start()
                await ledger.more_acks(1)


@asynccontextmanager
async def _under_load(
    folder: Path, server: PostgresServer
) -> AsyncIterator[tuple[HubProcess, Ledger]]:
    """A hub on the server whose participants send. At the end every message is accounted for, also
    with a mod that writes to its tables for each."""
    ledger = Ledger()
    network = {**UNBOUND, "store": server.url()}
    async with (
        running_hub(folder, channels=["general"], mods=["search"], network=network) as hub,
        AsyncExitStack() as stack,
    ):
        clients = {
            name: await stack.enter_async_context(
                Client(WebSocketTransport(hub.url), name, kind, options=PATIENT)
            )
            for name, kind in KINDS.items()
        }
        async with exchange(clients, STREAMS, ledger):
            yield hub, ledger
    check_log(ledger, server.url(), STREAMS)


def check_log(ledger: Ledger, url: str, streams: Sequence[Stream]) -> None:
    """The log has every acknowledged message once, at its position."""
    with psycopg.connect(url) as db:
        rows = db.execute(
            "SELECT seq, convert_from(body, 'UTF8')::json ->> 'content' FROM hubbub.message "
            "WHERE sender <> 'hub' ORDER BY seq"
        ).fetchall()
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM hubbub.message ORDER BY seq")]
    ledger.check_rows(rows, seqs, streams)
