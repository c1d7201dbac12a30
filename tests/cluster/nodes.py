"""Nodes of a cluster as processes, the networks that they share, and who talks in these."""

from __future__ import annotations

import asyncio
import json
import socket
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from urllib.request import urlopen

from prometheus_client.parser import text_string_to_metric_families

from hubbub.app.cluster import ClusterStatus, status
from hubbub.client import Backoff, Client, ClientOptions, WebSocketTransport
from hubbub.errors import ConnectionLost
from tests.e2e.support.hubs import NO_LIMIT, UNBOUND
from tests.e2e.support.traffic import Ledger, Stream, read
from tests.e2e.test_postgres import check_log
from tests.e2e.test_up import Up, start
from tests.postgres_server import PostgresServer

__all__ = ["TOKEN", "WITHIN_S", "Cluster", "Talk"]

TOKEN = "a token for gateways"
WITHIN_S = 500.0
PATIENT = ClientOptions(backoff=Backoff(first_s=0.05, most_s=0.5, retries=100_000))
HOSTS: Mapping[str, str] = {"n1": "127.0.0.1", "n2": "127.0.0.2", "n3": "127.0.0.3"}


class Cluster:
    """Three nodes that share networks on one Postgres."""

    def __init__(self, folder: Path, server: PostgresServer, count: int):
        self.server, self._configs = server, folder / "networks"
        self._configs.mkdir()
        self.url = server.new_database("cluster")
        self.ports = dict(zip((f"net{n}" for n in range(count)), _free_ports(count), strict=True))
        for name, port in self.ports.items():
            self._write(name, port, server.new_database(name))
        (port,) = _free_ports(1)
        self._nodes: dict[str, Up] = {}
        self._gateways: dict[str, Up] = {}
        self.figures_at = {node: f"{host}:{port}" for node, host in HOSTS.items()}
        """Where nodes and gateways tell what they count."""

    def _write(self, name: str, port: int, store: str) -> None:
        network = {
            "name": name,
            "listen": f"127.0.0.1:{port}",
            "store": store,
            "auth": "open",
            "gateway_token": TOKEN,
            "limits": dict(NO_LIMIT),
            **UNBOUND,
        }
        config = {"network": network, "channels": {"general": {"members": "all"}}}
        (self._configs / f"{name}.yaml").write_text(json.dumps(config))

    # Processes --------------------------------------------------------------------------------

    async def begin(self) -> None:
        """All nodes run, and all networks are served."""
        for node in HOSTS:
            await self.start(node)
        await self.settled()

    async def start(self, node: str) -> None:
        more = ("--name", node, "--listen", HOSTS[node], "--cluster", self.url, "--json")
        figures = ("--metrics", self.figures_at[node])
        self._nodes[node] = Up(await start("node", str(self._configs), *more, *figures))

    def process(self, node: str) -> Process:
        return self._nodes[node].process

    async def ended(self, node: str) -> str:
        """A node's process has ended in order; what it said last."""
        async with asyncio.timeout(WITHIN_S):
            out, err = await self.process(node).communicate()
        assert self.process(node).returncode == 0, err.decode()
        assert "Traceback" not in err.decode()
        return out.decode()

    async def command(self, *args: str) -> str:
        """What `hubbub cluster ...` prints."""
        process = await start("cluster", *args, "--cluster", self.url)
        async with asyncio.timeout(WITHIN_S):
            out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode()

    async def gateway(self, network: str, name: str) -> str:
        """Start a gateway; its URL."""
        hubs = ",".join(self.addresses(network))
        more = ("--hubs", hubs, "--token", TOKEN, "--listen", "127.0.0.1:0", "--name", name)
        (figures,) = _free_ports(1)
        listen = f"127.0.0.1:{figures}"
        self._gateways[name] = Up(await start("gateway", *more, "--metrics", listen, "--json"))
        self.figures_at[name] = listen
        return str((await self._gateways[name].event("up"))["url"])

    async def stop(self) -> None:
        for each in (*self._gateways.values(), *self._nodes.values()):
            if each.process.returncode is None:
                each.process.kill()
                await each.process.communicate()

    # What there is ----------------------------------------------------------------------------

    def addresses(self, network: str) -> Sequence[str]:
        return [f"{host}:{self.ports[network]}" for host in HOSTS.values()]

    async def status(self) -> ClusterStatus:
        return await asyncio.to_thread(status, self.url)

    async def figures(self, name: str) -> dict[tuple[str, ...], float]:
        """What a node or a gateway counts: by name, node and network."""

        def ask() -> str:
            with urlopen(f"http://{self.figures_at[name]}/metrics") as answer:
                return str(answer.read().decode())

        def key(name: str, labels: Mapping[str, str]) -> tuple[str, ...]:
            return name, *(labels[each] for each in ("node", "network") if each in labels)

        return {
            key(sample.name, sample.labels): sample.value
            for family in text_string_to_metric_families(await asyncio.to_thread(ask))
            for sample in family.samples
        }

    async def until(self, holds: Callable[[ClusterStatus], bool]) -> ClusterStatus:
        """Ask for the cluster's state until it is as it should be."""
        async with asyncio.timeout(WITHIN_S):
            while not holds(seen := await self.status()):  # noqa: ASYNC110  # no event tells
                await asyncio.sleep(0.1)
        return seen

    async def settled(self) -> ClusterStatus:
        """Each network is served by the node that should own it, and every node lives."""
        return await self.until(
            lambda seen: (
                sum(node.live for node in seen.nodes) == len(HOSTS)
                and len(seen.networks) == len(self.ports)
                and all(each.serves and each.owner == each.placed for each in seen.networks)
            )
        )

    async def owned_by(self, node: str) -> Sequence[str]:
        seen = await self.status()
        return next(each.networks for each in seen.nodes if each.name == node)


