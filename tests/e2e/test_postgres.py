"""A network whose store is a Postgres that dies or stands still under load, and its hub with it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import psycopg
import pytest

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.hubs import DEADLINE_S, UNBOUND, HubProcess, running_hub
from tests.e2e.support.traffic import Ledger, Stream, read, write_one_by_one
from tests.postgres_server import PostgresServer, running_postgres

FAULTS = 20
pytestmark = [pytest.mark.postgres, pytest.mark.timeout((FAULTS + 4) * DEADLINE_S)]
PATIENT = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.1, retries=100_000))
"""Clients that ask again until the store is back."""
KINDS: dict[str, Kind] = {"ann": "human", "bob": "agent", "cyd": "agent"}
STREAMS = [
    Stream("ann", "bob"),
    Stream("bob", "all"),
    Stream("cyd", "general"),
    Stream("cyd", "ann"),
]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.mark.behaviour("R-1", "S-1")
async def test_a_postgres_that_is_killed_under_load_loses_nothing_and_doubles_nothing(
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


async def test_a_postgres_that_stands_still_under_load_delays_and_that_is_all(
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


async def test_a_hub_that_is_killed_goes_on_from_its_postgres(
    tmp_path: Path, server: PostgresServer
) -> None:
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
    """A hub on the server whose participants send; in the end each message is accounted for, in
    the log and in the tables of a mod that writes with each."""
    ledger, stop = Ledger(), asyncio.Event()
    network = {**UNBOUND, "store": server.url()}
    async with (
        running_hub(folder, channels=["general"], mods=["search"], network=network) as hub,
        AsyncExitStack() as stack,
        asyncio.TaskGroup() as tasks,
    ):
        clients = {
            name: await stack.enter_async_context(
                Client(WebSocketTransport(hub.url), name, kind, options=PATIENT)
            )
            for name, kind in KINDS.items()
        }
        readers = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        writers = [
            tasks.create_task(write_one_by_one(clients[stream.sender], stream, ledger, stop))
            for stream in STREAMS
        ]
        yield hub, ledger
        stop.set()
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*writers)
            await ledger.all_arrived(STREAMS, list(clients))
        for task in readers:
            task.cancel()
    check_against_postgres(ledger, server, list(clients))


def check_against_postgres(ledger: Ledger, server: PostgresServer, clients: list[str]) -> None:
    """What readers got and what the log has is what was sent, once and in order."""
    ledger.check_readers(STREAMS, clients)
    with psycopg.connect(server.url()) as db:
        rows = db.execute(
            "SELECT seq, convert_from(body, 'UTF8')::json ->> 'content' FROM hubbub.message "
            "WHERE sender <> 'hub' ORDER BY seq"
        ).fetchall()
        seqs = [seq for (seq,) in db.execute("SELECT seq FROM hubbub.message ORDER BY seq")]
    ledger.check_rows(rows, seqs, STREAMS)
    assert ledger.fresh_starts == 0, "every client resumed where it was"
