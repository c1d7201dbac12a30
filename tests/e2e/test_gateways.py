"""Gateways hold sockets while the hubs behind them die, stand still, and hand over."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median

import pytest

from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from tests.e2e.support.hubs import NO_LIMIT, UNBOUND
from tests.e2e.support.traffic import Ledger, read, write
from tests.e2e.test_postgres import KINDS, STREAMS, check_against_postgres
from tests.e2e.test_standby import FAULTS, LEASES_S, Node
from tests.e2e.test_up import WITHIN_S, Up, start
from tests.postgres_server import PostgresServer, running_postgres

TOKEN = "a token for gateways"
SIGNALS = (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM)
pytestmark = [pytest.mark.postgres, pytest.mark.timeout(FAULTS * 2 * WITHIN_S)]


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class GatewayNode:
    """`hubbub gateway`, which can be started again and again at one address."""

    def __init__(self, hubs: Sequence[Node]):
        self._hubs = ",".join(hub.address for hub in hubs)
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


class Cluster:
    """Two hubs, of which one owns the network, and two gateways."""

    def __init__(self, folder: Path, server: PostgresServer):
        config = _config(folder / "network.yaml", server.url())
        self.server = server
        self.owner, self.other = Node(config), Node(config)
        self.gateways = [GatewayNode((self.owner, self.other)) for _ in range(2)]

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
        await self.other.start(until="standing_by")


def _config(path: Path, store: str) -> Path:
    network = {
        "name": "test",
        "store": store,
        "auth": "open",
        "gateway_token": TOKEN,
        "limits": dict(NO_LIMIT),
        **UNBOUND,
    }
    channels = {"general": {"members": "all"}}
    path.write_text(json.dumps({"network": network, "channels": channels, "mods": ["search"]}))
    return path


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
                    await owner.ends_with("start it again")
                elif fault is signal.SIGTERM:
                    _, err = await owner.process.communicate()
                    assert owner.process.returncode == 0, err.decode()
                else:
                    await owner.stop()
                await cluster.moved()
    assert ledger.disconnects == 0, "the gateways have held every socket"
    _print(fault, took)


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
    _print(fault, took)


def _print(fault: signal.Signals, took: Sequence[float]) -> None:
    seconds = f"{median(took):.1f} s, {max(took):.1f} at most"
    print(f"{fault.name} {len(took)} times: goes on after {seconds}")


@asynccontextmanager
async def _under_load(cluster: Cluster) -> AsyncIterator[Ledger]:
    """Participants send through both gateways; in the end each message is accounted for."""
    ledger, stop = Ledger(), asyncio.Event()
    patient = ClientOptions(backoff=Backoff(first_s=0.02, most_s=0.2, retries=100_000))
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
        stack.push_async_callback(cluster.stop)
        await cluster.start()
        urls = [gateway.url for gateway in cluster.gateways]
        clients = {}
        for n, (name, kind) in enumerate(KINDS.items()):
            transport = WebSocketTransport(urls[n % 2], urls[1 - n % 2])
            clients[name] = await stack.enter_async_context(
                Client(transport, name, kind, options=patient)
            )
        readers = [tasks.create_task(read(client, ledger)) for client in clients.values()]
        writers = [
            tasks.create_task(write(clients[stream.sender], stream, ledger, stop, window=4))
            for stream in STREAMS
        ]
        yield ledger
        stop.set()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*writers)
            await ledger.all_arrived(STREAMS, list(clients))
        for task in readers:
            task.cancel()
    check_against_postgres(ledger, cluster.server, list(clients))
