"""Shared code for the tables of mods: a base class for repositories, statements, and queues.

A statement takes a list of names or numbers as one value, so that its text does not depend on their
number: `WHERE thread {AMONG}` with `listed(threads)`.
"""

from __future__ import annotations

import json
from asyncio import Lock
from collections import Counter
from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from pydantic import BaseModel

from hubbub.mods.host import Host
from hubbub.mods.operation import Commit, Statement, Value

__all__ = [
    "AMONG",
    "KeyedQueues",
    "Repository",
    "columns",
    "from_row",
    "insert",
    "listed",
    "page_of",
    "put",
    "update",
]


T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)

AMONG = "IN (SELECT value FROM json_each(?))"


def listed(values: Iterable[int | str]) -> str:
    """The value for `AMONG`."""
    return json.dumps(list(values))


def page_of(items: Iterable[T], limit: int) -> tuple[tuple[T, ...], bool]:
    """The first `limit` items, and whether there are more."""
    page = tuple(islice(items, limit + 1))
    return page[:limit], len(page) > limit


def columns(kind: type[BaseModel], **expressions: str) -> str:
    """The columns of a SELECT for `from_row`, named after the model's fields. `expressions` are for
    fields that are not columns."""
    return ", ".join(expressions.get(name, name) for name in kind.model_fields)


@cache
def from_row(kind: type[M]) -> Callable[..., M]:
    """A function that creates a model from a row with values in the order of its fields."""
    names = tuple(kind.model_fields)
    return lambda *row: kind.model_validate(dict(zip(names, row, strict=True)))


def insert(table: str, **values: Value) -> Statement:
    """Insert a row."""
    places = ", ".join("?" * len(values))
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"
    return Statement(sql, tuple(values.values()))


def put(table: str, key: str, **values: Value) -> Statement:
    """Insert a row, or update the one with this key."""
    statement = insert(table, **values)
    others = ", ".join(f"{name} = excluded.{name}" for name in values if name != key)
    return statement._replace(sql=f"{statement.sql} ON CONFLICT ({key}) DO UPDATE SET {others}")


def update(table: str, changes: Mapping[str, Value], **where: Value) -> Statement:
    """Update the one row that has the values in `where`."""
    to = ", ".join(f"{name} = ?" for name in changes)
    which = " AND ".join(f"{name} IS ?" for name in where)  # like `=`, but also for NULL
    sql = f"UPDATE {table} SET {to} WHERE {which}"
    return Statement(sql, (*changes.values(), *where.values()), rows=1)


class Repository:
    """Access to the tables of a mod, without permission checks."""

    def __init__(self, host: Host):
        self._host = host

    async def all(self, kind: Callable[..., T], sql: str, *values: Value) -> list[T]:
        """All rows, each converted by `kind`."""
        return [kind(*row) for row in await self._host.rows(sql, *values)]

    async def page(
        self, kind: Callable[..., T], sql: str, *values: Value, limit: int
    ) -> tuple[tuple[T, ...], bool]:
        """The first `limit` rows, and whether there are more. `sql` must end with LIMIT ?."""
        return page_of(await self.all(kind, sql, *values, limit + 1), limit)

    async def one(self, kind: Callable[..., T], sql: str, *values: Value) -> T | None:
        """The first row, or None."""
        return next(iter(await self.all(kind, sql, *values)), None)

    async def last(self, table: str) -> int:
        """The highest id in the table; 0 if it is empty."""
        return int(await self.value(f"SELECT coalesce(max(id), 0) FROM {table}"))

    async def value(self, sql: str, *values: Value) -> Any:  # Any: a SQLite value
        """The value of a single row with one column."""
        ((result,),) = await self._host.rows(sql, *values)
        return result


class KeyedQueues:
    """Queues by key, which exist only while they are in use."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, Lock] = {}
        self._counts = Counter[Hashable]()
        """Number of callers in each queue, including the one whose turn it is."""

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[Callable[[Commit], Commit]]:
        """Wait for the turn in the queue with this key. The turn lasts until the end of the block,
        or until a commit passed to the yielded function is durable or refused."""
        lock = self._locks.setdefault(key, Lock())
        self._counts[key] += 1
        handed = False

        def until(commit: Commit) -> Commit:
            nonlocal handed
            handed, commit.released = True, leave
            return commit

        def leave() -> None:
            if held:
                lock.release()
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key], self._locks[key]

        held = False
        try:
            held = await lock.acquire()
            yield until
        finally:
            if not handed:
                leave()
