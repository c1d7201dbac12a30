"""Hubs that stand by for each other on one Postgres, while their owner dies or stands still."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from tests.e2e.support.cables import unix_cable
from tests.e2e.support.hubs import NO_LIMIT, UNBOUND
from tests.e2e.support.traffic import Ledger, read, write_one_by_one
from tests.e2e.test_postgres import KINDS, STREAMS, check_against_postgres
from tests.e2e.test_up import WITHIN_S, Up, start
from tests.postgres_server import PostgresServer, running_postgres

FAULTS = int(os.environ.get("FAULTS", "3"))
"""Of each kind."""
LEASES_S = 15.0
"""How long an owner stands still: three times as long as it takes to lose the store."""
pytestmark = [pytest.mark.postgres, pytest.mark.timeout(FAULTS * 2 * WITHIN_S)]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class Node:
    """`hubbub up --standby`, which can be started again and again at one address."""

    def __init__(self, config: Path):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._config = config
        self._up: Up | None = None

    @property
    def process(self) -> Process:
        assert self._up is not None
        return self._up.process

    async def start(self, *, until: str) -> str:
        """Returns `until`, or `up` if that came first."""
        more = ("--no-agents", "--json", "--standby", "--listen", self.address)
        self._up = Up(await start("up", str(self._config), *more))
        told = await self._up.until(lambda line: line["event"] in (until, "up"))
        return str(told["event"])

    async def event(self, name: str) -> None:
        assert self._up is not None
        await self._up.event(name)

    async def ends_with(self, why: str) -> None:
        """It ends by itself, and says why."""
        async with asyncio.timeout(WITHIN_S):
            _, err = await self.process.communicate()
        assert self.process.returncode == 2
        assert why in err.decode()
        assert "Traceback" not in err.decode()

    async def stop(self) -> None:
        if self._up is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()


def _config(path: Path, store: str) -> Path:
    network = {
        "name": "test",
        "store": store,
        "auth": "open",
        "limits": dict(NO_LIMIT),
        **UNBOUND,
    }
    channels = {"general": {"members": "all"}}
    path.write_text(json.dumps({"network": network, "channels": channels, "mods": ["search"]}))
    return path


@pytest.mark.behaviour("R-14")
async def test_an_owner_that_dies_or_stands_still_is_followed_by_the_next_and_nothing_is_lost(
    tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    config = _config(tmp_path / "network.yaml", server.url())
    owner, other = Node(config), Node(config)
    took: dict[signal.Signals, list[float]] = {signal.SIGKILL: [], signal.SIGSTOP: []}
    faults = [*took] * FAULTS
    random.Random(83).shuffle(faults)
    async with _under_load(server, owner, other) as ledger:
        for fault in faults:
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner.process.send_signal(fault)
                await other.event("up")
                await ledger.more_acks(20)
                took[fault].append(time.monotonic() - began)
                if fault is signal.SIGSTOP:
                    await asyncio.sleep(max(0.0, LEASES_S - took[fault][-1]))
                    owner.process.send_signal(signal.SIGCONT)
                    await owner.ends_with("another hub has taken over this store")
                else:
                    await owner.stop()
            owner, other = other, owner
            await other.start(until="standing_by")
    for fault, seconds in took.items():
        print(
            f"{fault.name}: serves again after {median(seconds):.1f} s, {max(seconds):.1f} at most"
        )


@pytest.mark.behaviour("R-15")
async def test_hubs_are_stopped_and_started_one_after_the_other_and_the_network_goes_on(
    tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    config = _config(tmp_path / "network.yaml", server.url())
    owner, other = Node(config), Node(config)
    took: list[float] = []
    async with _under_load(server, owner, other) as ledger:
        for _ in range(2 * FAULTS):  # each of the two, so many times
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner.process.terminate()
                await other.event("up")
                await ledger.more_acks(20)
                took.append(time.monotonic() - began)
                _, err = await owner.process.communicate()
            assert owner.process.returncode == 0, err.decode()
            owner, other = other, owner
            await other.start(until="standing_by")
    print(f"SIGTERM: serves again after {median(took):.1f} s, {max(took):.1f} at most")


async def test_an_owner_that_is_cut_off_from_postgres_leaves_its_clients_to_the_next(
    tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    async with unix_cable(tmp_path / server.socket.name, server.socket) as cable:
        url = f"postgresql://hubbub@/postgres?host={tmp_path}"
        owner = Node(_config(tmp_path / "cut-off.yaml", url))
        other = Node(_config(tmp_path / "network.yaml", server.url()))
        async with _under_load(server, owner, other) as ledger, asyncio.timeout(WITHIN_S):
            await ledger.more_acks(50)
            cable.cut()
            await other.event("up")
            await owner.ends_with("is out of reach; restart it with")
            await ledger.more_acks(20)


@asynccontextmanager
async def _under_load(server: PostgresServer, owner: Node, other: Node) -> AsyncIterator[Ledger]:
    """Participants that know both nodes send; in the end each message is accounted for."""
    ledger, stop = Ledger(), asyncio.Event()
    patient = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.2, retries=100_000))
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        stack.push_async_callback(owner.stop)
        stack.push_async_callback(other.stop)
        await owner.start(until="up")
        await other.start(until="standing_by")
        urls = [f"ws://{node.address}" for node in (owner, other)]
        clients = {
            name: await stack.enter_async_context(
                Client(WebSocketTransport(*urls), name, kind, options=patient)
            )
            for name, kind in KINDS.items()
        }
        readers = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        writers = [
            tasks.create_task(write_one_by_one(clients[stream.sender], stream, ledger, stop))
            for stream in STREAMS
        ]
        yield ledger
        stop.set()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*writers)
            await ledger.all_arrived(STREAMS, list(clients))
        for task in readers:
            task.cancel()
    check_against_postgres(ledger, server, list(clients))


async def test_a_hub_on_a_file_cannot_stand_by_and_says_what_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    config = tmp_path / "network.yaml"
    network = {"name": "test", "store": "sqlite:hub.db", "listen": "127.0.0.1:0"}
    config.write_text(json.dumps({"network": network}))
    process = await start("up", str(config), "--standby")
    async with asyncio.timeout(WITHIN_S):
        _, err = await process.communicate()
    assert process.returncode == 2
    assert b"only a store in Postgres can be taken over by another hub" in err
