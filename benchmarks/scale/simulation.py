"""Nodes and gateways that die, in virtual time, with the costs that `measure` has found.

A processor is a queue: what arrives waits until what came before is done. Nothing here is Hubbub's
code but the back-off of its clients; what they share is the costs and the settings.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from itertools import count

from benchmarks.stats import percentile
from hubbub.client import Backoff

__all__ = ["Failover", "Settings", "Storm", "Wave", "fail_over", "place", "reconnect"]


class Time:
    """The events that are still to come."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def after(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._numbers), do))

    def run(self, until: float = float("inf")) -> None:
        while self._events and self._events[0][0] <= until:
            self.now, _, do = heapq.heappop(self._events)
            do()


class Processor:
    """So many cores that do one thing after the other."""

    def __init__(self, time: Time, cores: int = 1):
        self._time, self._free = time, cores
        self._queue: deque[tuple[float | Callable[[], float], Callable[[], None]]] = deque()
        self.busy_s = 0.0
        self.longest = 0
        """Of the queue, so far."""

    def do(
        self, seconds: float | Callable[[], float], then: Callable[[], None] = lambda: None
    ) -> None:
        """`seconds` may depend on what holds when its turn has come."""
        self._queue.append((seconds, then))
        self.longest = max(self.longest, len(self._queue))
        self._next()

    def _next(self) -> None:
        if self._free and self._queue:
            self._free -= 1
            cost, then = self._queue.popleft()
            seconds = cost if isinstance(cost, float) else cost()
            self.busy_s += seconds

            def done() -> None:
                self._free += 1
                then()
                self._next()

            self._time.after(seconds, done)


# Placement and failover ----------------------------------------------------------------------


def place(network: str, nodes: Sequence[str]) -> str:
    """The node that owns the network: rendezvous hashing, as nodes do it."""
    return max(nodes, key=lambda node: blake2b(f"{node} {network}".encode()).digest())


@dataclass(frozen=True)
class Failover:
    """A node of several dies with all its networks."""

    nodes: int
    networks: int
    """Of each node, about."""
    at_once: int = 4
    """Starts that a node has under way at the same time."""
    lease_s: float = 5.0
    """Until others know: 0 for a process that ends, the lease for a machine that is gone."""
    look_s: float = 0.5
    """Between two looks of a node at what there is to take."""
    node_s: float = 0.05
    """CPU of the node for the start of a network."""
    postgres_s: float = 0.03
    """CPU of Postgres for the same."""
    postgres_cores: int = 8
    sessions: int = 0
    """Of each network, that go on at its new owner."""
    session_s: float = 0.001
    """CPU of the owner for each of them."""


@dataclass
class Storm:
    """How it went."""

    moved: Mapping[str, str]
    """Networks, and where they are now."""
    kept: bool
    """Whether all others stayed where they were."""
    served_s: list[float]
    """When each of those that moved was served again."""
    postgres_busy: float
    """Share of its cores until the last one was."""
    most: int
    """Networks that one node has got."""


def fail_over(storm: Failover) -> Storm:
    time = Time()
    nodes = [f"node{n}" for n in range(storm.nodes)]
    names = [f"network{n}" for n in range(storm.nodes * storm.networks)]
    before = {name: place(name, nodes) for name in names}
    dead, *living = nodes
    after = {name: place(name, living) for name in names}
    moved = {name: after[name] for name in names if before[name] == dead}
    postgres = Processor(time, storm.postgres_cores)
    shares = {node: [name for name, at in moved.items() if at == node] for node in living}
    served: list[float] = []
    for n, share in enumerate(shares.values()):
        at = storm.lease_s + storm.look_s * n / len(living)
        _start_all(time, storm, share, postgres, at, served)
    time.run()
    busy = postgres.busy_s / storm.postgres_cores / max(time.now - storm.lease_s, 1e-9)
    kept = all(after[name] == before[name] for name in names if name not in moved)
    return Storm(moved, kept, served, busy, max(map(len, shares.values())))


