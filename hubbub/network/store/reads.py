"""The queries. Each function runs in the thread of a reading connection.

A query uses the indexes first, and reads the tail of the log (see index.py) only if the answer can
be there, both in one snapshot.
"""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from hubbub.errors import LogDamaged
from hubbub.network.records import DIGEST
from hubbub.network.running_turns import TurnProcesses
from hubbub.network.store import control
from hubbub.network.store.checksums import (
    ENTRY,
    damage_notice,
    is_page_destroyed,
    log_end,
    proven_body,
)
from hubbub.network.store.database import Database, snapshot
from hubbub.network.store.index import floor_of, indexed_upto
from hubbub.network.stored import (
    OpenWake,
    PendingRow,
    Settled,
    StoredChannel,
    StoredKey,
    StoredMark,
    StoredMember,
    StoredMemory,
    StoredParticipant,
    StoredPrompts,
    StoredRun,
    StoredStop,
    StoredTakeover,
    StoredThread,
    StoredTurn,
    StoredWake,
    StoreState,
)

__all__ = [
    "PAGE_BYTES",
    "members_at",
    "memories",
    "memory",
    "message",
    "missing_parts",
    "open_wakes",
    "pending",
    "prompts",
    "settled",
    "state",
    "tails",
    "thread_page",
    "token_counts",
    "token_hashes",
    "tseq_after",
    "turn",
    "turns",
    "turns_called",
    "wake",
    "wakes",
    "was_member",
]

PAGE_BYTES = 256 * 1024
"""Bytes of a page of bodies, so that no answer is larger than a peer can be expected to read. A
page has at least one message."""

Place = tuple[int, int]
"""The seq and tseq of a message."""

_LAST = "(SELECT {} FROM by_thread WHERE thread_no = thread.no ORDER BY tseq DESC LIMIT 1)"
_END = 2**63 - 1
"""Beyond any seq: `until` of a membership that has not ended."""


def state(db: Database) -> StoreState:
    """The hub's state in memory. The log must be indexed to its end (`index_all`)."""
    with snapshot(db):
        (epoch,) = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        (head,) = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
        participants = db.execute(
            "SELECT id, kind, card, coalesce(cursor, 0) FROM participant "
            "LEFT JOIN progress ON participant = id ORDER BY id"
        )
        threads = db.execute(
            f"SELECT no, id, coalesce({_LAST.format('tseq')}, 0), "
            f"coalesce({_LAST.format('seq')}, 0) FROM thread ORDER BY no"
        )
        channels = db.execute("SELECT name, description FROM channel ORDER BY name")
        members = db.execute(
            "SELECT participant, scope, since FROM member WHERE until = ? "
            "ORDER BY scope, participant",
            (_END,),
        )
        marks = db.execute("SELECT participant, thread_no, tseq FROM read_mark")
        keys = db.execute("SELECT participant, key FROM memory ORDER BY 1, 2")
        runs = db.execute("SELECT id, since FROM run ORDER BY no")
        stops = db.execute("SELECT scope, target, by, reason, at, count FROM stop ORDER BY at")
        takeovers = db.execute("SELECT agent, by, until FROM takeover ORDER BY agent")
        return StoreState(
            epoch=epoch,
            head=head,
            participants=[StoredParticipant(*row) for row in participants],
            threads=[StoredThread(*row) for row in threads],
            channels=[StoredChannel(*row) for row in channels],
            members=[StoredMember(*row) for row in members],
            marks=[StoredMark(*row) for row in marks],
            keys=[StoredKey(*row) for row in keys],
            runs=[StoredRun(*row) for row in runs],
            stops=[StoredStop(*row) for row in stops],
            takeovers=[StoredTakeover(*row) for row in takeovers],
            approvals=[body for (body,) in db.execute(control.OPEN_APPROVALS_QUERY)],
            requests=[body for (body,) in db.execute(control.OPEN_REQUESTS_QUERY)],
            latest_day=db.execute(control.LATEST_DAY_QUERY).fetchone()[0],
        )


TAILS_QUERY = (
    "SELECT thread_no, seq, tseq FROM message WHERE seq > ? AND seq <= ? "
    "AND thread_no IN (SELECT value FROM json_each(?)) ORDER BY seq DESC"
)


def tails(
    db: Database, threads: Sequence[int], upto: int, limit: int
) -> Mapping[int, Sequence[bytes]]:
    tails_by_thread: dict[int, list[Place]] = {thread: [] for thread in threads}
    with snapshot(db):
        span = (indexed_upto(db, "by_thread"), upto, json.dumps(list(tails_by_thread)))
        tail = db.execute(TAILS_QUERY, span)
        for thread, *place in tail:
            if len(tails_by_thread[thread]) < limit:
                tails_by_thread[thread].append((place[0], place[1]))
        for thread, places in tails_by_thread.items():
            if len(places) < limit:
                before = tseq_after(db, thread, upto)
                places += _indexed(db, thread, before, limit - len(places))
        return {thread: _bodies(db, thread, places) for thread, places in tails_by_thread.items()}


