"""Migrates a database to this program's schema: numbered scripts, each in its own transaction.

The schema's version is SQLite's `user_version`; `application_id` identifies the file as ours.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache, partial
from importlib import resources

import msgspec

from hubbub.errors import StoreVersionError
from hubbub.ids import new_ulid
from hubbub.logs import get_logger
from hubbub.network.store.checksums import entry_sum
from hubbub.protocol.turns import part_id

__all__ = ["APPLICATION_ID", "check_version", "latest_version", "migrate", "scripts"]

log = get_logger(__name__)

APPLICATION_ID = 0x48754262
"""`HuBb`, in the header of every database of ours."""
_RENAMED = {"outside": "untrusted", "spoken_by": "sent_by"}


@cache
def scripts() -> Mapping[int, str]:
    """The migrations by number, from 1 without gaps."""
    folder = resources.files("hubbub.network.store") / "migrations"
    files = {
        int(file.name[:4]): file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    }
    return {number: files[number] for number in range(1, len(files) + 1)}


def latest_version() -> int:
    return len(scripts())


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
    version = check_version(db, name, len(todo))
    if 0 < version < len(todo):
        log.info("migrating the store, which takes a while if its log is long", store=name)
    if version == 0 and steps is None:
        with closing(sqlite3.connect(":memory:")) as new:
            new.deserialize(_empty())
            new.backup(db)
    else:
        _run(db, todo, version)
    db.execute("INSERT OR IGNORE INTO meta (key, value) VALUES ('epoch', ?)", (new_ulid(),))


@cache
def _empty() -> bytes:
    """A new database with all scripts applied; copying it takes a tenth of their time."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        _run(db, scripts(), 0)
        return db.serialize()


def _run(db: sqlite3.Connection, steps: Mapping[int, str], version: int) -> None:
    db.create_function("entry_sum", 8, _first_sum, deterministic=True)
    db.create_function("renewed_sum", 9, _renewed_sum, deterministic=True)
    db.create_function("sum_for_reason", 13, partial(_sum_with, 8), deterministic=True)
    db.create_function("sum_for_body", 13, partial(_sum_with, 10), deterministic=True)
    db.create_function("renamed_fields", 1, _renamed_fields, deterministic=True)
    db.create_function("part_digest", 1, _part_digest, deterministic=True)
    for number in range(version + 1, len(steps) + 1):
        try:
            db.executescript(
                f"BEGIN IMMEDIATE;\n{steps[number]}\n"
                f"PRAGMA application_id = {APPLICATION_ID};\n"
                f"PRAGMA user_version = {number};\n"
                "COMMIT;"
            )
        except sqlite3.Error:
            if db.in_transaction:
                with suppress(sqlite3.Error):
                    db.execute("ROLLBACK")
            raise


def _first_sum(*row: object) -> int:
    """The checksum of a message's columns as of migration 8, with texts as bytes."""
    return zlib.crc32(b" ".join(e if isinstance(e, bytes) else str(e).encode() for e in row))


def _renewed_sum(*columns: object) -> int:
    """The checksum of a message from before migration 9; -1 if it was damaged."""
    *row, body, files = columns
    whole = _first_sum(*row, body) == files
    return entry_sum((*row, None, None, None, body, files)) if whole else -1


def _sum_with(at: int, *columns: object) -> int:
    """The checksum of a message with another value in one column; -1 if it was damaged."""
    *entry, value = columns
    if entry_sum(entry) != entry[-1]:
        return -1
    entry[at] = value
    return entry_sum(entry)


def _renamed_fields(body: bytes) -> bytes:
    """A message's JSON as of migration 13; unchanged if it cannot be read."""
    try:
        fields = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    except msgspec.MsgspecError:
        return body
    return msgspec.json.encode({_RENAMED.get(name, name): fields[name] for name in fields})


def _part_digest(text: str | None) -> bytes:
    """The digest of a prompt with one part; empty if there is no prompt."""
    return bytes.fromhex(part_id(text)) if text else b""


def _pragma(db: sqlite3.Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value
