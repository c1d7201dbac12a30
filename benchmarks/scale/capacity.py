"""What a million connections and a hundred thousand networks need, computed from measured costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

__all__ = ["Demand", "Need", "needs"]


@dataclass(frozen=True)
class Demand:
    """What is to be served. Rates are of an hour in which much is said."""

    connections: int = 1_000_000
    networks: int = 100_000
    sent_s: float = 0.01
    """Messages a second of each connection."""
    receivers: int = 10
    """Of each message: on the average all of a network."""
    entry_bytes: int = 500
    full: float = 0.5
    """Share of a processor that may be used: the rest is for those who take over."""
    sessions_of_postgres: int = 2_000
    """That one server can hold: each is a process."""
    rejoin_s: float = 30.0
    """In which all connections of a node should be back."""

    @property
    def messages_s(self) -> float:
        return self.connections * self.sent_s


class Need(NamedTuple):
    """One resource: how much, and how it is computed."""

    what: str
    amount: str
    because: str


def needs(demand: Demand, costs: Mapping[str, float]) -> Sequence[Need]:
    """From the costs that `measure` keeps."""
    nodes = _nodes(demand, costs)
    sessions = demand.networks * costs["an idle network on Postgres: sessions"]
    beats = demand.networks * costs["an idle network on Postgres: Postgres us/s"] / 1e6
    servers = math.ceil(sessions / demand.sessions_of_postgres)
    wal = demand.messages_s * costs["50x1: WAL bytes a message"]
    written = demand.messages_s * costs["nodes, many: Postgres us"] / 1e6
    stored = demand.messages_s * costs["a message in Postgres: bytes"] * 86_400
    return [
        *nodes,
        Need(
            "sessions of Postgres",
            f"{sessions:,.0f}",
            f"{costs['an idle network on Postgres: sessions']:.0f} of each network; with "
            f"{demand.sessions_of_postgres:,} a server, {servers:,} servers, and "
            f"{sessions * costs['a session of Postgres: KiB'] / 2**20:,.0f} GiB of memory",
        ),
        Need(
            "Postgres: signs of life",
            f"{beats:,.0f} cores",
            "each owner is heard once a second, whether anything is said or not",
        ),
        Need(
            "Postgres: messages",
            f"{written / demand.full:,.0f} cores, {demand.messages_s:,.0f} syncs/s",
            f"{demand.messages_s:,.0f} messages/s in as many networks: hardly two share a commit",
        ),
        Need(
            "Postgres: disk",
            f"{wal / 2**20:,.0f} MiB/s of WAL, {stored / 2**30:,.0f} GiB a day",
            f"{costs['50x1: WAL bytes a message']:,.0f} bytes of WAL and "
            f"{costs['a message in Postgres: bytes']:,.0f} of tables and indexes for a message",
        ),
        Need(
            "traffic",
            f"{demand.messages_s * (demand.receivers + 1) * demand.entry_bytes / 2**20:,.0f} MiB/s",
            f"{demand.messages_s * (demand.receivers + 1):,.0f} frames/s of "
            f"{demand.entry_bytes} bytes, to and from clients",
        ),
    ]


def _nodes(demand: Demand, costs: Mapping[str, float]) -> Sequence[Need]:
    """Processes that own networks, each on a core, which hold the sockets of small ones too."""
    deliveries = demand.messages_s * demand.receivers
    messages = demand.messages_s * costs["nodes, many: hub us"] / 1e6
    fan = deliveries * costs["direct, fan-out: hub us"] / 1e6
    idle = demand.networks * costs["an idle network on Postgres: hub us/s"] / 1e6
    memory = (
        demand.networks * costs["a network more: KiB"]
        + demand.connections * costs["direct: hub KiB a connection"]
    ) / 2**20
    join_s = costs["direct, first joins: hub us"] / 1e6
    back = math.ceil(demand.connections * join_s / demand.rejoin_s / demand.full)
    cores = math.ceil((messages + fan + idle) / demand.full)
    return [
        Need(
            "nodes, for what is said",
            f"{cores:,} processes of a core each",
            f"{messages:,.0f} cores for messages, {fan:,.0f} for deliveries, {idle:,.0f} for "
            f"networks that do nothing, {demand.full:.0%} full",
        ),
        Need(
            "nodes, for who comes back",
            f"{back:,} processes",
            f"{join_s * 1e3:.1f} ms for a join; all should be back in {demand.rejoin_s:.0f} s",
        ),
        Need(
            "nodes: memory",
            f"{memory:,.0f} GiB in all",
            f"{costs['a network more: KiB']:,.0f} KiB a network, "
            f"{costs['direct: hub KiB a connection']:.0f} KiB a connection",
        ),
    ]
