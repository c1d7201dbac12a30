"""What messages, deliveries, joins, connections and networks cost, direct and through gateways, on
SQLite and on Postgres: CPU by process, since on one machine rates are those of all of them."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import psycopg

from benchmarks.bench import Bench
from benchmarks.fill import admit, fill
from benchmarks.hubs import hub, pair_names, write_config
from benchmarks.lanes import Lane
from benchmarks.load import Pace, alternate
from benchmarks.messages import broadcast
from benchmarks.servers import Server, cpu_seconds, rss_kib, start, start_gateway
from benchmarks.sides import (
    Side,
    hub_lane,
    hub_pairs,
    hub_sender,
    opened_side,
    receive_events,
    token_of,
)
from benchmarks.stats import middle
from hubbub.config.loader import load
from hubbub.network.hub import Hub
from hubbub.network.store import open_store
from tests.postgres_server import PostgresServer

__all__ = ["PARTS", "Costs"]

TOKEN = "a token for gateways"
GATEWAYS = NODES = 3
SHAPES = ((50, 1), (8, 64))
"""Pairs that write to each other, and messages that each has under way."""
ROUNDS, MEASURED_S = 3, 5.0
"""The machine may do much else."""
LOADED = 10_000
"""Messages in the log of a network whose start is measured."""
Costs = dict[str, float]
"""By name, which says the unit too."""
Processes = Mapping[str, Sequence[int]]
"""Process ids by their part."""


class Place(NamedTuple):
    """A network to be measured: where its clients connect, and what runs it."""

    name: str
    at: Server
    processes: Processes


class _Parts:
    """The CPU of the processes of a place since it was made."""

    def __init__(self, place: Place):
        self._place, self._before = place, self._now(place)

    def us_each(self, count: float) -> Costs:
        now = self._now(self._place)
        return {part: (now[part] - self._before[part]) / count * 1e6 for part in now}

    @staticmethod
    def _now(place: Place) -> Costs:
        return {part: sum(map(cpu_seconds, pids)) for part, pids in place.processes.items()}


async def messages(bench: Bench, server: PostgresServer) -> Costs:
    """Of one network, direct and through a gateway."""
    bench.say("messages, direct and through a gateway, on SQLite and on Postgres")
    costs, names = Costs(), pair_names(max(pairs for pairs, _ in SHAPES))
    async with AsyncExitStack() as stack:
        places = []
        for store in ("sqlite", "postgres"):
            for way in ("direct", "gateway"):
                url = server.new_database(way) if store == "postgres" else None
                entered = _place(bench, f"{store} {way}", names, url, way == "gateway", server)
                places.append(await stack.enter_async_context(entered))
        for pairs, window in SHAPES:
            costs |= await _messages(places, server, pairs, window)
    return costs


async def connections(bench: Bench, server: PostgresServer) -> Costs:
    """Many of one network, at its hub and at gateways."""
    return await _fan(bench, 500 if bench.quick else 5000)


async def networks(bench: Bench, server: PostgresServer) -> Costs:
    """Many that do little, in one process."""
    count = 10 if bench.quick else 100
    bench.say(f"{count} networks in one process")
    return {
        **await _networks(bench, count),
        **await _on_postgres(bench, server, count // 5),
        **await _starts(bench, server),
    }


async def nodes(bench: Bench, server: PostgresServer) -> Costs:
    """Pairs that write to each other on Postgres: all in one network, and each in one of its own,
    which several processes share as nodes do."""
    count = 10 if bench.quick else 100
    bench.say(f"{count} networks in {NODES} processes, and one as large as all of them")
    return await _nodes(bench, server, count)


PARTS: Mapping[str, Callable[[Bench, PostgresServer], Coroutine[None, None, Costs]]] = {
    "messages": messages,
    "connections": connections,
    "networks": networks,
    "nodes": nodes,
}


# Messages ------------------------------------------------------------------------------------


async def _messages(
    places: Sequence[Place], server: PostgresServer, pairs: int, window: int
) -> Costs:
    async with AsyncExitStack() as stack:
        sides = [await stack.enter_async_context(hub_pairs(place.at, pairs)) for place in places]
        with psycopg.connect(server.url(), autocommit=True) as db:
            wal, costs = _wal(db), Costs()
            parts = [_Parts(place) for place in places]
            rounds = await alternate(sides, Pace(window, 1.0, MEASURED_S), ROUNDS)
            written = _wal(db) - wal
    on_postgres = 0
    for place, side, part, found in zip(places, sides, parts, rounds, strict=True):
        key, sent = f"{place.name} {pairs}x{window}", sum(lane.sent for lane in side.lanes)
        on_postgres += sent * place.name.startswith("postgres")
        costs[f"{key}: messages/s"] = middle(found, lambda i: i.rate)
        costs[f"{key}: p50 ms"] = middle(found, lambda i: i.p50_ms)
        costs |= {f"{key}: {name} us": us for name, us in part.us_each(sent).items()}
    costs[f"{pairs}x{window}: WAL bytes a message"] = written / on_postgres
    return costs


@asynccontextmanager
async def _place(
    bench: Bench,
    name: str,
    names: Sequence[str],
    url: str | None,
    gateway: bool,
    server: PostgresServer | None = None,
) -> AsyncIterator[Place]:
    """A hub with these participants; with `gateway`, behind one."""
    async with AsyncExitStack() as stack:
        token = TOKEN if gateway else None
        entered = hub(bench, names, bare=True, url=url, gateway_token=token)
        owner = await stack.enter_async_context(entered)
        processes, at = {"hub": [owner.pid]}, owner
        if gateway:
            at = await stack.enter_async_context(start_gateway(owner.port, TOKEN))
            processes["gateway"] = [at.pid]
        if url is not None and server is not None:
            processes["Postgres"] = server.backends_of(url)
        yield Place(name, at, processes)


def _wal(db: psycopg.Connection[tuple[int]]) -> int:
    row = db.execute("SELECT CAST(pg_current_wal_lsn() - '0/0' AS bigint)").fetchone()
    assert row is not None
    return row[0]


# Connections ---------------------------------------------------------------------------------


class _Several(Server):
    """Servers whose ports connections are dealt out to; what is measured is all of them."""

    def __init__(self, servers: Sequence[Server], ports: Iterable[int]):
        self._all, self._ports = servers, itertools.cycle(ports)

    @property
    def port(self) -> int:  # type: ignore[override]  # another one each time
        return next(self._ports)

    def cpu_s(self) -> float:
        return sum(server.cpu_s() for server in self._all)

    def waits(self) -> bool:
        return all(server.waits() for server in self._all)


async def _fan(bench: Bench, receivers: int) -> Costs:
    """Broadcasts to many connections, and what it costs to have and to open them."""
    bench.say(f"{receivers} connections at a hub, and at {GATEWAYS} gateways")
    names = ["a0", *(f"b{n}" for n in range(receivers))]
    costs: Costs = {}
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        direct = await enter(hub(bench, names, bare=True))
        owner = await enter(hub(bench, names, bare=True, gateway_token=TOKEN))
        gateways = [await enter(start_gateway(owner.port, TOKEN)) for _ in range(GATEWAYS)]
        places = [
            Place("direct", direct, {"hub": [direct.pid]}),
            Place(
                "gateways",
                _Several([*gateways, owner], [gateway.port for gateway in gateways]),
                {"hub": [owner.pid], "gateway": [gateway.pid for gateway in gateways]},
            ),
        ]
        sides = []
        for place in places:
            side = await enter(opened_side(place.at))
            costs |= await _join_all(place, side, receivers)
            sides.append(side)
        parts = [_Parts(place) for place in places]
        rounds = await alternate(sides, Pace(2, 1.0, MEASURED_S), ROUNDS)
        costs["connections"] = receivers
        for place, side, part, found in zip(places, sides, parts, rounds, strict=True):
            deliveries = side.lanes[0].sent * receivers
            key = f"{place.name}, fan-out"
            costs[f"{key}: deliveries/s"] = middle(found, lambda i: i.rate) * receivers
            costs[f"{key}: everywhere p50 ms"] = middle(found, lambda i: i.p50_ms)
            each = part.us_each(deliveries).items()
            costs |= {f"{key}: {name} us": us for name, us in each}
    return costs


async def _join_all(place: Place, side: Side, receivers: int) -> Costs:
    """Everybody joins, some at a time: what a join costs the first and the last tenth of them."""
    lane = Lane(receivers, answers=True, clock=time.perf_counter)
    costs, tenth = Costs(), receivers // 10
    before = _memory(place)
    for first in range(0, receivers, tenth):
        part = _Parts(place)
        for n in range(first, first + tenth, 20):
            numbers = range(n, min(n + 20, first + tenth))
            sockets = await asyncio.gather(*(side.join(f"b{number}") for number in numbers))
            for number, socket in zip(numbers, sockets, strict=True):
                receive_events(lane, socket, number)
        when = {0: "first", receivers - tenth: "last"}.get(first)
        if when:
            joined = part.us_each(tenth).items()
            costs |= {f"{place.name}, {when} joins: {name} us": us for name, us in joined}
    await hub_sender(side, lane, "a0", broadcast(side.run))
    side.lanes.append(lane)
    for name, kib in _memory(place).items():
        costs[f"{place.name}: {name} KiB a connection"] = (kib - before[name]) / receivers
    return costs


def _memory(place: Place) -> Costs:
    statuses = {
        name: [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        for name, pids in place.processes.items()
    }
    return {name: float(sum(map(rss_kib, found))) for name, found in statuses.items()}


# Networks ------------------------------------------------------------------------------------


async def _networks(bench: Bench, count: int) -> Costs:
    """Many networks on SQLite in one process, as a node has them, beside one of them alone."""
    costs: Costs = {}
    configs = []
    for n in range(count + 1):
        configs.append(await _pair_config(bench.scratch / f"many{n}.db"))
    async with start("benchmarks.hub_process", configs[0]) as alone:
        one = (alone.rss_kib(), alone.cpu_s())
    async with start("benchmarks.hub_process", *configs[1:]) as server:
        costs["a network more: KiB"] = (server.rss_kib() - one[0]) / (count - 1)
        costs["a network's start: ms"] = (server.cpu_s() - one[1]) / (count - 1) * 1e3
        costs["an idle network: us/s"] = await _used(server, 10) / count
        async with opened_side(server) as side:
            for port in server.ports:
                server.port = port
                sender, receiver = await side.join("a0"), await side.join("b0")
                lane = Lane(1, answers=True, clock=time.perf_counter)
                receive_events(lane, receiver, 0)
                await hub_sender(side, lane, "a0", broadcast(side.run), sender)
                side.lanes.append(lane)
            costs["a network with two idle connections: us/s"] = await _used(server, 10) / count
            costs["a network with a message/s: us/s"] = await _used(server, 20, side.lanes) / count
            costs["a network with two connections more: KiB"] = (server.rss_kib() - one[0]) / (
                count - 1
            )
    return costs


async def _pair_config(path: Path, url: str | None = None) -> str:
    """Of a network that knows a pair, in this file or at `url`."""
    store = open_store(url or f"sqlite:{path}")
    await store.open()
    await admit(store, [(name, token_of(name)) for name in pair_names(1)])
    await store.close()
    return str(write_config(path, url=url, agents=False))


async def _used(server: Server, seconds: int, lanes: Sequence[Lane] = ()) -> float:
    """Microseconds of CPU a second, while each of the lanes sends a message each second."""
    await asyncio.sleep(2)
    before = server.cpu_s()
    for _ in range(seconds):
        for lane in lanes:
            lane.start(1)
            lane.stop()
        await asyncio.sleep(1)
    return (server.cpu_s() - before) / seconds * 1e6


async def _on_postgres(bench: Bench, server: PostgresServer, count: int) -> Costs:
    """What a network that does nothing costs Postgres: the sign of life of its owner each second,
    and its sessions."""
    urls = [server.new_database(f"idle{n}") for n in range(count)]
    configs = [
        str(write_config(bench.scratch / f"idle{n}.db", url=url, agents=False))
        for n, url in enumerate(urls)
    ]
    async with start("benchmarks.hub_process", *configs) as hubs:
        pids = [pid for url in urls for pid in server.backends_of(url)]
        await asyncio.sleep(2)
        before, ours = sum(map(cpu_seconds, pids)), hubs.cpu_s()
        await asyncio.sleep(10)
        used, ours = sum(map(cpu_seconds, pids)) - before, hubs.cpu_s() - ours
        return {
            "an idle network on Postgres: Postgres us/s": used / 10 / count * 1e6,
            "an idle network on Postgres: hub us/s": ours / 10 / count * 1e6,
            "an idle network on Postgres: sessions": len(pids) / count,
            "a session of Postgres: KiB": sum(map(_own_kib, pids)) / len(pids),
        }


def _own_kib(pid: int) -> int:
    """What a process has that it shares with none, and its part of the rest."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


