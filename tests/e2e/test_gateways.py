"""Gateways hold sockets while the hubs behind them die, stand still, and hand over, and while the
Postgres behind those does, or is out of reach."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import psycopg
import pytest

from benchmarks.stats import percentile
from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.cables import Cable, tcp_cable, unix_cable
from tests.e2e.support.clerk import BUDGET, Clerk
from tests.e2e.support.hubs import NO_LIMIT, UNBOUND
from tests.e2e.support.peers import peer
from tests.e2e.support.traffic import Ledger, Stream, read, write, write_one_by_one
from tests.e2e.test_postgres import KINDS, STREAMS, check_against_postgres
from tests.e2e.test_standby import FAULTS, LEASES_S, Node
from tests.e2e.test_up import WITHIN_S, Up, start
from tests.postgres_server import PostgresServer, running_postgres

TOKEN = "a token for gateways"
OFFICE: dict[str, Kind] = {"clerk": "agent", "eve": "human", "fay": "human"}
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
pytestmark = [pytest.mark.postgres, pytest.mark.timeout(FAULTS * 2 * WITHIN_S)]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class GatewayNode:
    """`hubbub gateway`, which can be started again and again at one address."""

    def __init__(self, hubs: Sequence[str]):
        """`hubs` are the addresses of those that may own the network."""
        self._hubs = ",".join(hubs)
        self._listen = "127.0.0.1:0"
        self._up: Up | None = None

    @property
    def url(self) -> str:
        return f"ws://{self._listen}"

    @property
    def process(self) -> Process:
        assert self._up is not None
        return self._up.process

    async def start(self) -> None:
        more = ("--hubs", self._hubs, "--listen", self._listen, "--json")
        self._up = Up(await start("gateway", *more))
        told = await self._up.event("up")
        self._listen = str(told["url"]).removeprefix("ws://")

    async def stop(self) -> None:
        if self._up is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()


class Hub(Node):
    """One that is linked to its Postgres and to its gateways by a cable each."""

    def __init__(self, config: Path, server: PostgresServer):
        super().__init__(config)
        self._place, self._server = config.parent, server
        self.gateways_reach = ""
        """Where gateways find it."""
        self.to_store: Cable
        self.to_gateways: Cable

    @asynccontextmanager
    async def cabled(self) -> AsyncIterator[None]:
        near = self._place / self._server.socket.name
        async with (
            unix_cable(near, self._server.socket) as self.to_store,
            tcp_cable(self.address) as (self.gateways_reach, self.to_gateways),
        ):
            yield


class Cluster:
    """Two hubs, of which one owns the network, and two gateways."""

    def __init__(self, folder: Path, server: PostgresServer):
        self.server = server
        self.owner, self.other = (_hub(folder / name, server) for name in ("a", "b"))
        self.gateways: list[GatewayNode] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.owner.cabled(), self.other.cabled():
            reach = [self.owner.gateways_reach, self.other.gateways_reach]
            self.gateways = [GatewayNode(reach) for _ in range(2)]
            try:
                await self.start()
                yield
            finally:
                await self.stop()

    async def start(self) -> None:
        await self.owner.start(until="up")
        await self.other.start(until="standing_by")
        for gateway in self.gateways:
            await gateway.start()

    async def stop(self) -> None:
        for gateway in self.gateways:
            await gateway.stop()
        for hub in (self.owner, self.other):
            await hub.stop()

    async def moved(self) -> None:
        """The owner has ended: start it again, to stand by."""
        self.owner, self.other = self.other, self.owner
        while await self.other.start(until="standing_by") == "up":
            # Its owner was not heard of in time, as happens on a machine that does much else.
            await self.owner.process.communicate()
            self.owner, self.other = self.other, self.owner

    def fence(self) -> int:
        """The number of the owner, which grows with each."""
        with psycopg.connect(self.server.url()) as db:
            (fence,) = cast(tuple[int], db.execute("SELECT fence FROM hubbub.owner").fetchone())
        return fence


def _hub(folder: Path, server: PostgresServer) -> Hub:
    folder.mkdir()
    network: dict[str, Any] = {
        "name": "test",
        "store": f"postgresql://hubbub@/postgres?host={folder}",
        "auth": "open",
        "gateway_token": TOKEN,
        "limits": dict(NO_LIMIT),
        "budgets": dict(BUDGET),
        **UNBOUND,
    }
    channels = {"general": {"members": "all"}}
    path = folder / "network.yaml"
    path.write_text(json.dumps({"network": network, "channels": channels, "mods": ["search"]}))
    return Hub(path, server)


@pytest.fixture
def cluster(tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HUBBUB_GATEWAY_TOKEN", TOKEN)
    return Cluster(tmp_path, server)


@pytest.mark.behaviour("R-16")
@pytest.mark.parametrize("fault", SIGNALS, ids=lambda fault: fault.name)
async def test_sockets_outlive_the_owner_and_nothing_is_lost_or_done_twice(
    cluster: Cluster, fault: signal.Signals
) -> None:
    took: list[float] = []
    async with _under_load(cluster) as ledger:
        for _ in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner = cluster.owner
                owner.process.send_signal(fault)
                await cluster.other.event("up")
                await ledger.more_acks(20)
                took.append(time.monotonic() - began)
                if fault is signal.SIGSTOP:
                    await asyncio.sleep(max(0.0, LEASES_S - took[-1]))
                    owner.process.send_signal(signal.SIGCONT)
                    await owner.ends_with("restart it with")
                elif fault is signal.SIGTERM:
                    _, err = await owner.process.communicate()
                    assert owner.process.returncode == 0, err.decode()
                else:
                    await owner.stop()
                await cluster.moved()
    assert ledger.disconnects == 0, "the gateways have held every socket"
    _print(fault.name, took)


@pytest.mark.behaviour("R-17")
@pytest.mark.parametrize("fault", SIGNALS, ids=lambda fault: fault.name)
async def test_a_gateway_that_dies_stands_still_or_stops_is_a_reconnect_and_nothing_else(
    cluster: Cluster, fault: signal.Signals
) -> None:
    took: list[float] = []
    async with _under_load(cluster) as ledger:
        for n in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                gateway = cluster.gateways[n % 2]
                gateway.process.send_signal(fault)
                await ledger.more_acks(100)
                took.append(time.monotonic() - began)
                if fault is signal.SIGTERM:
                    _, err = await gateway.process.communicate()
                    assert gateway.process.returncode == 0, err.decode()
                await gateway.stop()
                await gateway.start()
    _print(fault.name, took)


@asynccontextmanager
async def postgres_dies(cluster: Cluster) -> AsyncIterator[None]:
    await asyncio.to_thread(cluster.server.kill)
    await asyncio.to_thread(cluster.server.start)
    yield


@asynccontextmanager
async def postgres_stands_still(cluster: Cluster) -> AsyncIterator[None]:
    cluster.server.send(signal.SIGSTOP)
    await asyncio.sleep(LEASES_S)
    cluster.server.send(signal.SIGCONT)
    yield


@asynccontextmanager
async def owner_without_postgres(cluster: Cluster) -> AsyncIterator[None]:
    cut_off = cluster.owner
    cut_off.to_store.cut()
    yield
    await cut_off.ends_with("is out of reach; restart it with")
    cut_off.to_store.mend()


@asynccontextmanager
async def owner_without_gateways(cluster: Cluster) -> AsyncIterator[None]:
    cut_off = cluster.owner
    cut_off.to_gateways.cut()
    await asyncio.sleep(LEASES_S)
    cut_off.to_gateways.mend()
    yield


Fault = Callable[[Cluster], AbstractAsyncContextManager[None]]
"""It has passed when the context is entered, and is over when that is left."""
FAULTS_AROUND: Sequence[Fault] = (
    postgres_dies,
    postgres_stands_still,
    owner_without_postgres,
    owner_without_gateways,
)


@pytest.mark.behaviour("R-21")
@pytest.mark.parametrize("fault", FAULTS_AROUND, ids=lambda fault: fault.__name__)
async def test_what_becomes_of_postgres_or_of_the_way_to_it_is_a_delay_and_nothing_else(
    cluster: Cluster, fault: Fault
) -> None:
    took: list[float] = []
    async with _under_load(cluster, write_one_by_one) as ledger:
        for _ in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                before = cluster.fence()
                began = time.monotonic()
                async with fault(cluster):
                    await ledger.more_acks(20)
                    took.append(time.monotonic() - began)
                if cluster.fence() != before:
                    assert await cluster.owner.process.wait() == 2, "it has a successor"
                    await cluster.moved()
    assert ledger.disconnects == 0, "the gateways have held every socket"
    _print(fault.__name__, took)


@pytest.mark.behaviour("R-16")
async def test_who_was_at_a_gateway_that_died_with_the_owner_is_not_shown_as_present(
    cluster: Cluster,
) -> None:
    async with cluster.running(), asyncio.timeout(WITHIN_S):
        here, there = cluster.gateways
        async with peer(here.url) as ann:
            await ann.identify("ann")
            async with peer(there.url) as bob:
                await bob.identify("bob")
                while "bob" not in str((await ann.expect(op="signal", type="presence"))["data"]):
                    pass
                there.process.kill()
                cluster.owner.process.kill()
            while "bob" not in str((await ann.expect(op="signal", type="presence"))["data"]):
                pass  # of herself the next owner tells first


def _print(fault: str, took: Sequence[float]) -> None:
    seconds = ", ".join(f"p{n} {percentile(took, n / 100):.1f} s" for n in (50, 99))
    print(f"{fault} {len(took)} times: goes on after {seconds}")


Write = Callable[[Client, Stream, Ledger, asyncio.Event], Coroutine[None, None, None]]
write_four: Write = partial(write, window=4)


@asynccontextmanager
async def _under_load(cluster: Cluster, write: Write = write_four) -> AsyncIterator[Ledger]:
    """Participants send through both gateways; in the end each message is accounted for."""
    ledger, stop = Ledger(), asyncio.Event()
    patient = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.2, retries=100_000))
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        await stack.enter_async_context(cluster.running())
        urls = [gateway.url for gateway in cluster.gateways]
        clients = {}
        for n, (name, kind) in enumerate(KINDS.items()):
            transport = WebSocketTransport(urls[n % 2], urls[1 - n % 2])
            clients[name] = await stack.enter_async_context(
                Client(transport, name, kind, options=patient)
            )
        clerk = Clerk(
            *[
                await stack.enter_async_context(
                    Client(WebSocketTransport(*urls), name, kind, turns=True, options=patient)
                )
                for name, kind in OFFICE.items()
            ]
        )
        readers = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        readers.append(tasks.create_task(clerk.listen()))
        writers = [
            tasks.create_task(write(clients[stream.sender], stream, ledger, stop))
            for stream in STREAMS
        ]
        writers.append(tasks.create_task(clerk.work(stop)))
        yield ledger
        stop.set()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*writers)
            await clerk.check()
            await ledger.all_arrived(STREAMS, list(clients))
        for task in readers:
            task.cancel()
    check_against_postgres(ledger, cluster.server, list(clients))