def thread_page(db: Database, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
    below = _END if before is None else before
    with snapshot(db):
        places: list[Place] = []
        if below > tseq_after(db, thread, _END):
            rows = db.execute(
                "SELECT seq, tseq FROM message WHERE seq > ? AND thread_no = ? AND tseq < ? "
                "ORDER BY seq DESC LIMIT ?",
                (indexed_upto(db, "by_thread"), thread, below, limit),
            )
            places = rows.fetchall()
        places += _indexed(db, thread, below, limit - len(places))
        return _bodies(db, thread, places)


def tseq_after(db: Database, thread: int, upto: int) -> int:
    """The tseq after the thread's last indexed message with seq <= `upto`.

    Found by binary search, as positions of a thread are dense and grow with seq, and a reader can
    be far behind in a long thread.
    """

    def seq_of(tseq: int) -> int:
        sql = "SELECT seq FROM by_thread WHERE thread_no = ? AND tseq = ?"
        row: tuple[int] | None = db.execute(sql, (thread, tseq)).fetchone()
        return row[0] if row else 0  # in a branch: the message is in the original log

    last: tuple[int, int] | None = db.execute(
        "SELECT tseq, seq FROM by_thread WHERE thread_no = ? ORDER BY tseq DESC LIMIT 1", (thread,)
    ).fetchone()
    if last is None:
        return 1
    if last[1] <= upto:
        return last[0] + 1
    return bisect_right(range(1, last[0] + 1), upto, key=seq_of) + 1


def _indexed(db: Database, thread: int, before: int, limit: int) -> list[Place]:
    """Newest first."""
    rows = db.execute(
        "SELECT seq, tseq FROM by_thread WHERE thread_no = ? AND tseq < ? "
        "ORDER BY tseq DESC LIMIT ?",
        (thread, before, limit),
    )
    return rows.fetchall()


def _bodies(db: Database, thread: int, newest_first: Sequence[Place]) -> list[bytes]:
    """The bodies of messages, oldest first, without older ones beyond `PAGE_BYTES` or a gap in the
    index. Damaged ones are replaced by notices."""
    bodies: list[bytes] = []
    size, expected = 0, 0
    for seq, tseq in newest_first:
        if bodies and tseq != expected:  # positions of a thread have no gaps
            break
        body = _body_at(db, seq, thread, tseq)
        size += len(body)
        if bodies and size > PAGE_BYTES:
            break
        bodies.append(body)
        expected = tseq - 1
    return bodies[::-1]


def _body_at(db: Database, seq: int, thread: int, tseq: int) -> bytes:
    try:
        entry = _entry(db, seq)
        body = proven_body(db, seq, entry)
        if entry is not None and entry[1:3] == (thread, tseq):
            return body
    except (LogDamaged, sqlite3.DatabaseError) as error:
        if not (isinstance(error, LogDamaged) or is_page_destroyed(error)):
            raise
    notice = damage_notice(db, seq, thread, tseq)
    if notice is None:
        raise LogDamaged(seq, f"the index of the log is damaged at m{seq}")
    return notice


def message(db: Database, seq: int) -> bytes | None:
    entry = _entry(db, seq)
    if entry is None and not 0 < seq <= log_end(db):
        return None
    return proven_body(db, seq, entry)


def _entry(db: Database, seq: int) -> tuple[Any, ...] | None:
    entry: tuple[Any, ...] | None = db.execute(
        f"SELECT {ENTRY} FROM message AS m WHERE seq = ?", (seq,)
    ).fetchone()
    return entry


def was_member(db: Database, participant: str, scope: int, seq: int) -> bool:
    row = db.execute(
        "SELECT 1 FROM member WHERE participant = ? AND scope = ? AND since < ? AND until >= ?",
        (participant, scope, seq, seq),
    ).fetchone()
    return row is not None


def members_at(db: Database, scope: int, seq: int) -> Collection[str]:
    rows = db.execute(
        "SELECT participant FROM member WHERE scope = ? AND since < ? AND until >= ?",
        (scope, seq, seq),
    )
    return frozenset(participant for (participant,) in rows)


SETTLED_QUERY = """
SELECT coalesce(i.digest, m.digest, 0), i.seq, CAST(i.value AS BLOB)
FROM by_cid i LEFT JOIN message m ON m.seq = i.seq WHERE i.sender = ?1 AND i.cid = ?2
UNION ALL
SELECT coalesce(digest, 0), seq, NULL FROM message
WHERE seq > (SELECT upto FROM indexed WHERE name = 'by_cid') AND sender = ?1 AND cid = ?2
LIMIT 1
"""


def settled(db: Database, sender: str, cid: str) -> Settled | None:
    row = db.execute(SETTLED_QUERY, (sender, cid)).fetchone()
    return Settled._make(row) if row else None


# A wake is open if no turn took it and it is above the agent's floor, or if the turn that took it
# is running. The second part selects those below the floor.
_OPEN = """
SELECT r.seq, w.turn {columns}
FROM received r
LEFT JOIN message m ON m.seq = r.seq
LEFT JOIN delivery d ON d.seq = r.seq AND d.participant = r.participant
LEFT JOIN turn_wake w ON w.agent = r.participant AND w.seq = r.seq
LEFT JOIN turn t ON t.id = w.turn
WHERE r.participant = :agent AND r.seq > :floor AND r.seq <= :upto
  AND {reply} IS NOT NULL AND t.ended_at IS NULL
UNION ALL
SELECT w.seq, w.turn {columns}
FROM turn t CROSS JOIN turn_wake w ON w.turn = t.id
LEFT JOIN message m ON m.seq = w.seq
LEFT JOIN delivery d ON d.seq = w.seq AND d.participant = w.agent
WHERE t.agent = :agent AND t.ended_at IS NULL AND w.agent = :agent AND {reply} IS NOT NULL
  AND w.seq <= min(:floor, :upto)
ORDER BY 1
"""
_REASON, _REPLY = (
    f"CASE WHEN m.recipient = :agent THEN m.{name} ELSE d.{name} END"
    for name in ("reason", "reply")
)
OPEN_WAKES_QUERY = _OPEN.format(columns="", reply=_REPLY)
PENDING_QUERY = _OPEN.format(columns=f", {_REASON}, {_REPLY}, {ENTRY}", reply=_REPLY)


def pending(db: Database, agent: str, upto: int) -> Sequence[PendingRow]:
    with snapshot(db):
        span = {"agent": agent, "floor": floor_of(db, agent), "upto": upto}
        rows = db.execute(PENDING_QUERY, span).fetchall()
        return list(_whole_wakes(db, agent, rows))


def _whole_wakes(db: Database, agent: str, rows: Sequence[tuple[Any, ...]]) -> Iterator[PendingRow]:
    """Skip wakes by damaged messages, so that the agent can join and handle the rest."""
    for seq, started, reason, reply, *entry in rows:
        with suppress(LogDamaged):
            body = proven_body(db, seq, entry)
            yield PendingRow(seq, body, reason, reply, f"{agent}-m{seq}", started)


def open_wakes(db: Database, agent: str, upto: int) -> Sequence[OpenWake]:
    with snapshot(db):
        span = {"agent": agent, "floor": floor_of(db, agent), "upto": upto}
        rows = db.execute(OPEN_WAKES_QUERY, span).fetchall()
    return [OpenWake._make(row) for row in rows]


WAKES_QUERY = """
SELECT d.seq, d.participant, d.reason, d.reply,
CASE WHEN d.reply IS NOT NULL THEN d.participant || '-m' || d.seq END,
CASE
    WHEN d.reply IS NULL THEN NULL
    WHEN t.ended_at IS NOT NULL THEN 'ended'
    WHEN t.id IS NOT NULL THEN 'running'
    WHEN d.seq <= p.floor THEN 'ended'
    ELSE 'pending' END,
t.id
FROM (
    SELECT m.seq, m.recipient AS participant, m.reason, m.reply
    FROM json_each(:seqs) CROSS JOIN message m ON m.seq = json_each.value
    WHERE m.recipient = coalesce(:me, m.recipient)
    UNION ALL
    SELECT d.seq, d.participant, d.reason, d.reply
    FROM json_each(:seqs) CROSS JOIN delivery d ON d.seq = json_each.value
    WHERE d.participant = coalesce(:me, d.participant)
) AS d
LEFT JOIN turn_wake w ON w.agent = d.participant AND w.seq = d.seq
LEFT JOIN turn t ON t.id = w.turn
LEFT JOIN progress p ON p.participant = d.participant
ORDER BY 1, 2
"""


def wake(db: Database, participant: str, seq: int) -> StoredWake | None:
    return _wakes(db, [seq], participant).get((seq, participant))


def wakes(db: Database, seqs: Sequence[int]) -> Mapping[tuple[int, str], StoredWake]:
    return _wakes(db, sorted(set(seqs)), None)


def _wakes(
    db: Database, seqs: Sequence[int], participant: str | None
) -> Mapping[tuple[int, str], StoredWake]:
    rows = db.execute(WAKES_QUERY, {"seqs": json.dumps(seqs), "me": participant})
    return {(seq, name): StoredWake(*wake) for seq, name, *wake in rows}


def token_hashes(db: Database, participant: str) -> Sequence[str]:
    rows = db.execute(
        "SELECT sha256 FROM token WHERE participant = ? ORDER BY sha256", (participant,)
    )
    return [sha256 for (sha256,) in rows]


def token_owner(db: Database, sha256: str) -> str | None:
    row = db.execute("SELECT participant FROM token WHERE sha256 = ?", (sha256,)).fetchone()
    return None if row is None else str(row[0])


def token_counts(db: Database) -> Mapping[str, int]:
    return dict(
        db.execute("SELECT participant, count(*) FROM token GROUP BY participant ORDER BY 1")
    )


MEMORIES_QUERY = """
SELECT key, length(CAST(value AS BLOB)) AS size,
       CASE WHEN length(CAST(value AS BLOB)) <= :short THEN CAST(value AS BLOB) END
FROM memory WHERE participant = :participant ORDER BY key
"""
MEMORY_QUERY = "SELECT CAST(value AS BLOB) FROM memory WHERE participant = ? AND key = ?"


def memory(db: Database, participant: str, key: str) -> bytes | None:
    row = db.execute(MEMORY_QUERY, (participant, key)).fetchone()
    return row[0] if row else None


def memories(db: Database, participant: str, short: int) -> Sequence[StoredMemory]:
    rows = db.execute(MEMORIES_QUERY, {"participant": participant, "short": short})
    return [StoredMemory._make(row) for row in rows]


_COLUMNS = (
    'id, agent, started_at, attempts, CAST(start AS BLOB), ended_at, CAST("end" AS BLOB), '
    "life, held, deaths, said"
)

MAX_CHARACTERS = 4 * 1024 * 1024
"""Characters of a prompt that are read; it can repeat one part and so be of any size."""


def turn(db: Database, turn: str) -> StoredTurn | None:
    """A turn with its steps."""
    with snapshot(db):
        row = db.execute(f"SELECT {_COLUMNS} FROM turn WHERE id = ?", (turn,)).fetchone()
        return _whole(db, row) if row else None


def turns(db: Database, agent: str | None, limit: int, before: str | None) -> Sequence[StoredTurn]:
    """The latest turns, newest first; by `no`, as clocks can jump."""
    where = "no < (SELECT no FROM turn WHERE id = :before)" if before is not None else "true"
    if agent is not None:
        where += " AND agent = :agent"
    with snapshot(db):
        rows = db.execute(
            f"SELECT {_COLUMNS} FROM turn WHERE {where} ORDER BY no DESC LIMIT :limit",
            {"agent": agent, "before": before, "limit": limit},
        ).fetchall()
        return [_whole(db, row) for row in rows]


def turns_called(db: Database, ids: Sequence[str]) -> Sequence[StoredTurn]:
    """The existing turns among `ids`, in the order they began."""
    sql = f"SELECT no, {_COLUMNS} FROM turn WHERE id = ?"
    with snapshot(db):
        rows = [row for id_ in set(ids) for row in db.execute(sql, (id_,))]
        return [_whole(db, row) for _, *row in sorted(rows)]


def _whole(db: Database, row: Sequence[Any]) -> StoredTurn:
    id_, agent, started_at, attempts, start, ended_at, end, life, held, deaths, said = row
    steps = db.execute("SELECT CAST(step AS BLOB) FROM turn_step WHERE turn = ? ORDER BY n", (id_,))
    sent = db.execute("SELECT seq FROM turn_sent WHERE turn = ? ORDER BY seq", (id_,))
    return StoredTurn(
        id=id_,
        agent=agent,
        started_at=started_at,
        attempts=attempts,
        start=start,
        steps=[step for (step,) in steps],
        sent=[seq for (seq,) in sent],
        ended_at=ended_at,
        end=end,
        lives=TurnProcesses(life, bool(held), deaths, said),
    )


_PART = "SELECT text FROM prompt_part WHERE agent = ? AND digest = ?"


def prompts(db: Database, turn: str) -> StoredPrompts:
    """The assembled prompts of the turn."""
    with snapshot(db):
        row = db.execute("SELECT agent, system_prompt, prompt FROM turn WHERE id = ?", (turn,))
        agent, *named = row.fetchone() or ("", b"", b"")
        return StoredPrompts(*("".join(_parts(db, agent, digests)) or None for digests in named))


def _parts(db: Database, agent: str, digests: bytes) -> Iterator[str]:
    room = MAX_CHARACTERS
    for at in range(0, len(digests), DIGEST):
        (text,) = db.execute(_PART, (agent, digests[at : at + DIGEST])).fetchone()
        yield text[:room]
        room -= len(text)
        if room < 0:
            yield f"... [cut after {MAX_CHARACTERS} characters]"
            return


def missing_parts(db: Database, agent: str, digests: Sequence[bytes]) -> Sequence[bytes]:
    """The digests that are not stored."""
    return [each for each in digests if db.execute(_PART, (agent, each)).fetchone() is None]
