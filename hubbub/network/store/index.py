"""The indexes of the log, which are updated in bulk.

Adding a message to four indexes at once touches a page in each, and with many active threads and
participants these pages are all different: writing them costs five times the message itself. Some
thousands of messages, sorted, touch each page once.

The floor of an agent is a position up to which wakes that no turn took need no turn. It keeps
`pending` cheap however long the log is. It rises when wakes are settled without a turn, and past
wakes that turns took, whose state is then that of the turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from hubbub.network.store.database import Database

__all__ = [
    "INDEXES",
    "IndexName",
    "floor_of",
    "index_all",
    "index_log",
    "indexed_upto",
    "lift_floor",
    "raise_floors",
]

IndexName = Literal["by_thread", "by_scope", "by_participant", "by_cid"]

INDEXES: Mapping[IndexName, str] = {
    "by_thread": "INSERT INTO by_thread (thread_no, tseq, seq) SELECT thread_no, tseq, seq "
    "FROM message WHERE seq > ?1 AND seq <= ?2 ORDER BY thread_no, tseq",
    "by_scope": "INSERT INTO by_scope (scope, seq) SELECT scope, seq "
    "FROM message WHERE seq > ?1 AND seq <= ?2 AND scope IS NOT NULL ORDER BY scope, seq",
    "by_participant": "INSERT INTO by_participant (participant, seq) SELECT recipient, seq "
    "FROM message WHERE seq > ?1 AND seq <= ?2 AND recipient IS NOT NULL UNION ALL "
    "SELECT participant, seq FROM delivery WHERE seq > ?1 AND seq <= ?2 ORDER BY 1, 2",
    "by_cid": "INSERT INTO by_cid (sender, cid, seq) SELECT sender, cid, seq "
    "FROM message WHERE seq > ?1 AND seq <= ?2 AND cid IS NOT NULL ORDER BY sender, cid",
}


def indexed_upto(db: Database, name: IndexName) -> int:
    """The seq up to which the log is indexed; the rest is the index's tail."""
    upto: int = db.execute("SELECT upto FROM indexed WHERE name = ?", (name,)).fetchone()[0]
    return upto


def index_log(db: Database, name: IndexName, upto: int) -> None:
    """Bring an index up to `upto`, inside the caller's transaction."""
    db.execute(INDEXES[name], (indexed_upto(db, name), upto))
    db.execute("UPDATE indexed SET upto = ? WHERE name = ?", (upto, name))


def index_all(db: Database) -> int:
    """Bring all indexes to the end of the log, inside the caller's transaction; returns its seq."""
    head: int = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()[0]
    for name in INDEXES:
        index_log(db, name, head)
    return head


_FREE = """CASE WHEN m.recipient = :agent THEN m.reply ELSE d.reply END IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM turn_wake w WHERE w.agent = :agent AND w.seq = m.seq)"""

FIRST_FREE_WAKE = (
    "SELECT m.seq FROM by_participant i CROSS JOIN message m ON m.seq = i.seq "
    "LEFT JOIN delivery d ON d.seq = m.seq AND d.participant = :agent "
    f"WHERE i.participant = :agent AND i.seq > :floor AND {_FREE} ORDER BY i.seq LIMIT 1",
    "SELECT m.seq FROM message m LEFT JOIN delivery d ON d.seq = m.seq AND d.participant = :agent "
    f"WHERE m.seq > max(:floor, :indexed) AND {_FREE} ORDER BY m.seq LIMIT 1",
)
"""The first wake above the floor that no turn took: in the index, then in the tail. Two queries, as
each scans in order and stops at the first match."""


def floor_of(db: Database, agent: str) -> int:
    row = db.execute("SELECT floor FROM progress WHERE participant = ?", (agent,)).fetchone()
    return int(row[0]) if row else 0


def raise_floors(db: Database, floors: Iterable[tuple[str, int]]) -> None:
    """Raise floors to these positions; never lower one."""
    db.executemany(
        "INSERT INTO progress (participant, floor) VALUES (?, ?) ON CONFLICT (participant) "
        "DO UPDATE SET floor = excluded.floor WHERE excluded.floor > progress.floor",
        floors,
    )


def lift_floor(db: Database, agent: str) -> None:
    """Raise the floor up to the first wake that no turn took, or to the end of the log."""
    span = {
        "agent": agent,
        "floor": floor_of(db, agent),
        "indexed": indexed_upto(db, "by_participant"),
    }
    for sql in FIRST_FREE_WAKE:
        first = db.execute(sql, span).fetchone()
        if first:
            raise_floors(db, [(agent, first[0] - 1)])
            return
    (head,) = db.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
    raise_floors(db, [(agent, head)])
