"""What people see of a cluster, and what they wish of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import psycopg
from msgspec import Struct

from hubbub.config.problems import nearest
from hubbub.errors import StoreUnavailable, UserError
from hubbub.network.cluster.placement import Cluster
from hubbub.network.store.postgres import cluster as database
from hubbub.network.store.postgres.link import line_of
from hubbub.network.store.postgres.session import PostgresSession

__all__ = ["ClusterNetwork", "ClusterStatus", "NodeStatus", "drain", "move", "status"]

AGAIN_S = 0.2


class NodeStatus(Struct, frozen=True):
    """A node, as people see it."""

    name: str
    host: str
    live: bool
    drained: bool
    networks: list[str]
    """Those that it owns."""


class ClusterNetwork(Struct, frozen=True):
    """A network, as people see it."""

    name: str
    owner: str | None
    """A node, or how a hub calls itself that no node runs; None: nobody owns it."""
    serves: bool
    """Whether its owner listens already, and still."""
    address: str | None
    """Where its owner listens; None: only the config says."""
    placed: str | None
    """The node that should own it; None: no node can."""
    moved_to: str | None
    gateways: list[str]
    """Those that are linked to its owner."""
    problems: dict[str, str]
    """Why nodes could not run it, by node."""


class ClusterStatus(Struct, frozen=True):
    """A cluster, as people see it."""

    nodes: list[NodeStatus]
    networks: list[ClusterNetwork]


@contextmanager
def _asking(url: str) -> Iterator[PostgresSession]:
    """A session. Raises UserError, and StoreUnavailable while the server does not answer."""
    session = database.connected_to_cluster(url)
    try:
        yield session
    except psycopg.Error as error:
        raise StoreUnavailable(f"the cluster cannot be asked: {line_of(error)}") from error
    finally:
        session.close()


def status(url: str) -> ClusterStatus:
    """The cluster whose database this is."""
    with _asking(url) as session:
        seen = database.look(session)
    names = sorted({name for node in seen.nodes.values() for name in node.networks})
    nodes = [
        NodeStatus(each.name, each.host, each.live, each.name in seen.drained,
                  seen.owned_by(each.name))
        for each in sorted(seen.nodes.values(), key=lambda node: node.name)
    ]  # fmt: skip
    away = sorted({*seen.drained} - {*seen.nodes})
    nodes += [NodeStatus(name, "", live=False, drained=True, networks=[]) for name in away]
    return ClusterStatus(nodes, [_network(seen, name) for name in names])


def _network(seen: Cluster, name: str) -> ClusterNetwork:
    owner = seen.owner_of(name)
    node = seen.nodes.get(owner.node) if owner is not None else None
    service = node.networks.get(name) if node is not None else None
    problems = {
        each.name: each.networks[name].problem
        for each in seen.nodes.values()
        if name in each.networks and each.networks[name].problem
    }
    return ClusterNetwork(
        name,
        (owner.node or owner.program) if owner is not None else None,
        seen.serves(name),
        f"{node.host}:{service.port}" if node and node.host and service else None,
        seen.placed(name),
        seen.moves.get(name),
        list(service.gateways) if service else [],
        problems,
    )


def move(url: str, network: str, node: str | None, *, wait: bool) -> None:
    """Have the network owned by the node; None: by whichever is chosen. Returns when it is so, or
    with no `wait` at once. Raises UserError for what does not exist, or cannot be."""
    with _asking(url) as session:
        seen = database.look(session)
        networks = {name for each in seen.nodes.values() for name in each.networks}
        _check("network", network, networks)
        if node is not None:
            _check("node", node, seen.nodes)
            if network not in seen.nodes[node].networks:
                raise UserError(f"{node} does not have {network} among its configs")
        database.move(session, network, node)
        if wait:
            _until(session, lambda seen: _is_there(seen, network, node))


def _is_there(seen: Cluster, network: str, node: str | None) -> bool:
    placed, owner = seen.placed(network), seen.owner_of(network)
    if node is not None and placed != node:
        why = "it does not live"
        if seen.nodes[node].live:
            why = seen.nodes[node].networks[network].problem or "it is drained"
        raise UserError(f"{network} goes to {node} when that can have it, and now {why}")
    return owner is not None and owner.node == placed and seen.serves(network)


def drain(url: str, node: str, *, wanted: bool, wait: bool) -> None:
    """Have the node own nothing, or (not `wanted`) its share again. Returns when it is so, or with
    no `wait` at once. Raises UserError for what does not exist, or cannot be."""
    with _asking(url) as session:
        seen = database.look(session)
        _check("node", node, {*seen.nodes, *([] if wanted else seen.drained)})
        database.drain(session, node, wanted=wanted)
        if wanted and wait:
            owned = seen.owned_by(node)
            _until(session, lambda seen: _is_empty(seen, node) and all(map(seen.serves, owned)))


def _is_empty(seen: Cluster, node: str) -> bool:
    owned = seen.owned_by(node)
    stay = [name for name in owned if seen.placed(name) == node]
    if stay:
        raise UserError(
            f"{node} keeps {', '.join(stay)} until another node can have it: start one, or see "
            "`hubbub cluster status`"
        )
    return not owned


def _until(session: PostgresSession, done: Callable[[Cluster], bool]) -> None:
    while not done(database.look(session)):
        time.sleep(AGAIN_S)


def _check(what: str, name: str, known: Iterable[str]) -> None:
    if name not in (names := list(known)):
        raise UserError(f"there is no {what} '{name}' in this cluster{nearest(name, names)}")
