"""`BranchStore`: a log that shares another log up to a message and continues separately.

Only that message is copied, as the first of the branch's own. Everything before it is read from the
other log, even while a hub writes there. The position decides which log is queried, with the same
queries.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar

from hubbub.errors import UserError
from hubbub.network import queries
from hubbub.network.queries import Query
from hubbub.network.store import events, reads
from hubbub.network.store.checksums import log_end
from hubbub.network.store.connection import DatabaseConnection, connect, explained
from hubbub.network.store.database import snapshot, transaction
from hubbub.network.store.index import index_all, indexed_upto
from hubbub.network.store.location import SqliteLocation
from hubbub.network.store.migrate import check_version, latest_version, migrate
from hubbub.network.store.sqlite import SqliteStore, answer
from hubbub.network.stored import (
    StoredEvent,
    StoredInteraction,
    StoredMentions,
    StoredThread,
    StoredTurn,
    StoredWake,
    StoreState,
)

__all__ = ["BranchStore"]

T = TypeVar("T")

_STATE: Mapping[str, str] = {
    "message": "SELECT * FROM message WHERE seq = :at",
    "delivery": "SELECT * FROM delivery WHERE seq = :at",
    "participant": "SELECT * FROM participant",
    # All earlier wakes have ended: a branch continues only with the work that the message starts.
    "progress": "SELECT id, :at, :at - 1 FROM participant",
    "thread": """SELECT no, id FROM thread AS t
        WHERE (SELECT seq FROM by_thread WHERE thread_no = t.no AND tseq = 1) <= :at
        OR no IN (SELECT thread_no FROM message WHERE seq > :indexed AND seq <= :at)
        OR no IN (SELECT scope FROM member WHERE since < :at)""",
    "channel": "SELECT * FROM channel",
    "member": """SELECT participant, scope, since, iif(until < :at, until, 9223372036854775807)
        FROM member WHERE since < :at""",
    "memory": "SELECT * FROM memory",
    # If the message is a request's, requests that wait for its end are open in the branch.
    "request": """SELECT seq, requester, worker, 'open', deadline,
        json_set(body, '$.state', 'open', '$.outcome', '', '$.answer', NULL) FROM request
        WHERE seq <= :at AND EXISTS (SELECT 1 FROM request WHERE seq = :at)
        AND (state = 'open' OR CAST(substr(body ->> '$.answer', 2) AS INTEGER) > :at)""",
}
"""The branch's initial rows, by table."""


@dataclass(frozen=True, slots=True)
class _BranchStart:
    rows: Mapping[str, Sequence[tuple[object, ...]]]
    """By table."""
    ends: Mapping[int, tuple[int, int]]
    """`tseq` and `seq` of each thread's last message before the branch, by thread number; 0 for
    none.
    """
    head: int
    """The end of the other log."""
    at: datetime
    """When the message was sent."""


