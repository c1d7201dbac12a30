"""The tables of the mod `polls`: what is read from them, and the statements that write them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from hubbub.mods.fields import number_of, seconds_of
from hubbub.mods.polls.schemas import PollSummary
from hubbub.mods.repository import AMONG, Repository, columns, from_row, insert, listed
from hubbub.mods.rows import Statement

__all__ = ["PollRepository", "announced", "closed", "created", "voted"]

_VOTERS = "(SELECT count(DISTINCT voter) FROM polls_vote WHERE poll = polls_poll.id)"
_COLUMNS = columns(
    PollSummary,
    id="'p' || id",
    thread_id="thread",
    state="iif(closed_at IS NULL, 'open', 'closed')",
    voters=f"coalesce(voters, {_VOTERS})",
)
_IN_STATE = {"open": " AND closed_at IS NULL", "closed": " AND closed_at IS NOT NULL", None: ""}
_poll = from_row(PollSummary)


class PollRepository(Repository):
    async def last(self) -> int:
        """The highest number of a poll."""
        return int(await self.value("SELECT coalesce(max(id), 0) FROM polls_poll"))

    async def poll(self, id: int) -> PollSummary | None:
        return await self.one(_poll, f"SELECT {_COLUMNS} FROM polls_poll WHERE id = ?", id)

    async def of_threads(
        self,
        threads: Collection[str],
        state: Literal["open", "closed"] | None,
        before: int,
        limit: int,
    ) -> list[PollSummary]:
        """Polls of these threads with lower numbers than `before`, the latest first."""
        sql = (
            f"SELECT {_COLUMNS} FROM polls_poll WHERE thread {AMONG} "
            f"AND id < ?{_IN_STATE[state]} ORDER BY id DESC LIMIT ?"
        )
        return await self.all(_poll, sql, listed(threads), before, limit)

    async def open_in(self, thread: str) -> int:
        """How many polls of the thread are open."""
        sql = "SELECT count(*) FROM polls_poll WHERE thread = ? AND closed_at IS NULL"
        return int(await self.value(sql, thread))

    # Votes ------------------------------------------------------------------------------------

    async def counts(self, poll: PollSummary) -> list[int]:
        """The votes for each option: those that were counted at the end, or stand now."""
        sql = (
            "SELECT option, count(*) FROM polls_vote WHERE poll = ? GROUP BY option"
            if poll.state == "open"
            else "SELECT option, votes FROM polls_count WHERE poll = ?"
        )
        votes: dict[int, int] = dict(await self._host.rows(sql, number_of(poll.id)))
        return [votes.get(place, 0) for place in range(len(poll.options))]

    async def voters(self, poll: PollSummary, most: int) -> Mapping[int, Sequence[str]]:
        """Who votes for what, by the place of the option: the first by name."""
        sql = (
            "SELECT option, voter FROM (SELECT option, voter, row_number() OVER "
            "(PARTITION BY option ORDER BY voter) AS place FROM polls_vote WHERE poll = ?) "
            "WHERE place <= ? ORDER BY voter"
        )
        found = defaultdict[int, list[str]](list)
        for option, voter in await self._host.rows(sql, number_of(poll.id), most):
            found[option].append(voter)
        return found

    async def of_voter(self, poll: PollSummary, voter: str) -> list[int]:
        """The places of the options that somebody votes for."""
        sql = "SELECT option FROM polls_vote WHERE poll = ? AND voter = ? ORDER BY option"
        return await self.all(int, sql, number_of(poll.id), voter)

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

    async def unannounced(self, limit: int) -> list[PollSummary]:
        """Polls that have ended, and whose result the thread has not got."""
        sql = (
            f"SELECT {_COLUMNS} FROM polls_poll WHERE told = 0 AND closed_at IS NOT NULL "
            "ORDER BY closed_at LIMIT ?"
        )
        return await self.all(_poll, sql, limit)


# Statements -------------------------------------------------------------------------------------


def created(poll: PollSummary) -> Sequence[Statement]:
    same = poll.model_dump(
        include={"question", "secret", "multiple", "quorum", "created_by"}, mode="json"
    )
    return [
        insert(
            "polls_poll",
            id=number_of(poll.id),
            thread=poll.thread_id,
            options=json.dumps(poll.options, ensure_ascii=False),
            created_at=poll.created_at.timestamp(),
            deadline=seconds_of(poll.deadline),
            **same,
        )
    ]


def voted(poll: int, voter: str, places: Collection[int], now: float) -> Sequence[Statement]:
    """These votes in place of those before; nothing of it is written if the poll has ended."""
    still_open = (
        "UPDATE polls_poll SET changes = changes + 1 "
        "WHERE id = ? AND closed_at IS NULL AND (deadline IS NULL OR deadline > ?)"
    )
    return [
        Statement(still_open, (poll, now), rows=1),
        Statement("DELETE FROM polls_vote WHERE poll = ? AND voter = ?", (poll, voter)),
        *(insert("polls_vote", poll=poll, voter=voter, option=place) for place in places),
    ]


def closed(poll: int, by: str, at: float) -> Sequence[Statement]:
    """The poll ends, if it has not, and its votes are counted. Those of a secret one go with it."""
    ended = (
        f"UPDATE polls_poll SET closed_at = ?, closed_by = ?, voters = {_VOTERS} "
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


def announced(poll: str) -> Sequence[Statement]:
    """The thread has got the result."""
    return [Statement("UPDATE polls_poll SET told = 1 WHERE id = ?", (number_of(poll),))]
