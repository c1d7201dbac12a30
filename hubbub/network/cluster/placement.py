"""Which node should own which network: rendezvous hashing over the nodes that live.

Every node computes the same from what Postgres shows, so nobody is elected and nothing is agreed
on. That two nodes see different things for a moment does no harm: the store has one owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

from msgspec import Struct

__all__ = ["Cluster", "ClusterNode", "NetworkOwner", "NodeNetwork"]


class NodeNetwork(Struct, frozen=True):
    """A network as a node can run it."""

    database: str
    port: int
    listening: bool = False
    """Whether its hub listens there."""
    problem: str = ""
    """Why it could not be started there the last time."""
    gateways: tuple[str, ...] = ()
    """Those that are linked to it there."""


class ClusterNode(Struct, frozen=True):
    """A process that owns its share of the networks."""

    name: str
    host: str
    """Where its hubs listen; empty: where the config of each says."""
    networks: Mapping[str, NodeNetwork]
    live: bool
    """Whether Postgres shows its session, and has heard from it lately."""
    settled: bool
    """Whether it has been there long enough to see who else is."""


class NetworkOwner(Struct, frozen=True):
    """The hub whose session holds a network's database."""

    node: str
    """Empty: a hub that no node runs."""
    program: str


class Cluster(Struct, frozen=True):
    """What Postgres shows, and what people wish."""

    nodes: Mapping[str, ClusterNode]
    owners: Mapping[str, NetworkOwner]
    """By database."""
    moves: Mapping[str, str]
    """Which node a network was moved to."""
    drained: Collection[str]
    """Nodes that should own none, if others can."""

    def placed(self, network: str) -> str | None:
        """The node that should own it; None: no node can.

        A node that could not run it, or that is drained, comes last, since that is better than no
        node.
        """
        able = [n for n in self.nodes.values() if n.live and network in n.networks]
        moved = self.moves.get(network)

        def rank(node: ClusterNode) -> tuple[bool, bool, bool, bytes]:
            failed = bool(node.networks[network].problem)
            return failed, node.name in self.drained, node.name != moved, _score(network, node.name)

        found = min(able, key=rank, default=None)
        return None if found is None else found.name

    def owner_of(self, network: str) -> NetworkOwner | None:
        """Who owns it now; None: nobody does, or no node has named it."""
        databases = {
            service.database
            for node in self.nodes.values()
            if (service := node.networks.get(network)) is not None
        }
        return next((self.owners[each] for each in databases if each in self.owners), None)

    def serves(self, network: str) -> bool:
        """Whether somebody owns it and listens, as far as is known."""
        owner = self.owner_of(network)
        node = self.nodes.get(owner.node) if owner is not None else None
        service = node.networks.get(network) if node is not None else None
        return owner is not None and (service is None or service.listening)

    def owned_by(self, node: str) -> list[str]:
        """The networks that the node owns now."""
        names = {name for each in self.nodes.values() for name in each.networks}
        return sorted(n for n in names if (o := self.owner_of(n)) is not None and o.node == node)


def _score(network: str, node: str) -> bytes:
    return blake2b(f"{network} {node}".encode(), digest_size=8).digest()
