"""The tables of the mod `polls`: what is read from them, and the statements that write them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from hubbub.mods.fields import time_of
from hubbub.mods.polls.schemas import PollSummary
from hubbub.mods.repository import AMONG, Repository, listed
from hubbub.mods.rows import Statement

__all__ = ["PollRepository", "PollRow", "announced", "closed", "created", "voted"]

_COLUMNS = (
    "id, thread, question, options, secret, multiple, quorum, created_by, created_at, deadline, "
    "closed_at, closed_by, "
    "coalesce(voters, (SELECT count(DISTINCT voter) FROM polls_vote WHERE poll = id))"
)
_IN_STATE = {"open": " AND closed_at IS NULL", "closed": " AND closed_at IS NOT NULL", None: ""}


class PollRow(NamedTuple):
    """A poll without its votes."""

    id: int
    thread: str
    question: str
    texts: str
    """The options as a JSON list."""
    secret: int
    multiple: int
    quorum: int
    created_by: str
    created_at: float
    deadline: float | None
    closed_at: float | None
    closed_by: str | None
    voters: int

    @property
    def options(self) -> list[str]:
        options: list[str] = json.loads(self.texts)
        return options

    def to_schema(self) -> PollSummary:
        return PollSummary(
            id=f"p{self.id}",
            thread_id=self.thread,
            question=self.question,
            state="open" if self.closed_at is None else "closed",
            secret=bool(self.secret),
            multiple=bool(self.multiple),
            quorum=self.quorum,
            created_by=self.created_by,
            created_at=time_of(self.created_at),
            deadline=time_of(self.deadline),
            closed_at=time_of(self.closed_at),
            closed_by=self.closed_by,
            voters=self.voters,
        )


class PollRepository(Repository):
    async def last(self) -> int:
        """The highest number of a poll."""
        return int(await self.value("SELECT coalesce(max(id), 0) FROM polls_poll"))

    async def poll(self, id: int) -> PollRow | None:
        return await self.one(PollRow, f"SELECT {_COLUMNS} FROM polls_poll WHERE id = ?", id)

    async def of_threads(
        self,
        threads: Collection[str],
        state: Literal["open", "closed"] | None,
        before: int,
        limit: int,
    ) -> list[PollRow]:
        """Polls of these threads with lower numbers than `before`, the latest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM polls_poll WHERE thread {AMONG} "
            f"AND id < ?{_IN_STATE[state]} ORDER BY id DESC LIMIT ?"
        )
        return await self.all(PollRow, sql, listed(threads), before, limit)

    async def open_in(self, thread: str) -> int:
        """How many polls of the thread are open."""
        sql = "SELECT count(*) FROM polls_poll WHERE thread = ? AND closed_at IS NULL"
        return int(await self.value(sql, thread))

    # Votes ------------------------------------------------------------------------------------

    async def counts(self, row: PollRow) -> list[int]:
        """The votes for each option: those that were counted at the end, or stand now."""
        sql = (
            "SELECT option, count(*) FROM polls_vote WHERE poll = ? GROUP BY option"
            if row.closed_at is None
            else "SELECT option, votes FROM polls_count WHERE poll = ?"
        )
        votes: dict[int, int] = dict(await self._host.rows(sql, row.id))
        return [votes.get(place, 0) for place in range(len(row.options))]

    async def voters(self, row: PollRow, most: int) -> Mapping[int, Sequence[str]]:
        """Who votes for what, by the place of the option: the first by name."""
        sql = (
            "SELECT option, voter FROM (SELECT option, voter, row_number() OVER "
            "(PARTITION BY option ORDER BY voter) AS place FROM polls_vote WHERE poll = ?) "
            "WHERE place <= ? ORDER BY voter"
        )
        found = defaultdict[int, list[str]](list)
        for option, voter in await self._host.rows(sql, row.id, most):
            found[option].append(voter)
        return found

    async def of_voter(self, row: PollRow, voter: str) -> list[int]:
        """The places of the options that somebody votes for."""
        sql = "SELECT option FROM polls_vote WHERE poll = ? AND voter = ? ORDER BY option"
        return await self.all(int, sql, row.id, voter)

    # Ends -------------------------------------------------------------------------------------

    async def due(self, now: float, limit: int) -> list[int]:
        """Open polls whose deadline has passed."""
        sql = (
            "SELECT id FROM polls_poll WHERE deadline <= ? AND closed_at IS NULL "
            "ORDER BY deadline LIMIT ?"
        )
        return await self.all(int, sql, now, limit)

    async def next_deadline(self, now: float) -> float | None:
        """The first deadline after now."""
        sql = "SELECT min(deadline) FROM polls_poll WHERE deadline > ? AND closed_at IS NULL"
        deadline: float | None = await self.value(sql, now)
        return deadline

    async def unannounced(self, limit: int) -> list[int]:
        """Polls that have ended, and whose result the thread has not got."""
        sql = (
            "SELECT id FROM polls_poll WHERE told = 0 AND closed_at IS NOT NULL "
            "ORDER BY closed_at LIMIT ?"
        )
        return await self.all(int, sql, limit)


# Statements -------------------------------------------------------------------------------------


def created(row: PollRow) -> Sequence[Statement]:
    sql = (
        "INSERT INTO polls_poll (id, thread, question, options, secret, multiple, quorum, "
        "created_by, created_at, deadline) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    )
    return [Statement(sql, row[:10])]


def _while_open(poll: int, now: float) -> Statement:
    """Nothing of what is written with it is written if the poll has ended."""
    sql = (
        "UPDATE polls_poll SET changes = changes + 1 "
        "WHERE id = ? AND closed_at IS NULL AND (deadline IS NULL OR deadline > ?)"
    )
    return Statement(sql, (poll, now), rows=1)


def retracted(poll: int, voter: str, now: float) -> Sequence[Statement]:
    gone = Statement("DELETE FROM polls_vote WHERE poll = ? AND voter = ?", (poll, voter))
    return [_while_open(poll, now), gone]


def voted(poll: int, voter: str, places: Collection[int], now: float) -> Sequence[Statement]:
    sql = "INSERT INTO polls_vote VALUES (?, ?, ?)"
    votes = [Statement(sql, (poll, voter, place)) for place in places]
    return [*retracted(poll, voter, now), *votes]


def closed(poll: int, by: str, at: float) -> Sequence[Statement]:
    """The poll ends, if it has not, and its votes are counted. Those of a secret one go with it."""
    ended = (
        "UPDATE polls_poll SET closed_at = ?, closed_by = ?, "
        "voters = (SELECT count(DISTINCT voter) FROM polls_vote WHERE poll = id) "
        "WHERE id = ? AND closed_at IS NULL"
    )
    counted = (
        "INSERT INTO polls_count SELECT poll, option, count(*) FROM polls_vote "
        "WHERE poll = ? GROUP BY option"
    )
    gone = (
        "DELETE FROM polls_vote WHERE poll = ? "
        "AND EXISTS (SELECT 1 FROM polls_poll WHERE id = poll AND secret)"
    )
    return [
        Statement(ended, (at, by, poll), rows=1),
        Statement(counted, (poll,)),
        Statement(gone, (poll,)),
    ]


def announced(poll: int) -> Statement:
    """The thread has got the result."""
    sql = "UPDATE polls_poll SET told = 1 WHERE id = ? AND closed_at IS NOT NULL"
    return Statement(sql, (poll,))
