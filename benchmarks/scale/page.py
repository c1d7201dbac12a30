"""The tables of docs/explanation/scale.md."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.report import short
from benchmarks.scale.capacity import Demand, needs
from benchmarks.scale.measure import SHAPES
from benchmarks.scale.simulation import Failover, Settings, fail_over, reconnect
from benchmarks.stats import percentile
from hubbub.client import Backoff

__all__ = ["tables"]

EACH = 10
"""Clients that one stands for in a wave."""
UNTIL_S = 120.0
"""Virtual seconds after which a wave is given up."""
Costs = Mapping[str, float]
Row = Sequence[object]


def tables(costs: Costs, made_on: str) -> Mapping[str, str]:
    """By the name of their place in the page."""
    return {
        "messages": _table(
            ("network", "messages/s", "p50 ms", "hub us", "gateway us", "Postgres us"),
            _messages(costs),
        )
        + f"\n\n{made_on}",
        "connections": _table(
            (f"{costs['connections']:,.0f} connections at", "hub", "3 gateways and their hub"),
            _connections(costs),
        ),
        "networks": _table(
            ("a network", ""), [(name, short(costs[name])) for name in NETWORK if name in costs]
        ),
        "nodes": _table(
            (f"{costs['pairs']:.0f} pairs x 1", "messages/s", "p50 ms", "hub us", "Postgres us"),
            _nodes(costs),
        ),
        "needs": _table(("what", "how much", "why"), needs(Demand(), costs)),
        "failover": _table(
            ("nodes", "networks of each", "starts at once", "half", "99 %", "all", "Postgres"),
            _failovers(costs),
        ),
        "waves": _table(
            ("what is different", "back within 30 s", "half", "99 %", "attempts"), _waves(costs)
        ),
    }


NETWORK = (
    "a network more: KiB",
    "a network with two connections more: KiB",
    "a network's start: ms",
    "an idle network: us/s",
    "a network with two idle connections: us/s",
    "a network with a message/s: us/s",
    "an idle network on Postgres: hub us/s",
    "an idle network on Postgres: Postgres us/s",
    "an idle network on Postgres: sessions",
    "a session of Postgres: KiB",
    "start with 10000 messages: ms",
    "start with 10000 messages: hub ms",
    "start with 10000 messages: Postgres ms",
    "a message in Postgres: bytes",
)


def _table(head: Sequence[str], rows: Sequence[Row] | Iterator[Row]) -> str:
    numbers = "|".join(["---", *("---:" if len(head) != 3 else "---" for _ in head[1:])])
    lines = [f"| {' | '.join(head)} |", f"|{numbers}|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def _messages(costs: Costs) -> Iterator[Row]:
    for pairs, window in SHAPES:
        for store in ("sqlite", "postgres"):
            for way in ("direct", "gateway"):
                key = f"{store} {way} {pairs}x{window}"
                parts = ("messages/s", "p50 ms", "hub us", "gateway us", "Postgres us")
                cells = (costs.get(f"{key}: {part}") for part in parts)
                name = f"{pairs} pairs x {window}, {store.title()}, {way}"
                yield name, *("" if cell is None else short(cell) for cell in cells)


def _connections(costs: Costs) -> Iterator[Row]:
    for what, hub, gateway in (
        ("deliveries/s", "{}, fan-out: deliveries/s", ""),
        ("everywhere p50 (ms)", "{}, fan-out: everywhere p50 ms", ""),
        ("CPU a delivery (us)", "{}, fan-out: hub us", "{}, fan-out: gateway us"),
        (
            "CPU a join, the first tenth (us)",
            "{}, first joins: hub us",
            "{}, first joins: gateway us",
        ),
        ("CPU a join, the last tenth (us)", "{}, last joins: hub us", "{}, last joins: gateway us"),
        ("KiB a connection", "{}: hub KiB a connection", "{}: gateway KiB a connection"),
    ):
        behind = short(costs[hub.format("gateways")])
        if gateway:
            behind = f"hub {behind}, gateways {short(costs[gateway.format('gateways')])}"
        yield what, short(costs[hub.format("direct")]), behind


def _nodes(costs: Costs) -> Iterator[Row]:
    for name, what in (("one", "in one network"), ("many", "each in a network, on 3 nodes")):
        parts = ("messages/s", "p50 ms", "hub us", "Postgres us")
        yield what, *(short(costs[f"nodes, {name}: {part}"]) for part in parts)


def _failovers(costs: Costs) -> Iterator[Row]:
    base = Failover(
        nodes=10,
        networks=300,
        node_s=costs["start with 10000 messages: hub ms"] / 1e3,
        postgres_s=costs["start with 10000 messages: Postgres ms"] / 1e3,
    )
    for nodes, networks, at_once in (
        (3, 300, 4),
        (10, 300, 4),
        (10, 300, 1),
        (10, 600, 4),
        (30, 100, 4),
        (30, 300, 4),
    ):
        storm = fail_over(replace(base, nodes=nodes, networks=networks, at_once=at_once))
        times = (f"{percentile(storm.served_s, share):.1f} s" for share in (0.5, 0.99, 1.0))
        yield nodes, f"{networks:,}", at_once, *times, f"{storm.postgres_busy:.0%} busy"


def _waves(costs: Costs) -> Iterator[Row]:
    usual = Settings(
        clients=10_000 // EACH,
        gateway_s=EACH * costs["gateways, first joins: gateway us"] / 1e6,
        owner_s=EACH * costs["gateways, first joins: hub us"] / 1e6,
        shown_s=EACH * costs["gateways, fan-out: gateway us"] / 1e6,
        gather_each_s=EACH * Settings.gather_each_s,
    )
    all_at_once = replace(usual, passes_over=False)
    for what, settings in (
        ("nothing: as it is", usual),
        ("all are let in at once, as it was", all_at_once),
        ("who comes is shown each 50 ms, as it was", replace(usual, gather_each_s=0.0)),
        ("both, as it was", replace(all_at_once, gather_each_s=0.0)),
        ("clients wait 30 s for their welcome", replace(usual, patience_s=30.0)),
        ("the first delay is 1 s instead of 0.1", replace(usual, backoff=Backoff(first_s=1.0))),
        ("the first delay is 10 s", replace(usual, backoff=Backoff(first_s=10.0))),
        ("10 networks share the clients", replace(usual, owners=10)),
        ("10 gateways instead of 4", replace(usual, gateways=10)),
        ("processors are 60 % full instead of 30", replace(usual, load=0.6)),
    ):
        wave = reconnect(settings, UNTIL_S)
        back = sum(at <= 30 for at in wave.joined_s) / settings.clients
        lost = [UNTIL_S] * (settings.clients - len(wave.joined_s))
        times = (percentile([*wave.joined_s, *lost], share) for share in (0.5, 0.99))
        shown = (f"{at:.0f} s" if at < UNTIL_S else f"over {UNTIL_S:.0f} s" for at in times)
        yield what, f"{back:.0%}", *shown, f"{wave.attempts * EACH:,}"
