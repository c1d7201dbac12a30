"""Inspecting and administering a cluster."""

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
    """The status of a node."""

    name: str
    host: str
    live: bool
    drained: bool
    networks: list[str]
    """The networks it owns."""


class ClusterNetwork(Struct, frozen=True):
    """The status of a network."""

    name: str
    owner: str | None
    """The owning node, or the name of a hub outside of nodes; None if there is no owner."""
    serves: bool
    """Whether its owner is listening."""
    address: str | None
    """The owner's address; None if only the config has it."""
    placed: str | None
    """The node that should own it; None if no node can."""
    moved_to: str | None
    gateways: list[str]
    """The gateways linked to its owner."""
    problems: dict[str, str]
    """Why nodes cannot run it, by node."""


class ClusterStatus(Struct, frozen=True):
    """The status of a cluster."""

    nodes: list[NodeStatus]
    networks: list[ClusterNetwork]


@contextmanager
def _session(url: str) -> Iterator[PostgresSession]:
    """A database session. Raises `UserError`, and `StoreUnavailable` without an answer."""
    session = database.connected_to_cluster(url)
    try:
        yield session
    except psycopg.Error as error:
        raise StoreUnavailable(f"cannot query the cluster: {line_of(error)}") from error
    finally:
        session.close()


def status(url: str) -> ClusterStatus:
    """The status of the cluster with this database."""
    with _session(url) as session:
        state = database.look(session)
    names = sorted({name for node in state.nodes.values() for name in node.networks})
    nodes = [
        NodeStatus(each.name, each.host, each.live, each.name in state.drained,
                  state.owned_by(each.name))
        for each in sorted(state.nodes.values(), key=lambda node: node.name)
    ]  # fmt: skip
    away = sorted({*state.drained} - {*state.nodes})
    nodes += [NodeStatus(name, "", live=False, drained=True, networks=[]) for name in away]
    return ClusterStatus(nodes, [_network(state, name) for name in names])


def _network(state: Cluster, name: str) -> ClusterNetwork:
    owner = state.owner_of(name)
    node = state.nodes.get(owner.node) if owner is not None else None
    service = node.networks.get(name) if node is not None else None
    problems = {
        each.name: each.networks[name].problem
        for each in state.nodes.values()
        if name in each.networks and each.networks[name].problem
    }
    return ClusterNetwork(
        name,
        (owner.node or owner.program) if owner is not None else None,
        state.serves(name),
        f"{node.host}:{service.port}" if node and node.host and service else None,
        state.placed(name),
        state.moves.get(name),
        list(service.gateways) if service else [],
        problems,
    )


def move(url: str, network: str, node: str | None, *, wait: bool) -> None:
    """Move a network to a node; None undoes an earlier move. Returns when it is done, or at once
    without `wait`. Raises `UserError` for unknown names, and if the node cannot run it."""
    with _session(url) as session:
        state = database.look(session)
        networks = {name for each in state.nodes.values() for name in each.networks}
        _check("network", network, networks)
        if node is not None:
            _check("node", node, state.nodes)
            if network not in state.nodes[node].networks:
                raise UserError(f"{node} does not have the config of {network}")
        database.move(session, network, node)
        if wait:
            _until(session, lambda state: _is_there(state, network, node))


def _is_there(state: Cluster, network: str, node: str | None) -> bool:
    placed, owner = state.placed(network), state.owner_of(network)
    if node is not None and placed != node:
        why = "it is not live; it moves as soon as it can"
        if state.nodes[node].live:
            problem = state.nodes[node].networks[network].problem
            why = (
                f"{problem}; then restart {node}"
                if problem
                else "it is drained; it moves as soon as it can"
            )
        raise UserError(f"{node} cannot take {network} yet: {why}")
    return owner is not None and owner.node == placed and state.serves(network)


def drain(url: str, node: str, *, wanted: bool, wait: bool) -> None:
    """Drain a node, or undrain it if not `wanted`. Returns when it is done, or at once without
    `wait`. Raises `UserError` for unknown names, and if a network cannot be moved."""
    with _session(url) as session:
        state = database.look(session)
        _check("node", node, {*state.nodes, *([] if wanted else state.drained)})
        database.drain(session, node, wanted=wanted)
        if wanted and wait:
            owned = state.owned_by(node)
            _until(session, lambda state: _is_empty(state, node) and all(map(state.serves, owned)))


def _is_empty(state: Cluster, node: str) -> bool:
    owned = state.owned_by(node)
    stay = [name for name in owned if state.placed(name) == node]
    if stay:
        raise UserError(
            f"{node} keeps {', '.join(stay)} until another node can take it: start one, or see "
            "`hubbub cluster status`"
        )
    return not owned


def _until(session: PostgresSession, done: Callable[[Cluster], bool]) -> None:
    while not done(database.look(session)):
        time.sleep(AGAIN_S)


def _check(what: str, name: str, valid: Iterable[str]) -> None:
    if name not in (names := list(valid)):
        raise UserError(f"there is no {what} '{name}' in this cluster{nearest(name, names)}")