class BranchStore(SqliteStore):
    """A store that shares the log of `base` before the message at `seq`, and has the rest in
    memory. `base` is only read.

    The branch has the turns that had ended when the message was sent. Memories have their current
    values, as the log has no earlier ones. Accounts, tokens, read markers, stops and the tables of
    mods are initially empty.
    """

    sent_at: datetime
    """When the message was sent; set once the store is open."""
    original_head: int
    """The end of the other log when the store was opened."""

    def __init__(self, base: SqliteLocation, seq: int):
        super().__init__(SqliteLocation(None))
        self._source, self._at = base, seq
        self._base: DatabaseConnection | None = None
        self._ends: Mapping[int, tuple[int, int]] = {}

    async def _open(self) -> StoreState:
        path = self._source.path
        if path is None or not path.exists():
            raise UserError(f"{self._source} does not exist: only a store in a file has branches")
        with explained(self._source):
            self._base = await connect(self._source, "query_only = ON")
            began = await self._base.run(_beginning, self._at, str(path))
            self._ends, self.sent_at, self.original_head = began.ends, began.at, began.head
            self._writing = await self._connect(self._place, "temp_store = MEMORY")
            self._writer.start(await self._writing.run(_begin, str(self._place), began.rows))
            state = await self._writing.run(reads.state)
        return replace(state, threads=[self._whole(thread) for thread in state.threads])

    async def close(self) -> None:
        base, self._base = self._base, None
        try:
            await super().close()
        finally:
            if base:
                await base.close()

    def _whole(self, thread: StoredThread) -> StoredThread:
        tseq, seq = self._ends[thread.no]
        return thread if thread.tseq else thread._replace(tseq=tseq, last_seq=seq)

    @property
    def base(self) -> DatabaseConnection:
        """The connection that reads the other log."""
        assert self._base is not None, "it is open"
        return self._base

    async def original(self, query: Query[T]) -> T:
        """The other store's answer, including later events."""
        return await self.base.run(answer, query)

    # Reading the log -----------------------------------------------------------------------------

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        last, merged = min(upto, self._at - 1), list[StoredEvent]()
        if after < last:
            merged += await self.base.run(events.events, participant, after, last, limit, own)
        if upto > last and len(merged) < limit:
            start, left = max(after, last), limit - len(merged)
            merged += await super().events(participant, start, upto, left, own)
        return merged

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        last, merged = min(upto, self._at - 1), list[StoredEvent]()
        if after < last:
            merged += await self.base.run(events.log, after, last, limit)
        if upto > last and len(merged) < limit:
            merged += await super().log(max(after, last), upto, limit - len(merged))
        return merged

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        merged = {no: list(own) for no, own in (await super().tails(threads, upto, limit)).items()}
        before = min(upto, self._at - 1)
        for no, own in merged.items():
            if len(own) < limit and self._reaches_back(no, own):
                shared = await self.base.run(reads.tails, [no], before, limit - len(own))
                merged[no] = [*shared[no], *own]
        return merged

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        own = await super().thread_page(thread, before, limit)
        if len(own) == limit or not self._reaches_back(thread, own):
            return own
        end = self._ends.get(thread, (0, 0))[0] + 1
        below = end if before is None else min(end, before)
        return [*await self.base.run(reads.thread_page, thread, below, limit - len(own)), *own]

    def _reaches_back(self, thread: int, own: Sequence[bytes]) -> bool:
        """Whether `own` goes back to the branch's first message in the thread; a large page may
        not."""
        return not own or json.loads(own[0])["tseq"] == self._ends.get(thread, (0, 0))[0] + 1

    async def message(self, seq: int) -> bytes | None:
        if seq < self._at:
            return await self.base.run(reads.message, seq)
        return await super().message(seq)

    # Queries ------------------------------------------------------------------------------------

    async def read(self, query: Query[T]) -> T:
        merged = await self._shared(query)
        return await super().read(query) if merged is None else merged

    async def _shared(self, query: Query[Any]) -> Any:  # as various as the answers are
        """The answer, if any of it is in the other log; otherwise None."""
        own, at = super().read, self._at
        match query:
            case queries.MentionsOf(participant, before, limit):
                bodies, upto = await own(query) if before > at else ((), before)
                if upto > at or len(bodies) == limit:
                    return StoredMentions(bodies, upto)
                upto, left = min(before, at), limit - len(bodies)
                older = await self.original(queries.MentionsOf(participant, upto, left))
                return StoredMentions([*bodies, *older.bodies], older.upto)
            case queries.InteractionMessages(interaction, after, upto) if after < at - 1:
                last = min(upto, at - 1)
                shared = await self.original(queries.InteractionMessages(interaction, after, last))
                if shared.upto < last or upto == last:
                    return shared
                rest = await own(queries.InteractionMessages(interaction, last, upto))
                return StoredInteraction([*shared.rows, *rest.rows], rest.upto)
            case queries.WakeOf(_, seq) if seq < at:
                wake = await self.original(query)
                return _over(wake) if wake is not None else None
            case queries.WakesAt(seqs):
                wakes = await self.original(queries.WakesAt([seq for seq in seqs if seq < at]))
                over = {key: _over(wake) for key, wake in wakes.items()}
                return {**over, **await own(query)}
            case queries.TurnById(turn):
                return await own(query) or next(iter(await self._before([turn])), None)
            case queries.TurnsById(turns):
                return [*await self._before(turns), *await own(query)]
            case queries.PromptsOf(turn) if await self._before([turn]):
                return await self.original(query)
        return None

    async def _before(self, turns: Sequence[str]) -> list[StoredTurn]:
        """The turns among `turns` that had ended when the branch began."""
        merged, end = await self.original(queries.TurnsById(turns)), self.sent_at.timestamp()
        return [turn for turn in merged if turn.ended_at is not None and turn.ended_at <= end]


def _over(wake: StoredWake) -> StoredWake:
    return wake if wake.state is None else wake._replace(state="ended")


def _beginning(db: sqlite3.Connection, at: int, name: str) -> _BranchStart:
    if check_version(db, name) != latest_version():
        raise UserError(f"{name} has another schema than this program: start its hub once")
    with snapshot(db):
        body = reads.message(db, at)
        if body is None:
            raise UserError(f"{name} has no message m{at}")
        span = {"at": at, "indexed": indexed_upto(db, "by_thread")}
        rows = {
            table: [tuple(row) for row in db.execute(sql, _named(sql, span))]
            for table, sql in _STATE.items()
        }
        names = {id for _, id in rows["thread"]}
        rows["channel"] = [row for row in rows["channel"] if f"channel.{row[0]}" in names]
        tail = db.execute(_TAIL_ENDS, span).fetchall()
        ends = {no: _indexed_end(db, no, at - 1) for no, _ in rows["thread"]}
        ends |= {no: end for no, *end in tail}
        head = log_end(db)
    return _BranchStart(rows, ends, head, datetime.fromisoformat(json.loads(body)["sent_at"]))


_TAIL_ENDS = """SELECT thread_no, max(tseq), max(seq) FROM message
WHERE seq > :indexed AND seq < :at GROUP BY thread_no"""


def _indexed_end(db: sqlite3.Connection, thread: int, upto: int) -> tuple[int, int]:
    tseq = reads.tseq_after(db, thread, upto) - 1
    sql = "SELECT seq FROM by_thread WHERE thread_no = ? AND tseq = ?"
    (seq,) = db.execute(sql, (thread, tseq)).fetchone() if tseq else (0,)
    return tseq, seq


def _named(sql: str, span: Mapping[str, int]) -> Mapping[str, int]:
    return {name: value for name, value in span.items() if f":{name}" in sql}


def _begin(
    db: sqlite3.Connection, name: str, rows: Mapping[str, Sequence[tuple[object, ...]]]
) -> int:
    """Create the branch's own database; returns the end of its log."""
    migrate(db, name)
    with transaction(db):
        for table, several in rows.items():
            if several:
                places = ", ".join("?" * len(several[0]))
                db.executemany(f"INSERT INTO {table} VALUES ({places})", several)
        head = index_all(db)
        db.execute("INSERT INTO run (id, since) VALUES ('branch', ?)", (head,))
        return head