def _start_all(
    time: Time,
    storm: Failover,
    share: Sequence[str],
    postgres: Processor,
    at: float,
    served: list[float],
) -> None:
    """A node starts the networks that it has got, some at once."""
    node, waiting = Processor(time), deque(share)

    def next_one() -> None:
        if waiting:
            waiting.popleft()
            postgres.do(storm.postgres_s, lambda: node.do(storm.node_s, started))

    def started() -> None:
        node.do(storm.sessions * storm.session_s, lambda: served.append(time.now))
        next_one()

    for _ in range(min(storm.at_once, len(share))):
        time.after(at, next_one)


# Reconnect waves -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Settings:
    """A gateway of several dies, and all who were there come to the others."""

    clients: int = 10_000
    """At each gateway."""
    gateways: int = 4
    owners: int = 1
    """Networks that share the clients, each with its owner on a processor of its own."""
    gateway_s: float = 0.001
    """CPU of a gateway for a join."""
    owner_s: float = 0.002
    """CPU of the owner for it."""
    load: float = 0.3
    """Share of all processors that the usual traffic takes."""
    shown_s: float = 0.0
    """CPU of a gateway to show one client who has come, which it does once for each gathering."""
    gather_s: float = 0.05
    gather_each_s: float = 0.0001
    """How long those who come are gathered before all are shown them, and for each who is."""
    passes_over: bool = True
    """Whether an owner lets in one after the other, and not those who have given up."""
    backoff: Backoff = field(default_factory=Backoff)
    patience_s: float = 10.0
    """How long a client waits for its welcome before it tries again."""
    seed: int = 1


@dataclass
class Wave:
    """How it went."""

    joined_s: list[float]
    """When each client was back, those that were counted."""
    attempts: int
    wasted: int
    """Joins that were done for clients that had given up."""
    longest: int
    """Of the queue of an owner."""

    def within(self, share: float) -> float:
        return percentile(self.joined_s, share)


def reconnect(settings: Settings, until: float = 600.0) -> Wave:
    """The wave until all are back, or for so many seconds."""
    time, chance = Time(), random.Random(settings.seed)
    backoff = replace(settings.backoff, random=chance.random)
    room = 1 - settings.load
    gateways = [Processor(time) for _ in range(settings.gateways - 1)]
    owners = [Processor(time) for _ in range(settings.owners)]
    wave = Wave([], 0, 0, 0)
    there = settings.clients * (settings.gateways - 1)
    gathering: set[int] = set()
    """Networks that are about to show who has come."""

    def show(network: int) -> None:
        gathering.discard(network)
        each = there / settings.owners / len(gateways)
        for gateway in gateways:
            gateway.do(each * settings.shown_s / room)

    def came(network: int) -> None:
        if network not in gathering:
            gathering.add(network)
            gather_s = settings.gather_s + settings.gather_each_s * there / settings.owners
            time.after(gather_s, lambda: show(network))

    def attempt(client: int, number: int) -> None:
        wave.attempts += 1
        network = client % settings.owners
        gateway, owner = chance.choice(gateways), owners[network]
        waits = True

        def welcome() -> None:
            nonlocal waits
            if waits:
                waits = False
                wave.joined_s.append(time.now)
                came(network)
            elif not settings.passes_over:
                wave.wasted += 1

        def give_up() -> None:
            nonlocal waits
            if waits:
                waits = False
                time.after(backoff.delay(number), lambda: attempt(client, number + 1))

        def cost() -> float:
            return settings.owner_s / room if waits or not settings.passes_over else 0.0

        def passed_on() -> None:
            if waits:  # else the gateway has seen that its peer is gone
                owner.do(cost, welcome)

        gateway.do(settings.gateway_s / room, passed_on)
        time.after(settings.patience_s, give_up)

    for client in range(settings.clients):
        time.after(backoff.delay(0), lambda client=client: attempt(client, 1))  # type: ignore[misc]
    time.run(until)
    wave.longest = max(owner.longest for owner in owners)
    return wave
