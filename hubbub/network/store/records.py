"""Writes each record of a batch as rows. All functions run inside the writer's transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from hubbub.network import records, stored
from hubbub.network.store.database import Database
from hubbub.network.store.index import lift_floor, raise_floors
from hubbub.network.store.mods import write_mod_rows

__all__ = ["RowsWriter", "write_records"]

# Any, as a writer takes records of the type it is registered for.
Writer = Callable[[Database, Sequence[Any]], None]
RowsWriter = Callable[[Any, Sequence[records.ModRows]], None]
"""Writes the rows of mods, or sets the reason for refusing them."""

_OPEN = 2**63 - 1
"""`until` of a membership that has not ended."""


def write_records(
    db: Database, rows: Sequence[records.Record], write_mod_rows: RowsWriter = write_mod_rows
) -> None:
    """Write records in order; adjacent records of one type are written together."""
    for kind, group in groupby(rows, type):
        alike = list[Any](group)
        if kind is records.ModRows:
            write_mod_rows(db, alike)
            write_records(db, [each.settled for each in alike if _settles(each)])
            continue
        writer = _WRITERS[kind]
        if isinstance(writer, str):  # SQL, run for each record with its fields as parameters
            db.executemany(writer, alike)
        else:
            writer(db, alike)


_SUMS = ("wakes", "turns", "tokens_in", "tokens_out", "usd")


def _saved(table: str, columns: Sequence[str], keys: int = 1, sums: Sequence[str] = ()) -> str:
    """The SQL that inserts a row, or updates the one with the same key (its first `keys` columns):
    `sums` are added to, other columns are replaced."""
    values = (
        f"{name} = {table}.{name} + excluded.{name}"
        if name in sums
        else f"{name} = excluded.{name}"
        for name in columns[keys:]
    )
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))}) "
        f"ON CONFLICT ({', '.join(columns[:keys])}) DO UPDATE SET {', '.join(values)}"
    )


def _cursors_moved(db: Database, rows: Sequence[records.CursorMoved]) -> None:
    furthest: dict[str, int] = {}
    for record in rows:
        furthest[record.participant] = max(record.seq, furthest.get(record.participant, 0))
    db.executemany(
        "INSERT INTO progress (participant, cursor) VALUES (?, ?) ON CONFLICT (participant) "
        "DO UPDATE SET cursor = excluded.cursor WHERE excluded.cursor > progress.cursor",
        furthest.items(),
    )


def _read_marked(db: Database, rows: Sequence[stored.StoredMark]) -> None:
    last = {(record.participant, record.thread_no): record.tseq for record in rows}
    sql = _saved("read_mark", stored.StoredMark._fields, keys=2)
    db.executemany(sql, [(*key, tseq) for key, tseq in last.items()])


def _wakes_settled(db: Database, rows: Sequence[records.WakesSettled]) -> None:
    furthest: dict[str, int] = {}
    for record in rows:
        furthest[record.participant] = max(record.upto, furthest.get(record.participant, 0))
    raise_floors(db, furthest.items())


def _turns_begun(db: Database, rows: Sequence[records.TurnBegun]) -> None:
    for record in rows:
        life, held, deaths, said = record.lives
        db.execute(
            "INSERT INTO turn (id, agent, started_at, start, life, held, deaths, said, "
            "system_prompt, prompt) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (id) DO UPDATE SET "
            "attempts = turn.attempts + CASE WHEN excluded.life = turn.life THEN 0 ELSE 1 END, "
            "start = excluded.start, life = excluded.life, held = excluded.held, "
            "deaths = excluded.deaths, said = excluded.said, "
            "system_prompt = excluded.system_prompt, prompt = excluded.prompt",
            (
                *(record.id, record.agent, record.started_at, record.start),
                *(life, int(held), deaths, said, record.system_prompt, record.prompt),
            ),
        )
        _take_wakes(db, record.agent, record.seqs, record.id)


def _wakes_taken(db: Database, rows: Sequence[records.WakesTaken]) -> None:
    for record in rows:
        _take_wakes(db, record.agent, record.seqs, record.turn)


def _take_wakes(db: Database, agent: str, seqs: Sequence[int], turn: str) -> None:
    sql = _saved("turn_wake", ("agent", "seq", "turn"), keys=2)
    db.executemany(sql, [(agent, seq, turn) for seq in seqs])


def _turns_ended(db: Database, rows: Sequence[records.TurnEnded]) -> None:
    for record in rows:
        ended = db.execute(
            'UPDATE turn SET ended_at = ?, "end" = ? WHERE id = ? AND ended_at IS NULL '
            "RETURNING agent",
            (record.ended_at, record.end, record.id),
        ).fetchall()
        for (agent,) in ended:
            lift_floor(db, agent)


_LEDGER = _saved("ledger", ("interaction", *_SUMS), sums=_SUMS)


def _ledgers_moved(db: Database, rows: Sequence[records.AccountChanged]) -> None:
    db.executemany(_LEDGER, [record[: 1 + len(_SUMS)] for record in rows])
    names = [
        (record.interaction, kind, name)
        for record in rows
        for kind, found in (("agent", record.agents), ("limit", record.reached))
        for name in found
    ]
    if names:
        db.executemany(
            "INSERT INTO ledger_name (interaction, kind, name) VALUES (?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            names,
        )


def _settles(rows: records.ModRows) -> bool:
    return rows.refused is None and rows.settled is not None


_WRITERS: dict[type[records.Record], str | Writer] = {
    records.ParticipantSeen: _saved("participant", records.ParticipantSeen._fields),
    records.ThreadCreated: "INSERT INTO thread (no, id) VALUES (?, ?)",
    stored.StoredChannel: _saved("channel", stored.StoredChannel._fields),
    # Joining twice keeps the first membership; joining again at the same seq reopens it.
    stored.StoredMember: (
        "INSERT INTO member (participant, scope, since) SELECT ?1, ?2, ?3 "
        "WHERE NOT EXISTS (SELECT 1 FROM member "
        f"WHERE participant = ?1 AND scope = ?2 AND until = {_OPEN}) "
        f"ON CONFLICT (participant, scope, since) DO UPDATE SET until = {_OPEN}"
    ),
    records.MemberLeft: (
        f"UPDATE member SET until = ?3 WHERE participant = ?1 AND scope = ?2 AND until = {_OPEN}"
    ),
    stored.StoredMark: _read_marked,
    records.MemoryWritten: _saved("memory", records.MemoryWritten._fields, keys=2),
    records.MemoryDeleted: "DELETE FROM memory WHERE participant = ? AND key = ?",
    records.CursorMoved: _cursors_moved,
    records.WakesSettled: _wakes_settled,
    records.PartStored: (
        "INSERT INTO prompt_part (agent, digest, text) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
    ),
    records.TurnBegun: _turns_begun,
    records.WakesTaken: _wakes_taken,
    records.StepRecorded: _saved("turn_step", records.StepRecorded._fields, keys=2),
    records.TurnSent: "INSERT INTO turn_sent (turn, seq) VALUES (?, ?) ON CONFLICT DO NOTHING",
    records.TurnLeft: "UPDATE turn SET held = 0 WHERE id = ? AND life = ?",
    records.TurnEnded: _turns_ended,
    records.CallSettled: "INSERT INTO by_cid (sender, cid, digest, value) VALUES (?, ?, ?, ?)",
    records.TokenAdded: _saved("token", records.TokenAdded._fields),
    records.TokenRevoked: "DELETE FROM token WHERE participant = ?",
    stored.StoredStop: _saved("stop", ("scope", "target", "by", "reason", "at", "count"), keys=2),
    records.StopLifted: "DELETE FROM stop WHERE scope = ? AND target = ?",
    stored.StoredTakeover: _saved("takeover", stored.StoredTakeover._fields),
    records.TakeoverEnded: "DELETE FROM takeover WHERE agent = ?",
    # An update, so that an approval keeps its place in the order.
    records.ApprovalSaved: _saved("approval", records.ApprovalSaved._fields),
    records.RequestSaved: _saved("request", records.RequestSaved._fields),
    records.AccountChanged: _ledgers_moved,
    stored.StoredSpending: _saved("spending", stored.StoredSpending._fields, keys=3, sums=_SUMS),
}
