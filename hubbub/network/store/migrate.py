"""Migrates a database to this program's schema: numbered scripts, each in its own transaction.

The schema's version is SQLite's `user_version`; `application_id` identifies the file as ours.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import resources

from hubbub.errors import StoreVersionError
from hubbub.ids import new_ulid
from hubbub.logs import get_logger

__all__ = ["APPLICATION_ID", "check_version", "latest_version", "migrate", "scripts"]

log = get_logger(__name__)

APPLICATION_ID = 0x48754262
"""`HuBb`, in the header of every database of ours."""


@cache
def scripts(package: str = "hubbub.network.store") -> Mapping[int, str]:
    """The migrations of a package's schema by number, in order."""
    folder = resources.files(package) / "migrations"
    files = [file for file in folder.iterdir() if file.name.endswith(".sql")]
    files.sort(key=lambda file: file.name)
    return {int(file.name[:4]): file.read_text(encoding="utf-8") for file in files}


def latest_version() -> int:
    return max(scripts())


def check_version(db: sqlite3.Connection, name: str, latest: int | None = None) -> int:
    """The schema's version, 0 for an empty database. `name` is for error messages.

    Raises `StoreVersionError` for a database that is not ours or newer than `latest` (default: this
    program's version).
    """
    newest = latest_version() if latest is None else latest
    application, version = _pragma(db, "application_id"), _pragma(db, "user_version")
    if application != APPLICATION_ID:
        (objects,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if objects or application or version:
            raise StoreVersionError(
                f"{name} is a database of another program: configure another file as the store"
            )
        return 0
    if version > newest:
        raise StoreVersionError(
            f"{name} has schema version {version}, written by a newer Hubbub, and this one knows "
            f"versions up to {newest}: update Hubbub, or name another file as the store"
        )
    return version


def migrate(db: sqlite3.Connection, name: str, steps: Mapping[int, str] | None = None) -> None:
    """Run the new scripts among `steps` (default: those of this program).

    A failing script changes nothing, including the version.
    """
    todo = scripts() if steps is None else steps
    version = check_version(db, name, max(todo))
    if 0 < version < max(todo):
        log.info("migrating the store, which takes a while if its log is long", store=name)
    for number, script in todo.items():
        if number <= version:
            continue
        try:
            db.executescript(
                f"BEGIN IMMEDIATE;\n{script}\n"
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
