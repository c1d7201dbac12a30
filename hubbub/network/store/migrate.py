"""Bring a database to this program's schema: numbered scripts, each in its own transaction.

The schema's version is SQLite's `user_version`; `application_id` says that the file is ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources

from hubbub.errors import StoreVersionError
from hubbub.ids import new_ulid

__all__ = ["APPLICATION_ID", "check_version", "latest_version", "migrate", "scripts"]

APPLICATION_ID = 0x48754262
"""`HuBb`, in the header of every database of ours."""


@cache
def scripts() -> Mapping[int, str]:
    """The migrations by number, from 1 without gaps."""
    folder = resources.files("hubbub.network.store") / "migrations"
    found = {
        int(file.name[:4]): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }
    return {number: found[number] for number in range(1, len(found) + 1)}


def latest_version() -> int:
    return len(scripts())


def check_version(db: sqlite3.Connection, name: str) -> int:
    """The schema's version, 0 for an empty database.

    Raises `StoreVersionError` for a database that is not ours or newer than this program.
    """
    application, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    if application != APPLICATION_ID:
        (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if objects or application or version:
            raise StoreVersionError(
                f"{name} is a database of another program: name another file as the store"
            )
        return 0
    if version > latest_version():
        raise StoreVersionError(
            f"{name} has schema version {version}, written by a newer Hubbub, and this one knows "
            f"versions up to {latest_version()}: update Hubbub, or name another file as the store"
        )
    return version


def migrate(db: sqlite3.Connection, name: str) -> None:
    """Run the scripts that the database has not seen. A failed one leaves its version as it was."""
    for number in range(check_version(db, name) + 1, latest_version() + 1):
        try:
            db.executescript(
                f"BEGIN IMMEDIATE;\n{scripts()[number]}\n"
                f"PRAGMA application_id = {APPLICATION_ID};\n"
                f"PRAGMA user_version = {number};\n"
                "COMMIT;"
            )
        except sqlite3.Error:
            if db.in_transaction:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            raise
    db.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('epoch', ?)", (new_ulid(),))


def _pragma(db: sqlite3.Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value
