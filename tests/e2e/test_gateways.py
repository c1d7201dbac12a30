"""Gateways keep sockets open while hubs or Postgres are killed, hang, restart or are cut off."""

from __future__ import annotations

import asyncio
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import psycopg
import pytest

from benchmarks.stats import percentile
from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.protocol.messages import Kind
from tests.e2e.support.cables import Cable, tcp_cable, unix_cable
from tests.e2e.support.clerk import BUDGET, Clerk
from tests.e2e.support.peers import peer
from tests.e2e.support.traffic import Ledger, Write, exchange, write, write_one_by_one
from tests.e2e.test_postgres import KINDS, STREAMS, check_log
from tests.e2e.test_standby import FAULTS, LEASES_S, Node, write_config
from tests.e2e.test_up import WITHIN_S, Up, start
from tests.interaction.peers import Peer
from tests.postgres_server import PostgresServer

TOKEN = "a token for gateways"
OFFICE: dict[str, Kind] = {"clerk": "agent", "eve": "human", "fay": "human"}
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
pytestmark = [pytest.mark.postgres, pytest.mark.timeout(FAULTS * 2 * WITHIN_S)]


class GatewayNode:
    """`hubbub gateway`, which can be restarted at the same address."""

    def __init__(self, hubs: Sequence[str]):
        """`hubs` are the addresses of the network's possible owners."""
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
        options = ("--hubs", self._hubs, "--listen", self._listen, "--json")
        self._up = Up(await start("gateway", *options))
        line = await self._up.event("up")
        self._listen = str(line["url"]).removeprefix("ws://")

    async def stop(self) -> None:
        if self._up is not None and self.process.returncode is None:
            self.process.kill()
            await self.process.communicate()


class Hub(Node):
    """A hub with one cable to its Postgres and one to its gateways."""

    def __init__(self, config: Path, server: PostgresServer):
        super().__init__(config)
        self._folder, self._server = config.parent, server
        self.to_store: Cable
        self.to_gateways: Cable

    @asynccontextmanager
    async def cabled(self) -> AsyncIterator[None]:
        near = self._folder / self._server.socket.name
        async with (
            unix_cable(near, self._server.socket) as self.to_store,
            tcp_cable(self.address) as self.to_gateways,
        ):
            yield


class Cluster:
    """Two hubs, one of which owns the network, and two gateways."""

    def __init__(self, folder: Path, server: PostgresServer):
        self.server = server
        self.owner, self.other = (_hub(folder / name, server) for name in ("a", "b"))
        self.gateways: list[GatewayNode] = []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.owner.cabled(), self.other.cabled():
            hubs = [self.owner.to_gateways.address, self.other.to_gateways.address]
            self.gateways = [GatewayNode(hubs) for _ in range(2)]
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

    async def restart_owner(self) -> None:
        """Restarts the ended owner as the standby."""
        self.owner, self.other = self.other, self.owner
        while await self.other.start(until="standing_by") == "up":
            # On a busy machine the new owner can miss its deadline and be superseded, too.
            await self.owner.process.communicate()
            self.owner, self.other = self.other, self.owner

    def fence(self) -> int:
        """The owner's number, which grows with each takeover."""
        with psycopg.connect(self.server.url()) as db:
            (fence,) = cast(tuple[int], db.execute("SELECT fence FROM hubbub.owner").fetchone())
        return fence


def _hub(folder: Path, server: PostgresServer) -> Hub:
    folder.mkdir()
    store, path = f"postgresql://hubbub@/postgres?host={folder}", folder / "network.yaml"
    return Hub(write_config(path, store, gateway_token=TOKEN, budgets={**BUDGET}), server)


