"""The cluster's database: its nodes, their networks, and the operators' requests.

Live nodes and owners of networks are in no table: the server shows the sessions that hold the
advisory locks, including those of hubs in the databases of their networks.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec
import psycopg

from hubbub.config.paths import shown_store
from hubbub.errors import UserError
from hubbub.network.cluster.placement import Cluster, ClusterNode, NetworkOwner, NodeNetwork
from hubbub.network.store.postgres.database import HUB_LOCK, LEASE_S, SILENT, connected
from hubbub.network.store.postgres.link import line_of
from hubbub.network.store.postgres.session import PostgresSession

__all__ = [
    "LEASE_S",
    "connected_to_cluster",
    "describe",
    "drain",
    "enter",
    "forget",
    "leave",
    "look",
    "move",
]

_NODE_LOCK = 0x4875624E
"""Together with a node's name, the advisory lock of its session."""
SETTLED_S = 2.0
"""Seconds after which a node has seen the others, so that nodes starting together share."""
_PROGRAM = re.compile(r"hubbub node (\S+) ")
_SCHEMA = """
CREATE SCHEMA IF NOT EXISTS hubbub_cluster;
CREATE TABLE IF NOT EXISTS hubbub_cluster.node
    (name text PRIMARY KEY, host text NOT NULL, networks text NOT NULL);
CREATE TABLE IF NOT EXISTS hubbub_cluster.move (network text PRIMARY KEY, node text NOT NULL);
CREATE TABLE IF NOT EXISTS hubbub_cluster.drain (node text PRIMARY KEY);
"""
_HOLDERS = (
    "SELECT pid, datname, application_name, classid = 0, "
    f"clock_timestamp() - backend_start > make_interval(secs => ?), {SILENT} "
    "FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND granted AND ("
    "classid = 0 AND objid = ? AND objsubid = 1 AND datname = ANY(?) "
    "OR classid = ? AND objsubid = 2 AND datname = current_database())"
)
_read_networks = msgspec.json.Decoder(dict[str, NodeNetwork]).decode


def connected_to_cluster(url: str, node: str = "") -> PostgresSession:
    """A session in the cluster's database, which gets its schema. Raises `StoreUnavailable`, and
    `UserError` for a database that cannot be used."""
    session = connected(url, node=node)
    try:
        with session.connection.transaction():
            # Of several that start at once, one creates the schema.
            session.execute("SELECT pg_advisory_xact_lock(?)", (_NODE_LOCK,))
            session.connection.execute(_SCHEMA.encode())
    except psycopg.Error as error:
        session.close()
        text = f"{shown_store(url)} cannot be the cluster's database: {line_of(error)}"
        raise UserError(text) from error
    return session


# A node -----------------------------------------------------------------------------------------


def enter(session: PostgresSession, node: str) -> None:
    """Register the session as that of a node. Raises `UserError` if the node has another
    session."""
    lock = "SELECT pg_try_advisory_lock(?, hashtext(?))"
    if not session.execute(lock, (_NODE_LOCK, node)).fetchone()[0]:
        raise UserError(f"a node named {node} already exists: give each node its own --name")


def describe(
    session: PostgresSession, node: str, host: str, networks: Mapping[str, NodeNetwork]
) -> None:
    """Store the networks that the node can run."""
    session.execute(
        "INSERT INTO hubbub_cluster.node VALUES (?, ?, ?) ON CONFLICT (name) "
        "DO UPDATE SET host = excluded.host, networks = excluded.networks",
        (node, host, msgspec.json.encode(networks).decode()),
    )


def leave(session: PostgresSession, node: str) -> None:
    """Release the node's lock, so that networks are placed at other nodes."""
    session.execute("SELECT pg_advisory_unlock(?, hashtext(?))", (_NODE_LOCK, node))


def forget(session: PostgresSession, node: str) -> None:
    """Remove a node that ended cleanly."""
    session.execute("DELETE FROM hubbub_cluster.node WHERE name = ?", (node,))


# Current state ----------------------------------------------------------------------------------


def look(session: PostgresSession, *, end_silent: bool = False) -> Cluster:
    """The current state of the cluster. `end_silent` ends sessions that were silent for a lease,
    and with them their ownership."""
    rows = session.execute("SELECT name, host, networks FROM hubbub_cluster.node").fetchall()
    entries = {name: (host, _read_networks(text)) for name, host, text in rows}
    databases = {each.database for _, networks in entries.values() for each in networks.values()}
    owners, there = _holders(session, databases, end_silent)
    nodes = {
        name: ClusterNode(name, host, networks, name in there, there.get(name, False))
        for name, (host, networks) in entries.items()
    }
    moves = session.execute("SELECT network, node FROM hubbub_cluster.move").fetchall()
    drained = session.execute("SELECT node FROM hubbub_cluster.drain").fetchall()
    return Cluster(nodes, owners, dict(moves), frozenset(name for (name,) in drained))


def _holders(
    session: PostgresSession, databases: Collection[str], end_silent: bool
) -> tuple[dict[str, NetworkOwner], dict[str, bool]]:
    """Owners by database, and the live nodes with whether they are settled."""
    owners, there = dict[str, NetworkOwner](), dict[str, bool]()
    parameters = (SETTLED_S, LEASE_S, HUB_LOCK, list(databases), _NODE_LOCK)
    for row in session.execute(_HOLDERS, parameters).fetchall():
        pid, database, program, is_hub, settled, silent = row
        if silent and end_silent:
            session.execute("SELECT pg_terminate_backend(?)", (pid,))
        named = _PROGRAM.match(program)
        node = named[1] if named else ""
        if is_hub:
            owners[database] = NetworkOwner(node, program)
        elif not silent:
            there[node] = settled
    return owners, there


# Operators' requests ----------------------------------------------------------------------------


def move(session: PostgresSession, network: str, node: str | None) -> None:
    """Assign the network to a node, if that can run it; None: to any node."""
    if node is None:
        session.execute("DELETE FROM hubbub_cluster.move WHERE network = ?", (network,))
    else:  # one statement, as nodes would act on the state between two
        session.execute(
            "INSERT INTO hubbub_cluster.move VALUES (?, ?) "
            "ON CONFLICT (network) DO UPDATE SET node = excluded.node",
            (network, node),
        )


def drain(session: PostgresSession, node: str, *, wanted: bool) -> None:
    """Place the node's networks at other nodes, if there are any; not `wanted`: undo that."""
    if wanted:
        insert = "INSERT INTO hubbub_cluster.drain VALUES (?) ON CONFLICT DO NOTHING"
        session.execute(insert, (node,))
    else:
        session.execute("DELETE FROM hubbub_cluster.drain WHERE node = ?", (node,))
