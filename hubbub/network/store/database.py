"""The database interface of the queries: the part of `sqlite3.Connection` that they use.

Queries use the SQL common to SQLite and Postgres, with SQLite's placeholders; `postgres.session`
translates the remaining differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

__all__ = ["Database", "Rows", "snapshot", "transaction"]


class Rows(Protocol):
    """The rows of a statement: tuples, in order."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Database(Protocol):
    """A connection, used by one thread."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, sql: str, parameters: Any = ..., /) -> Rows: ...

    def executemany(self, sql: str, parameters: Iterable[Any], /) -> object: ...


@contextmanager
def transaction(db: Database) -> Iterator[None]:
    """A write transaction: committed at the end, rolled back if anything raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # some errors end it
            with suppress(Exception):  # report the first error
                db.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(db: Database) -> Iterator[None]:
    """Several reads that see the same state."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")  # COMMIT fails after a read of a destroyed page
