"""What is to be sent: the mod's table, what is read from it, and the statements that write it."""

from __future__ import annotations

from typing import NamedTuple

from hubbub.ids import message_id, new_ulid
from hubbub.mods.fields import time_of
from hubbub.mods.operation import Statement, Value
from hubbub.mods.repository import Repository, insert
from hubbub.mods.webhooks.schemas import Delivery, State

__all__ = ["DeliveryRepository", "DeliveryRow", "added", "again", "at_once", "done", "postponed"]

SHORT = 300
"""Characters of an outcome."""


class DeliveryRow(NamedTuple):
    """One event on its way to one receiver."""

    n: int
    id: str
    hook: str
    event: str
    seq: int | None
    data: str | None
    at: float
    state: State
    attempts: int
    due: float
    outcome: str

    def to_schema(self) -> Delivery:
        return Delivery(
            number=self.n,
            id=self.id,
            hook=self.hook,
            event=self.event,
            message_id=None if self.seq is None else message_id(self.seq),
            at=time_of(self.at),
            state=self.state,
            attempts=self.attempts,
            outcome=self.outcome,
        )


_ROWS = f"SELECT {', '.join(DeliveryRow._fields)} FROM webhooks_delivery WHERE"
_WAITS = "hook = ? AND state = 'waiting'"


class DeliveryRepository(Repository):
    """Of all hooks of a network."""

    async def counts(self, *states: State) -> dict[str, int]:
        """How many events are in these states, by hook, of those that are remembered."""
        places = ", ".join("?" * len(states))
        sql = (
            f"SELECT hook, count(*) FROM webhooks_delivery WHERE state IN ({places}) GROUP BY hook"
        )
        return dict(await self._host.rows(sql, *states))

    async def first(self, hook: str) -> DeliveryRow | None:
        """The one that waits longest."""
        return await self.one(DeliveryRow, f"{_ROWS} {_WAITS} ORDER BY n LIMIT 1", hook)

    async def find(self, id: str) -> DeliveryRow | None:
        return await self.one(DeliveryRow, f"{_ROWS} id = ?", id)

    async def of_hook(
        self, hook: str, state: str | None, before: int, limit: int
    ) -> tuple[tuple[DeliveryRow, ...], bool]:
        """Latest first."""
        sql = f"{_ROWS} hook = ? AND (? IS NULL OR state = ?) AND n < ? ORDER BY n DESC LIMIT ?"
        return await self.page(DeliveryRow, sql, hook, state, state, before, limit=limit)

    async def trim(self, hook: str, most: int) -> int:
        """Drop the oldest of those that wait, until there are `most`; how many that were."""
        oldest = (
            f"SELECT coalesce(max(n), 0), count(*) FROM webhooks_delivery WHERE {_WAITS} AND n <= "
            f"(SELECT n FROM webhooks_delivery WHERE {_WAITS} ORDER BY n DESC LIMIT 1 OFFSET ?)"
        )
        ((upto, count),) = await self._host.rows(oldest, hook, hook, most)
        drop = (
            "UPDATE webhooks_delivery SET state = 'dropped', outcome = 'too many were waiting' "
            f"WHERE {_WAITS} AND n <= ?"
        )
        if count:
            await self._host.keep([Statement(drop, (hook, upto))])
        return int(count)

    async def forget(self, hook: str, kept: int) -> None:
        """All but the last ones of those that are done with."""
        old = (
            "DELETE FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' AND n <= ("
            "SELECT n FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' "
            "ORDER BY n DESC LIMIT 1 OFFSET ?)"
        )
        await self._host.keep([Statement(old, (hook, hook, kept))])


def added(hook: str, event: str, at: float, *, seq: int | None = None, data: str = "") -> Statement:
    """An event for a receiver."""
    of = {"hook": hook, "event": event, "seq": seq, "data": data or None}
    return insert("webhooks_delivery", id=new_ulid(), at=at, state="waiting", **of)


def _tried(row: DeliveryRow, **changes: Value) -> Statement:
    """It was sent once more, with these consequences; if it still waits."""
    names = "".join(f", {name} = ?" for name in changes)
    sql = f"UPDATE webhooks_delivery SET attempts = attempts + 1{names} WHERE n = ? AND {_WAITS}"
    return Statement(sql, (*changes.values(), row.n, row.hook))


def done(row: DeliveryRow, state: State, outcome: str) -> Statement:
    """It was sent, or is given up."""
    return _tried(row, state=state, outcome=outcome[:SHORT])


def postponed(row: DeliveryRow, due: float, outcome: str) -> Statement:
    """It is tried again at `due`."""
    return _tried(row, due=due, outcome=outcome[:SHORT])


def at_once(hook: str) -> Statement:
    """Nothing waits any longer than for its turn."""
    return Statement(f"UPDATE webhooks_delivery SET due = 0 WHERE {_WAITS} AND due > 0", (hook,))


def again(row: DeliveryRow) -> Statement:
    """It waits anew, as if it had never been tried."""
    sql = (
        "UPDATE webhooks_delivery SET state = 'waiting', attempts = 0, due = 0 "
        "WHERE n = ? AND state IN ('failed', 'dropped')"
    )
    return Statement(sql, (row.n,), rows=1)
