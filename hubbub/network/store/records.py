"""How each record of a batch becomes rows. All functions run inside the writer's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from hubbub.network.records import (
    ApprovalKept,
    CallSettled,
    CursorMoved,
    Forgotten,
    LedgerMoved,
    MemberLeft,
    ModRows,
    ParticipantSeen,
    PartStored,
    Record,
    Remembered,
    RequestKept,
    StepRecorded,
    StopLifted,
    TakeoverEnded,
    ThreadCreated,
    TokenAdded,
    TokenRevoked,
    TurnBegun,
    TurnEnded,
    TurnLeft,
    TurnSent,
    WakesSettled,
    WakesTaken,
)
from hubbub.network.store.floors import lift_floor, raise_floors
from hubbub.network.store.mods import write_mod_rows
from hubbub.network.stored import (
    StoredChannel,
    StoredMark,
    StoredMember,
    StoredSpending,
    StoredStop,
    StoredTakeover,
)

__all__ = ["write_records"]

# A writer is called with records of the type it is registered for, and with no other: that is what
# its Any stands for.
Writer = Callable[[sqlite3.Connection, Sequence[Any]], None]

_OPEN = 2**63 - 1
"""`until` of a membership that has not ended."""


def write_records(db: sqlite3.Connection, records: Sequence[Record]) -> None:
    """Write records in their order; neighbours of one type go to SQLite together."""
    for kind, group in groupby(records, type):
        writer, alike = _WRITERS[kind], list[Any](group)
        if isinstance(writer, str):  # once for each, with its fields as parameters
            db.executemany(writer, alike)
        else:
            writer(db, alike)


def _cursors_moved(db: sqlite3.Connection, records: Sequence[CursorMoved]) -> None:
    furthest: dict[str, int] = {}
    for record in records:
        furthest[record.participant] = max(record.seq, furthest.get(record.participant, 0))
    db.executemany(
        "INSERT INTO progress (participant, cursor) VALUES (?, ?) ON CONFLICT (participant) "
        "DO UPDATE SET cursor = excluded.cursor WHERE excluded.cursor > cursor",
        furthest.items(),
    )


def _read_marked(db: sqlite3.Connection, records: Sequence[StoredMark]) -> None:
    last = {(record.participant, record.thread_no): record.tseq for record in records}
    db.executemany(
        "INSERT INTO read_mark (participant, thread_no, tseq) VALUES (?, ?, ?) "
        "ON CONFLICT (participant, thread_no) DO UPDATE SET tseq = excluded.tseq",
        [(*key, tseq) for key, tseq in last.items()],
    )


def _wakes_settled(db: sqlite3.Connection, records: Sequence[WakesSettled]) -> None:
    furthest: dict[str, int] = {}
    for record in records:
        furthest[record.participant] = max(record.upto, furthest.get(record.participant, 0))
    raise_floors(db, furthest.items())


def _turns_begun(db: sqlite3.Connection, records: Sequence[TurnBegun]) -> None:
    for record in records:
        db.execute(
            "INSERT INTO turn (id, agent, started_at, start, life, held, deaths, said, "
            "system_prompt, prompt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET "
            "attempts = attempts + (excluded.life IS NULL OR excluded.life IS NOT life), "
            "start = excluded.start, life = excluded.life, held = excluded.held, "
            "deaths = excluded.deaths, said = excluded.said, "
            "system_prompt = excluded.system_prompt, prompt = excluded.prompt",
            (
                *(record.id, record.agent, record.started_at, record.start, *record.lives),
                *(record.system_prompt, record.prompt),
            ),
        )
        _take_wakes(db, record.agent, record.seqs, record.id)


def _wakes_taken(db: sqlite3.Connection, records: Sequence[WakesTaken]) -> None:
    for record in records:
        _take_wakes(db, record.agent, record.seqs, record.turn)


def _take_wakes(db: sqlite3.Connection, agent: str, seqs: Sequence[int], turn: str) -> None:
    db.executemany(
        "INSERT INTO turn_wake (agent, seq, turn) VALUES (?, ?, ?) "
        "ON CONFLICT (agent, seq) DO UPDATE SET turn = excluded.turn",
        [(agent, seq, turn) for seq in seqs],
    )


def _turns_ended(db: sqlite3.Connection, records: Sequence[TurnEnded]) -> None:
    for record in records:
        ended = db.execute(
            'UPDATE turn SET ended_at = ?, "end" = ? WHERE id = ? AND ended_at IS NULL',
            (record.ended_at, record.end, record.id),
        )
        if ended.rowcount:
            row = db.execute("SELECT agent FROM turn WHERE id = ?", (record.id,)).fetchone()
            lift_floor(db, row[0])


_SUMS = ("wakes", "turns", "tokens_in", "tokens_out", "usd")


def _added(table: str, *key: str) -> str:
    """The SQL that adds to the sums of an account, and opens it if there is none."""
    columns = (*key, *_SUMS)
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {added}"
    )


_LEDGER = _added("ledger", "interaction")


def _ledgers_moved(db: sqlite3.Connection, records: Sequence[LedgerMoved]) -> None:
    db.executemany(_LEDGER, [record[: 1 + len(_SUMS)] for record in records])
    names = [
        (record.interaction, kind, name)
        for record in records
        for kind, found in (("agent", record.agents), ("limit", record.reached))
        for name in found
    ]
    if names:
        db.executemany(
            "INSERT OR IGNORE INTO ledger_name (interaction, kind, name) VALUES (?, ?, ?)", names
        )


def _mod_rows(db: sqlite3.Connection, records: Sequence[ModRows]) -> None:
    write_mod_rows(db, records)
    settled = [rows.settled for rows in records if rows.refused is None and rows.settled]
    write_records(db, settled)


_WRITERS: dict[type[Record], str | Writer] = {
    ModRows: _mod_rows,
    ParticipantSeen: (
        "INSERT INTO participant (id, kind, card) VALUES (?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, card = excluded.card"
    ),
    ThreadCreated: "INSERT INTO thread (no, id) VALUES (?, ?)",
    StoredChannel: "INSERT INTO channel (name, description) VALUES (?, ?)",
    # Admission twice keeps the first membership; joining again at the seq of an earlier joining
    # opens that one again.
    StoredMember: (
        "INSERT INTO member (participant, scope, since) SELECT ?1, ?2, ?3 "
        "WHERE NOT EXISTS (SELECT 1 FROM member "
        f"WHERE participant = ?1 AND scope = ?2 AND until = {_OPEN}) "
        f"ON CONFLICT (participant, scope, since) DO UPDATE SET until = {_OPEN}"
    ),
    MemberLeft: (
        f"UPDATE member SET until = ?3 WHERE participant = ?1 AND scope = ?2 AND until = {_OPEN}"
    ),
    StoredMark: _read_marked,
    Remembered: (
        "INSERT INTO memory (participant, key, value) VALUES (?, ?, ?) "
        "ON CONFLICT (participant, key) DO UPDATE SET value = excluded.value"
    ),
    Forgotten: "DELETE FROM memory WHERE participant = ? AND key = ?",
    CursorMoved: _cursors_moved,
    WakesSettled: _wakes_settled,
    PartStored: "INSERT OR IGNORE INTO prompt_part (agent, digest, text) VALUES (?, ?, ?)",
    TurnBegun: _turns_begun,
    WakesTaken: _wakes_taken,
    StepRecorded: (
        "INSERT INTO turn_step (turn, n, step) VALUES (?, ?, ?) "
        "ON CONFLICT (turn, n) DO UPDATE SET step = excluded.step"
    ),
    TurnSent: "INSERT OR IGNORE INTO turn_sent (turn, seq) VALUES (?, ?)",
    TurnLeft: "UPDATE turn SET held = 0 WHERE id = ? AND life = ?",
    TurnEnded: _turns_ended,
    CallSettled: "INSERT INTO by_cid (sender, cid, digest, value) VALUES (?, ?, ?, ?)",
    TokenAdded: (
        "INSERT INTO token (sha256, participant) VALUES (?, ?) "
        "ON CONFLICT (sha256) DO UPDATE SET participant = excluded.participant"
    ),
    TokenRevoked: "DELETE FROM token WHERE participant = ?",
    StoredStop: (
        "INSERT OR REPLACE INTO stop (scope, target, by, reason, at, count) "
        "VALUES (?, ?, ?, ?, ?, ?)"
    ),
    StopLifted: "DELETE FROM stop WHERE scope = ? AND target = ?",
    StoredTakeover: "INSERT OR REPLACE INTO takeover (agent, by, until) VALUES (?, ?, ?)",
    TakeoverEnded: "DELETE FROM takeover WHERE agent = ?",
    # Under its id for good: asked again or decided, an approval keeps its place in the order.
    ApprovalKept: (
        "INSERT INTO approval (id, agent, turn, state, expires_at, body) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET agent = excluded.agent, turn = excluded.turn, "
        "state = excluded.state, expires_at = excluded.expires_at, body = excluded.body"
    ),
    RequestKept: (
        "INSERT OR REPLACE INTO request (seq, requester, worker, state, deadline, body) "
        "VALUES (?, ?, ?, ?, ?, ?)"
    ),
    LedgerMoved: _ledgers_moved,
    StoredSpending: _added("spending", "day", "agent", "thread_no"),
}
