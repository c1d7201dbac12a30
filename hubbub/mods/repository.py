"""The tables of a mod: what all repositories ask and write in the same way, and queues before rows.

Where a statement asks about several names or numbers, it takes them as one value, so that it is the
same statement however many they are: `WHERE thread {AMONG}` with `listed(threads)`.
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


def page_of(found: Iterable[T], limit: int) -> tuple[tuple[T, ...], bool]:
    """The first `limit` of what was found, and whether there is more."""
    page = tuple(islice(found, limit + 1))
    return page[:limit], len(page) > limit


def columns(kind: type[BaseModel], **made: str) -> str:
    """What a SELECT has for `from_row`: the columns with the names of the model's fields; `made`
    says how those are made that are no columns."""
    return ", ".join(made.get(name, name) for name in kind.model_fields)


@cache
def from_row(kind: type[M]) -> Callable[..., M]:
    """Makes models of rows, whose values stand in the order of the model's fields."""
    names = tuple(kind.model_fields)
    return lambda *row: kind.model_validate(dict(zip(names, row, strict=True)))


def insert(table: str, **values: Value) -> Statement:
    """A new row."""
    places = ", ".join("?" * len(values))
    sql = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})"
    return Statement(sql, tuple(values.values()))


def put(table: str, key: str, **values: Value) -> Statement:
    """A row, new or with these values in place of those that the one with this key has."""
    made = insert(table, **values)
    others = ", ".join(f"{name} = excluded.{name}" for name in values if name != key)
    return made._replace(sql=f"{made.sql} ON CONFLICT ({key}) DO UPDATE SET {others}")


def update(table: str, changes: Mapping[str, Value], **where: Value) -> Statement:
    """The one row that has these values."""
    to = ", ".join(f"{name} = ?" for name in changes)
    which = " AND ".join(f"{name} IS ?" for name in where)  # as `=`, for NULL, too
    sql = f"UPDATE {table} SET {to} WHERE {which}"
    return Statement(sql, (*changes.values(), *where.values()), rows=1)


class Repository:
    """What a mod has in its tables, without a look at who may read it."""

    def __init__(self, host: Host):
        self._host = host

    async def all(self, kind: Callable[..., T], sql: str, *values: Value) -> list[T]:
        """The rows, each as `kind` makes it of its columns."""
        return [kind(*row) for row in await self._host.rows(sql, *values)]

    async def page(
        self, kind: Callable[..., T], sql: str, *values: Value, limit: int
    ) -> tuple[tuple[T, ...], bool]:
        """The first `limit` rows, and whether there are more. The statement ends with LIMIT ?."""
        return page_of(await self.all(kind, sql, *values, limit + 1), limit)

    async def one(self, kind: Callable[..., T], sql: str, *values: Value) -> T | None:
        """The first row; None if there is none."""
        return next(iter(await self.all(kind, sql, *values)), None)

    async def last(self, table: str) -> int:
        """The highest id in the table; 0 if it is empty."""
        return int(await self.value(f"SELECT coalesce(max(id), 0) FROM {table}"))

    async def value(self, sql: str, *values: Value) -> Any:  # Any: SQLite's, as it is selected
        """What the only row of one column has."""
        ((found,),) = await self._host.rows(sql, *values)
        return found


class KeyedQueues:
    """A queue for each thing that is being changed, and for no other."""

    def __init__(self) -> None:
        self._locks: dict[Hashable, Lock] = {}
        self._people = Counter[Hashable]()
        """How many are in a queue, the one at its head included."""

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def turn(self, key: Hashable) -> AsyncIterator[Callable[[Commit], Commit]]:
        """Wait for one's turn with what has this key. It lasts until the end of the block; with a
        commit that was handed to the function that it gives, until that is durable or refused."""
        lock = self._locks.setdefault(key, Lock())
        self._people[key] += 1
        handed = False

        def until(commit: Commit) -> Commit:
            nonlocal handed
            handed, commit.released = True, leave
            return commit

        def leave() -> None:
            if held:
                lock.release()
            self._people[key] -= 1
            if not self._people[key]:
                del self._people[key], self._locks[key]

        held = False
        try:
            held = await lock.acquire()
            yield until
        finally:
            if not handed:
                leave()