async def _starts(bench: Bench, server: PostgresServer) -> Costs:
    """What it costs to start a network with a past on Postgres."""
    url = server.new_database("started")
    config = load(write_config(bench.scratch / "started.db", url=url, agents=False)).file
    store = open_store(url)
    await store.open()
    await fill(store, LOADED)
    await store.close()
    with psycopg.connect(url) as db:
        row = db.execute("SELECT pg_database_size(current_database())").fetchone()
        assert row is not None
    took, ours, theirs = [], [], []
    for _ in range(5):
        began, cpu = time.perf_counter(), time.process_time()
        store = open_store(url)
        async with Hub(config, store):
            took.append(time.perf_counter() - began)
            ours.append(time.process_time() - cpu)
            theirs.append(sum(map(cpu_seconds, server.backends_of(url))))
    return {
        f"start with {LOADED} messages: ms": sorted(took)[2] * 1e3,
        f"start with {LOADED} messages: hub ms": sorted(ours)[2] * 1e3,
        f"start with {LOADED} messages: Postgres ms": sorted(theirs)[2] * 1e3,
        "a message in Postgres: bytes": row[0] / LOADED,
    }


# Nodes ---------------------------------------------------------------------------------------


async def _nodes(bench: Bench, server: PostgresServer, count: int) -> Costs:
    urls = [server.new_database(f"shared{n}") for n in range(count)]
    configs = [
        await _pair_config(bench.scratch / f"shared{n}.db", url) for n, url in enumerate(urls)
    ]
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        alone = server.new_database("alone")
        one = await enter(_place(bench, "one", pair_names(count), alone, False, server))
        many = [
            await enter(start("benchmarks.hub_process", *configs[n::NODES])) for n in range(NODES)
        ]
        ports = [port for each in many for port in each.ports for _ in range(2)]  # of each pair
        sessions = [pid for url in urls for pid in server.backends_of(url)]
        processes = {"hub": [each.pid for each in many], "Postgres": sessions}
        places = [one, Place("many", _Several(many, ports), processes)]
        sides = [await enter(hub_pairs(one.at, count)), await enter(opened_side(places[1].at))]
        sides[1].lanes += [await hub_lane(sides[1], "a0", "b0") for _ in range(count)]
        parts = [_Parts(place) for place in places]
        rounds = await alternate(sides, Pace(1, 1.0, MEASURED_S), ROUNDS)
        costs = Costs(pairs=count)
        for place, side, part, found in zip(places, sides, parts, rounds, strict=True):
            costs[f"nodes, {place.name}: messages/s"] = middle(found, lambda i: i.rate)
            costs[f"nodes, {place.name}: p50 ms"] = middle(found, lambda i: i.p50_ms)
            sent = sum(lane.sent for lane in side.lanes)
            costs |= {
                f"nodes, {place.name}: {name} us": us for name, us in part.us_each(sent).items()
            }
    return costs
