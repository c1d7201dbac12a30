"""Opening a Postgres database: required settings, schema, and ownership."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any, TypeVar

import psycopg
from psycopg import sql

from hubbub.config.paths import check_postgres_url, shown_store, without_password
from hubbub.errors import StoreUnavailable, StoreVersionError, UserError
from hubbub.ids import new_ulid
from hubbub.network.store.postgres.link import OwnerSuperseded, line_of
from hubbub.network.store.postgres.session import PostgresSession

__all__ = [
    "HUB_LOCK",
    "LEASE_S",
    "SILENT",
    "UNFINISHED",
    "StoreInUse",
    "connected",
    "has_owner",
    "own",
    "own_again",
    "prepare",
    "release_from_silent",
    "run_beside",
]

T = TypeVar("T")

HUB_LOCK = 0x48754262
"""The advisory lock of the hub that owns the store, held by its session."""
UNFINISHED = "unfinished"
"""Key that marks a copy in progress, with the epoch of its source."""
_HELD = (
    "FROM pg_locks JOIN pg_stat_activity USING (pid) "
    "WHERE locktype = 'advisory' AND objid = ? AND granted "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
)
LEASE_S = 5.0
"""Seconds of silence after which other hubs take over a hub's networks."""
SILENT = (
    "clock_timestamp() - state_change > make_interval(secs => ?) "
    "AND (state <> 'active' OR wait_event_type = 'Client')"
)
"""Whether the server has waited that long for the owner, which is then the one that hangs."""
_LOCK_S = 5.0
"""Seconds to wait for the session of a killed hub to end."""
_SETTINGS: Mapping[str, tuple[frozenset[str], str]] = {
    "synchronous_commit": (
        frozenset({"on", "remote_apply", "local"}),
        "run `ALTER DATABASE {database} SET synchronous_commit = on`",
    ),
    "fsync": (frozenset({"on"}), "set `fsync = on` in postgresql.conf"),
    "full_page_writes": (frozenset({"on"}), "set `full_page_writes = on` in postgresql.conf"),
    "server_encoding": (
        frozenset({"UTF8"}),
        "create a database with `createdb --template template0 --encoding UTF8`",
    ),
}


class StoreInUse(UserError):
    """Another hub owns the store."""


def connected(url: str, *, reading: bool = False, node: str = "") -> PostgresSession:
    """A session, even in a database without a schema. `node` is the name of the hub's node. Raises
    `StoreUnavailable`, and `UserError` for a malformed URL."""
    try:
        check_postgres_url(url)
    except ValueError as error:
        raise UserError(f"{without_password(url)} is not a Postgres URL: {error}") from error
    program = f"node {node}" if node else f"{os.getpid()}"
    try:
        connection: psycopg.Connection[Any] = psycopg.connect(
            url,
            autocommit=True,
            cursor_factory=psycopg.ClientCursor,
            # A replica that is still replaying would look like a log that lacks messages.
            target_session_attrs="primary",
            connect_timeout=5,
            tcp_user_timeout=30_000,
            keepalives_idle=10,
            application_name=f"hubbub {program} on {socket.gethostname()}",
            client_encoding="utf8",
        )
        connection.prepare_threshold = None
        for setting, value in (
            ("search_path", "hubbub"),
            ("jit", "off"),
            ("idle_in_transaction_session_timeout", "0"),
            ("default_transaction_read_only", "on" if reading else "off"),
        ):
            connection.execute(
                sql.SQL("SET {} = {}").format(sql.Identifier(setting), sql.Literal(value))
            )
    except psycopg.Error as error:
        raise StoreUnavailable(f"{shown_store(url)} cannot be reached: {line_of(error)}") from error
    return PostgresSession(connection)


def prepare(session: PostgresSession, name: str, unfinished: str = "") -> None:
    """Check the settings and migrate the schema. `unfinished` is the epoch of a log whose copy may
    be incomplete in the database. Raises `UserError` and `StoreVersionError`."""
    for setting, (fine, remedy) in _SETTINGS.items():
        (value,) = session.execute(f"SHOW {setting}").fetchone()
        if value not in fine:
            database = session.connection.info.dbname
            raise UserError(
                f"{name} has {setting} = {value}, so acknowledged data could be lost: "
                f"{remedy.format(database=database)}, then start again"
            )
    _migrate(session, name)
    _start_anew(session)
    mark = session.execute("SELECT value FROM meta WHERE key = ?", (UNFINISHED,)).fetchone()
    if mark and mark[0] != unfinished:
        raise UserError(
            f"{name} has an unfinished copy of a network: finish it with `hubbub network migrate`"
        )


def _start_anew(session: PostgresSession) -> None:
    """Give a restored log a new epoch, so that all clients start over. A restore shows in new
    tables, or a new timeline of the server."""
    (incarnation,) = session.execute(
        "SELECT concat_ws('/', system_identifier, timeline_id, oid) FROM pg_control_system(), "
        "pg_control_checkpoint(), pg_class WHERE pg_class.oid = CAST('owner' AS regclass)"
    ).fetchone()
    if session.execute("SELECT value FROM meta WHERE key = 'made'").fetchone() != (incarnation,):
        session.execute("DELETE FROM meta WHERE key IN ('made', 'epoch')")
        session.execute("DELETE FROM run")
        rows = [("made", incarnation), ("epoch", new_ulid())]
        session.executemany("INSERT INTO meta (key, value) VALUES (?, ?)", rows)