@pytest.fixture
def cluster(tmp_path: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HUBBUB_GATEWAY_TOKEN", TOKEN)
    return Cluster(tmp_path, server)


@pytest.mark.behaviour("R-16")
@pytest.mark.parametrize("fault", SIGNALS, ids=lambda fault: fault.name)
async def test_gateway_sockets_survive_a_change_of_owner_without_loss(
    cluster: Cluster, fault: signal.Signals
) -> None:
    outages: list[float] = []
    async with _under_load(cluster) as ledger:
        for _ in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                owner = cluster.owner
                owner.process.send_signal(fault)
                await cluster.other.event("up")
                await ledger.more_acks(20)
                outages.append(time.monotonic() - began)
                if fault is signal.SIGSTOP:
                    await asyncio.sleep(max(0.0, LEASES_S - outages[-1]))
                    owner.process.send_signal(signal.SIGCONT)
                    await owner.exits_with("restart it with")
                elif fault is signal.SIGTERM:
                    _, err = await owner.process.communicate()
                    assert owner.process.returncode == 0, err.decode()
                else:
                    await owner.stop()
                await cluster.restart_owner()
    assert ledger.disconnects == 0, "a gateway closed a socket"
    _print(fault.name, outages)


@pytest.mark.behaviour("R-17")
@pytest.mark.parametrize("fault", SIGNALS, ids=lambda fault: fault.name)
async def test_a_killed_hung_or_stopped_gateway_only_causes_reconnects(
    cluster: Cluster, fault: signal.Signals
) -> None:
    outages: list[float] = []
    async with _under_load(cluster) as ledger:
        for n in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                began = time.monotonic()
                gateway = cluster.gateways[n % 2]
                gateway.process.send_signal(fault)
                await ledger.more_acks(100)
                outages.append(time.monotonic() - began)
                if fault is signal.SIGTERM:
                    _, err = await gateway.process.communicate()
                    assert gateway.process.returncode == 0, err.decode()
                await gateway.stop()
                await gateway.start()
    _print(fault.name, outages)


@asynccontextmanager
async def postgres_killed(cluster: Cluster) -> AsyncIterator[None]:
    await asyncio.to_thread(cluster.server.kill)
    await asyncio.to_thread(cluster.server.start)
    yield


@asynccontextmanager
async def postgres_paused(cluster: Cluster) -> AsyncIterator[None]:
    cluster.server.send(signal.SIGSTOP)
    await asyncio.sleep(LEASES_S)
    cluster.server.send(signal.SIGCONT)
    yield


@asynccontextmanager
async def owner_cut_off_from_postgres(cluster: Cluster) -> AsyncIterator[None]:
    cut_off = cluster.owner
    cut_off.to_store.silence()
    yield
    await cut_off.exits_with("is out of reach; restart it with")
    cut_off.to_store.mend()


@asynccontextmanager
async def owner_cut_off_from_gateways(cluster: Cluster) -> AsyncIterator[None]:
    cut_off = cluster.owner
    cut_off.to_gateways.silence()
    await asyncio.sleep(LEASES_S)
    cut_off.to_gateways.mend()
    yield


Fault = Callable[[Cluster], AbstractAsyncContextManager[None]]
"""The outage has passed when the context is entered; its consequences, when it is left."""
OTHER_FAULTS: Sequence[Fault] = (
    postgres_killed,
    postgres_paused,
    owner_cut_off_from_postgres,
    owner_cut_off_from_gateways,
)


@pytest.mark.behaviour("R-21")
@pytest.mark.parametrize("fault", OTHER_FAULTS, ids=lambda fault: fault.__name__)
async def test_a_fault_of_postgres_or_of_a_connection_only_causes_a_delay(
    cluster: Cluster, fault: Fault
) -> None:
    outages: list[float] = []
    async with _under_load(cluster, write_one_by_one) as ledger:
        for _ in range(FAULTS):
            async with asyncio.timeout(WITHIN_S):
                await ledger.more_acks(50)
                before = cluster.fence()
                began = time.monotonic()
                async with fault(cluster):
                    await ledger.more_acks(20)
                    outages.append(time.monotonic() - began)
                if cluster.fence() != before:
                    assert await cluster.owner.process.wait() == 2, "a superseded owner must exit"
                    await cluster.restart_owner()
    assert ledger.disconnects == 0, "a gateway closed a socket"
    _print(fault.__name__, outages)


@pytest.mark.behaviour("R-16")
async def test_clients_of_a_gateway_that_died_with_the_owner_go_offline(
    cluster: Cluster,
) -> None:
    async with cluster.running(), asyncio.timeout(WITHIN_S):
        first, second = cluster.gateways
        async with peer(first.url) as ann:
            await ann.identify("ann")
            async with peer(second.url) as bob:
                await bob.identify("bob")
                await _presence_of_bob(ann)
                second.process.kill()
                cluster.owner.process.kill()
            await _presence_of_bob(ann)


async def _presence_of_bob(ann: Peer) -> None:
    """Waits for a presence signal about bob, past those about ann herself."""
    while "bob" not in str((await ann.signal("presence"))["data"]):
        pass


def _print(fault: str, outages: Sequence[float]) -> None:
    seconds = ", ".join(f"p{n} {percentile(outages, n / 100):.1f} s" for n in (50, 99))
    print(f"{fault} {len(outages)} times: resumes after {seconds}")


write_four: Write = partial(write, window=4)


@asynccontextmanager
async def _under_load(cluster: Cluster, write: Write = write_four) -> AsyncIterator[Ledger]:
    """Participants send through both gateways; at the end every message is accounted for."""
    ledger = Ledger()
    patient = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.2, retries=100_000))
    async with AsyncExitStack() as stack:
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
        async with exchange(clients, STREAMS, ledger, write), clerk.working():
            yield ledger
    check_log(ledger, cluster.server.url(), STREAMS)
