"""What is to be sent: the mod's table, what is read from it, and the statements that write it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from hubbub.ids import message_id, new_ulid
from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.webhooks.schemas import Delivery, State

__all__ = ["DeliveryRepository", "DeliveryRow", "added", "again", "at_once", "done", "postponed"]

_COLUMNS = "n, id, hook, event, seq, data, at, state, attempts, due, outcome"
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
    state: str
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
            state=cast(State, self.state),
            attempts=self.attempts,
            outcome=self.outcome,
        )


class DeliveryRepository:
    """Of all hooks of a network."""

    def __init__(self, host: Host):
        self._host = host

    async def waiting(self) -> dict[str, int]:
        """How many events wait, by hook."""
        rows = await self._host.rows(
            "SELECT hook, count(*) FROM webhooks_delivery WHERE state = 'waiting' GROUP BY hook"
        )
        return dict(rows)

    async def failed(self) -> dict[str, int]:
        """How many were given up or dropped, of those that are remembered, by hook."""
        rows = await self._host.rows(
            "SELECT hook, count(*) FROM webhooks_delivery "
            "WHERE state IN ('failed', 'dropped') GROUP BY hook"
        )
        return dict(rows)

    async def first(self, hook: str) -> DeliveryRow | None:
        """The one that waits longest."""
        rows = await self._host.rows(
            f"SELECT {_COLUMNS} FROM webhooks_delivery "
            "WHERE hook = ? AND state = 'waiting' ORDER BY n LIMIT 1",
            hook,
        )
        return DeliveryRow(*rows[0]) if rows else None

    async def one(self, id: str) -> DeliveryRow | None:
        rows = await self._host.rows(f"SELECT {_COLUMNS} FROM webhooks_delivery WHERE id = ?", id)
        return DeliveryRow(*rows[0]) if rows else None

    async def page(
        self, hook: str, state: str | None, before: int, limit: int
    ) -> list[DeliveryRow]:
        """Latest first."""
        rows = await self._host.rows(
            f"SELECT {_COLUMNS} FROM webhooks_delivery "
            "WHERE hook = ? AND (? IS NULL OR state = ?) AND n < ? ORDER BY n DESC LIMIT ?",
            *(hook, state, state, before, limit),
        )
        return [DeliveryRow(*row) for row in rows]

    async def trim(self, hook: str, most: int) -> int:
        """Drop the oldest of those that wait, until there are `most`; how many that were."""
        rows = await self._host.rows(
            "SELECT n FROM webhooks_delivery WHERE hook = ? AND state = 'waiting' "
            "ORDER BY n DESC LIMIT 1 OFFSET ?",
            *(hook, most),
        )
        if not rows:
            return 0
        (upto,) = rows[0]
        ((count,),) = await self._host.rows(
            "SELECT count(*) FROM webhooks_delivery "
            "WHERE hook = ? AND state = 'waiting' AND n <= ?",
            *(hook, upto),
        )
        drop = (
            "UPDATE webhooks_delivery SET state = 'dropped', outcome = 'too many were waiting' "
            "WHERE hook = ? AND state = 'waiting' AND n <= ?"
        )
        await self._host.keep([Statement(drop, (hook, upto))])
        return int(count)

    async def forget(self, hook: str, kept: int) -> None:
        """All but the last ones of those that are done with."""
        await self._host.keep(
            [
                Statement(
                    "DELETE FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' AND n <= ("
                    "SELECT n FROM webhooks_delivery WHERE hook = ? AND state != 'waiting' "
                    "ORDER BY n DESC LIMIT 1 OFFSET ?)",
                    (hook, hook, kept),
                )
            ]
        )


def added(hook: str, event: str, at: float, *, seq: int | None = None, data: str = "") -> Statement:
    """An event for a receiver."""
    return Statement(
        "INSERT INTO webhooks_delivery (id, hook, event, seq, data, at, state) "
        "VALUES (?, ?, ?, ?, ?, ?, 'waiting')",
        (new_ulid(), hook, event, seq, data or None, at),
    )


def done(row: DeliveryRow, state: State, outcome: str) -> Sequence[Statement]:
    """It was sent, or is given up."""
    return [
        Statement(
            "UPDATE webhooks_delivery SET state = ?, outcome = ?, attempts = attempts + 1 "
            "WHERE n = ? AND state = 'waiting'",
            (state, outcome[:SHORT], row.n),
        )
    ]


def postponed(row: DeliveryRow, due: float, outcome: str) -> Sequence[Statement]:
    """It is tried again at `due`."""
    return [
        Statement(
            "UPDATE webhooks_delivery SET due = ?, outcome = ?, attempts = attempts + 1 "
            "WHERE n = ? AND state = 'waiting'",
            (due, outcome[:SHORT], row.n),
        )
    ]


def at_once(hook: str) -> Statement:
    """Nothing waits any longer than for its turn."""
    return Statement(
        "UPDATE webhooks_delivery SET due = 0 WHERE hook = ? AND state = 'waiting' AND due > 0",
        (hook,),
    )


def again(row: DeliveryRow) -> Statement:
    """It waits anew, as if it had never been tried."""
    return Statement(
        "UPDATE webhooks_delivery SET state = 'waiting', attempts = 0, due = 0 "
        "WHERE n = ? AND state IN ('failed', 'dropped')",
        (row.n,),
        rows=1,
    )
