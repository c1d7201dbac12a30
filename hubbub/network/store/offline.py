"""Tokens, written by a program that is not the hub while a hub may be running."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from hubbub.errors import StoreVersionError, UserError
from hubbub.network.ports import Record, TokenAdded, TokenRevoked
from hubbub.network.store.connection import connect, transaction
from hubbub.network.store.lock import DatabaseLock
from hubbub.network.store.migrate import check_version, latest_version, migrate
from hubbub.network.store.place import parse_url
from hubbub.network.store.records import write_records

__all__ = ["add_token_offline", "revoke_tokens_offline"]


async def add_token_offline(url: str, sha256: str, participant: str) -> None:
    """Let a token (its SHA-256, hex) prove `participant`, from the next `identify` on.

    Creates the database if there is none. Raises `UserError` for a store in memory, and
    `StoreVersionError` for a database that this program cannot write.
    """
    await _write(url, TokenAdded(sha256, participant))


async def revoke_tokens_offline(url: str, participant: str) -> None:
    """Make all tokens of `participant` useless. Raises like `add_token_offline`."""
    await _write(url, TokenRevoked(participant))


async def _write(url: str, record: Record) -> None:
    place = parse_url(url)
    if place.path is None:
        raise UserError("a store in memory belongs to its hub: it has no tokens to keep")
    connection = await connect(place, "synchronous = FULL")
    try:
        await connection.run(_write_record, place.path, record)
    finally:
        await connection.close()


def _write_record(db: sqlite3.Connection, path: Path, record: Record) -> None:
    if check_version(db, str(path)) < latest_version():
        _migrate_alone(db, path)
    with transaction(db):
        write_records(db, [record])


def _migrate_alone(db: sqlite3.Connection, path: Path) -> None:
    """Never change the schema under a running hub."""
    lock = DatabaseLock(path)
    try:
        lock.acquire()
    except UserError as error:
        raise StoreVersionError(
            f"{path} has an older schema and a hub is running on it: stop the hub first"
        ) from error
    try:
        migrate(db, str(path))
    finally:
        lock.release()
