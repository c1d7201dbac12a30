"""Which node should own which network: rendezvous hashing over the live nodes.

Every node computes the same result from the state in Postgres, without an election. If two nodes
see different states for a moment, no harm is done, as the store has one owner.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from hashlib import blake2b

from msgspec import Struct

__all__ = ["Cluster", "ClusterNode", "NetworkOwner", "NodeNetwork"]


class NodeNetwork(Struct, frozen=True):
    """A network that a node can run."""

    database: str
    port: int
    listening: bool = False
    """Whether its hub is listening there."""
    problem: str = ""
    """Why the last start there failed."""
    gateways: tuple[str, ...] = ()
    """The gateways linked to it there."""


class ClusterNode(Struct, frozen=True):
    """A process that owns its share of the networks."""

    name: str
    host: str
    """The address that its hubs listen on; empty for that in each config."""
    networks: Mapping[str, NodeNetwork]
    live: bool
    """Whether Postgres shows a session of the node that was active recently."""
    settled: bool
    """Whether it has been up long enough to see the other nodes."""


class NetworkOwner(Struct, frozen=True):
    """The hub whose session holds a network's database."""

    node: str
    """Empty for a hub that no node runs."""
    program: str


class Cluster(Struct, frozen=True):
    """The state in Postgres, and the operators' requests."""

    nodes: Mapping[str, ClusterNode]
    owners: Mapping[str, NetworkOwner]
    """By database."""
    moves: Mapping[str, str]
    """By network: the node it was moved to."""
    drained: Collection[str]
    """Nodes that should own no networks, if others can."""

    def placed(self, network: str) -> str | None:
        """The node that should own the network; None if no node can.

        A node that failed to run it, or that is drained, is only a last resort.
        """
        able = [n for n in self.nodes.values() if n.live and network in n.networks]
        moved = self.moves.get(network)

        def rank(node: ClusterNode) -> tuple[bool, bool, bool, bytes]:
            failed = bool(node.networks[network].problem)
            return failed, node.name in self.drained, node.name != moved, _score(network, node.name)

        best = min(able, key=rank, default=None)
        return None if best is None else best.name

    def owner_of(self, network: str) -> NetworkOwner | None:
        """The network's current owner, if it has one and any node lists it."""
        databases = {
            service.database
            for node in self.nodes.values()
            if (service := node.networks.get(network)) is not None
        }
        return next((self.owners[each] for each in databases if each in self.owners), None)

    def serves(self, network: str) -> bool:
        """Whether the network has an owner that is listening, as far as is known."""
        owner = self.owner_of(network)
        node = self.nodes.get(owner.node) if owner is not None else None
        service = node.networks.get(network) if node is not None else None
        return owner is not None and (service is None or service.listening)

    def owned_by(self, node: str) -> list[str]:
        """The networks that the node currently owns."""
        names = {name for each in self.nodes.values() for name in each.networks}
        return sorted(n for n in names if (o := self.owner_of(n)) is not None and o.node == node)


def _score(network: str, node: str) -> bytes:
    return blake2b(f"{network} {node}".encode(), digest_size=8).digest()