class Talk:
    """Ann and bob in one network, who write down each message that was confirmed or has come."""

    def __init__(self, network: str, ann: Sequence[str], bob: Sequence[str]):
        """The URLs by which each of them comes."""
        self.network, self._urls = network, {"ann": ann, "bob": bob}
        self.ledger = Ledger()
        self.streams = [Stream("ann", "bob"), Stream("bob", "general")]
        self._clients: dict[str, Client] = {}
        self._said = 0

    @asynccontextmanager
    async def joined(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack, asyncio.TaskGroup() as tasks:
            for name, urls in self._urls.items():
                self._clients[name] = await stack.enter_async_context(_client(name, urls))
            readers = [
                tasks.create_task(read(each, self.ledger)) for each in self._clients.values()
            ]
            yield
            for reader in readers:
                reader.cancel()

    async def say(self, count: int = 1) -> None:
        """Each of them says so much, one after the other, and waits until that is confirmed."""
        for _ in range(count):
            self._said += 1
            n = self._said
            for stream in self.streams:
                name, args = stream.call(n)
                result = await self._clients[stream.sender].call(name, cid=stream.cid(n), **args)
                assert isinstance(result, dict)
                await self.ledger.acknowledge(stream, n, int(str(result["seq"])))

    async def say_until(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            await self.say()

    async def check(self, cluster: Cluster) -> None:
        """All has come, once and in order, and the log has it."""
        async with asyncio.timeout(WITHIN_S):
            await self.ledger.all_arrived(self.streams, list(self._clients))
        self.ledger.check_readers(self.streams, list(self._clients))
        assert self.ledger.fresh_starts == 0, "every client resumed where it was"
        check_log(self.ledger, cluster.server.url(self.network), self.streams)


@asynccontextmanager
async def _client(name: str, urls: Sequence[str]) -> AsyncIterator[Client]:
    """A client that has come in: the first connection it does not try again by itself."""
    async with AsyncExitStack() as stack:
        async with asyncio.timeout(WITHIN_S):
            while True:
                client = Client(WebSocketTransport(*urls), name, "human", options=PATIENT)
                try:
                    await stack.enter_async_context(client)
                except ConnectionLost:
                    continue
                break
        yield client


def _free_ports(count: int) -> Iterable[int]:
    """Ports at which nobody listens, on any of the hosts."""
    bound = [socket.create_server(("0.0.0.0", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in bound]
    for each in bound:
        each.close()
    return ports
