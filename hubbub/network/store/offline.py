"""Access to a store by programs other than the hub. Tokens can be managed even while it runs."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import quote

from hubbub.config.paths import POSTGRES
from hubbub.errors import StoreVersionError, UserError
from hubbub.network.records import Record, TokenAdded, TokenRevoked
from hubbub.network.store.checksums import check_end, log_end
from hubbub.network.store.connection import connect, explained
from hubbub.network.store.database import Database
from hubbub.network.store.location import SqliteLocation, cluster_extra, parse_url
from hubbub.network.store.lock import DatabaseLock, make_file, make_private
from hubbub.network.store.migrate import check_version, latest_version, migrate
from hubbub.network.store.reads import token_counts
from hubbub.network.store.records import write_records

__all__ = [
    "add_token_offline",
    "hub_runs_on",
    "list_tokens_offline",
    "read_head_offline",
    "revoke_tokens_offline",
]

P = ParamSpec("P")
T = TypeVar("T")


async def add_token_offline(url: str, sha256: str, participant: str) -> None:
    """Accept a token (as SHA-256, hex) for `participant` from the next `identify` on.

    Creates the database if there is none. Raises `UserError` for a store in memory, and
    `StoreVersionError` for a database that this program cannot write.
    """
    await _run(url, lambda db: _write(db, TokenAdded(sha256, participant)))


async def revoke_tokens_offline(url: str, participant: str) -> None:
    """Revoke all tokens of `participant`. Raises as `add_token_offline`."""
    await _run(url, lambda db: _write(db, TokenRevoked(participant)))


def hub_runs_on(url: str) -> bool:
    """Whether a hub is running on the store, on any machine."""
    if url.startswith(POSTGRES):
        with cluster_extra():
            from hubbub.network.store.postgres.database import has_owner, run_beside
        return run_beside(url, has_owner)
    if not _path(url).exists():
        return False
    lock = DatabaseLock(_path(url))
    try:
        lock.acquire()
    except UserError:
        return True
    lock.release()
    return False


async def list_tokens_offline(url: str) -> Mapping[str, int]:
    """The number of tokens by participant. Changes nothing. Raises as `add_token_offline`."""
    if url.startswith(POSTGRES):
        return await _run(url, token_counts)
    path = _path(url)
    if not path.exists():
        return {}
    return _read(path, lambda db, version: token_counts(db) if version else {})


def read_head_offline(path: Path) -> int | None:
    """The number of messages of the store in this file, without changing it. None if it has an
    older schema, which the next hub migrates.

    Raises `UserError` for a store that a hub cannot open, and `LogDamaged`.
    """

    def head(db: sqlite3.Connection, version: int) -> int | None:
        if version != latest_version():
            return None if version else 0
        check_end(db, str(path))
        return log_end(db)

    lock = DatabaseLock(path)
    lock.acquire()
    try:
        return _read(path, head)
    finally:
        lock.release()


def _read(path: Path, work: Callable[[sqlite3.Connection, int], T]) -> T:
    """The result of `work` for the database and its version."""
    uri = f"file:{quote(str(path))}?mode=ro"
    with (
        explained(SqliteLocation(path)),
        closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db,
    ):
        return work(db, check_version(db, str(path)))


def _path(url: str) -> Path:
    path = parse_url(url).path
    if path is None:
        raise UserError("a store in memory belongs to its hub: it stores no tokens")
    return path


async def _run(url: str, work: Callable[[Database], T]) -> T:
    if url.startswith(POSTGRES):
        with cluster_extra():
            from hubbub.network.store.postgres.database import run_beside
        return await asyncio.to_thread(run_beside, url, work)
    path = _path(url)
    place = SqliteLocation(path)
    with explained(place):
        try:
            make_file(path)
        except OSError as error:
            raise UserError(f"{path} cannot be opened: {error.strerror}") from error
        if await _in_connection(place, check_version, str(path)) != latest_version():
            await _migrate_alone(place, path)
        make_private(path)
        return await _in_connection(place, work)


async def _in_connection(
    place: SqliteLocation,
    work: Callable[Concatenate[sqlite3.Connection, P], T],
    *args: P.args,
    **kw: P.kwargs,
) -> T:
    connection = await connect(place, "synchronous = FULL")
    try:
        return await connection.run(work, *args, **kw)
    finally:
        await connection.close()


def _write(db: Database, record: Record) -> None:
    write_records(db, [record])  # one statement, an implicit transaction


async def _migrate_alone(place: SqliteLocation, path: Path) -> None:
    """Migrate the schema, unless a hub is running."""
    lock = DatabaseLock(path)
    try:
        lock.acquire()
    except UserError as error:
        raise StoreVersionError(
            f"{path} has an older schema and a hub is running on it: stop the hub first"
        ) from error
    try:
        await _in_connection(place, migrate, str(path))
    finally:
        lock.release()