def run_beside(url: str, work: Callable[[PostgresSession], T]) -> T:
    """The result of `work`, for programs other than the hub, even while a hub is running. Raises
    `UserError` for a database that cannot be used."""
    session = connected(url)
    try:
        prepare(session, shown_store(url))
        return work(session)
    except psycopg.Error as error:
        text = f"{shown_store(url)} cannot be used as a store: {line_of(error)}"
        raise UserError(text) from error
    finally:
        session.close()


def own(session: PostgresSession, name: str) -> int:
    """Become the only hub that writes; returns its fencing number. Raises `StoreInUse` if another
    hub owns the store."""
    until = time.monotonic() + _LOCK_S
    while not _locked(session):
        if time.monotonic() > until:
            raise StoreInUse(
                f"{name} is in use by another hub ({_holder(session)}): stop it first, or give "
                "this network a database of its own"
            )
        time.sleep(0.1)
    (fence,) = session.execute(
        "UPDATE owner SET fence = fence + 1, batch = 0 RETURNING fence"
    ).fetchone()
    _hold(session, fence)
    return int(fence)


def own_again(session: PostgresSession, fence: int, written: tuple[int, int]) -> tuple[int, int]:
    """Regain ownership after the connection was lost. `written` is the number of the last numbered
    batch that was acknowledged, and the end of the log then; returns what the database has.

    Raises `OwnerSuperseded` if another hub took over meanwhile, or if the server has an older copy
    of the log, which must not continue with a gap; and `StoreUnavailable` while the server has not
    ended the last session.
    """
    owner, *there = session.execute("SELECT fence, batch, head FROM owner").fetchone()
    if owner > fence:
        raise OwnerSuperseded
    if owner < fence or there[0] < written[0] or there[1] < written[1]:
        raise OwnerSuperseded(
            "the database lacks messages that this hub has confirmed, as after a restore or the "
            "promotion of a replica that was behind; this hub writes nothing more"
        )
    if not _locked(session):
        raise StoreUnavailable("the previous session has not ended yet")
    _hold(session, fence)
    session.batch, head = session.execute("SELECT batch, head FROM owner").fetchone()
    return session.batch, head


def _hold(session: PostgresSession, fence: int) -> None:
    session.execute(f"SET hubbub.fence = {fence:d}")


def _locked(session: PostgresSession) -> bool:
    locked: bool = session.execute("SELECT pg_try_advisory_lock(?)", (HUB_LOCK,)).fetchone()[0]
    return locked


def has_owner(session: PostgresSession) -> bool:
    """Whether a hub owns the store."""
    return session.execute(f"SELECT 1 {_HELD}", (HUB_LOCK,)).fetchone() is not None


def _holder(session: PostgresSession) -> str:
    row = session.execute(f"SELECT application_name {_HELD}", (HUB_LOCK,)).fetchone()
    return row[0] if row else "unknown"


def release_from_silent(session: PostgresSession, lease_s: float) -> str | None:
    """The store's owner, if any. Ends the session, and with it the ownership, of an owner that was
    silent for `lease_s`."""
    row = session.execute(
        f"SELECT pid, application_name, {SILENT} {_HELD}", (lease_s, HUB_LOCK)
    ).fetchone()
    if row is None:
        return None
    pid, owner, silent = row
    if silent:
        session.execute("SELECT pg_terminate_backend(?)", (pid,))
    return str(owner)


def _scripts() -> Mapping[int, str]:
    """The migrations by number, from 1 without gaps."""
    folder = resources.files(__package__) / "migrations"
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    return {int(file.name[:4]): file.read_text(encoding="utf-8") for file in files}


def _migrate(session: PostgresSession, name: str) -> None:
    steps = _scripts()
    connection = session.connection
    there = session.execute("SELECT to_regclass('hubbub.meta') IS NOT NULL").fetchone()[0]
    version = 0
    if there:
        row = session.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        if row is None:
            raise UserError(
                f"the schema hubbub in {name} is incomplete, as after an interrupted restore: drop "
                "the schema and restore it again"
            )
        version = int(row[0])
    if version > len(steps):
        raise StoreVersionError(
            f"{name} has schema version {version}, written by a newer Hubbub, and this one knows "
            f"versions up to {len(steps)}: update Hubbub"
        )
    try:
        for number in range(version + 1, len(steps) + 1):
            with connection.transaction():
                connection.execute("CREATE SCHEMA IF NOT EXISTS hubbub")
                connection.execute(steps[number].encode())
                connection.execute(
                    "INSERT INTO meta VALUES ('version', %s) "
                    "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (str(number),),
                )
    except psycopg.errors.InsufficientPrivilege as error:
        user = connection.info.user
        raise UserError(
            f"{name} does not allow {user} to create the schema: run "
            f"`GRANT CREATE ON DATABASE {connection.info.dbname} TO {user}`"
        ) from error
