"""The floor of an agent: wakes up to it that no turn has taken need no turn any more.

It keeps `pending` cheap however long the log is. It rises when wakes are settled without a turn,
and past wakes that turns have taken, whose state is then that of the turn.
"""

from __future__ import annotations

from collections.abc import Iterable

from hubbub.network.store.database import Database
from hubbub.network.store.index import indexed_upto

__all__ = ["floor_of", "lift_floor", "raise_floors"]

_FREE = """CASE WHEN m.recipient = :agent THEN m.reply ELSE d.reply END IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM turn_wake w WHERE w.agent = :agent AND w.seq = m.seq)"""

FIRST_FREE_WAKE = (
    "SELECT m.seq FROM by_participant i CROSS JOIN message m ON m.seq = i.seq "
    "LEFT JOIN delivery d ON d.seq = m.seq AND d.participant = :agent "
    f"WHERE i.participant = :agent AND i.seq > :floor AND {_FREE} ORDER BY i.seq LIMIT 1",
    "SELECT m.seq FROM message m LEFT JOIN delivery d ON d.seq = m.seq AND d.participant = :agent "
    f"WHERE m.seq > max(:floor, :indexed) AND {_FREE} ORDER BY m.seq LIMIT 1",
)
"""The first wake above the floor that no turn has taken: among the indexed, then in the tail. Two
queries, because each walks in order and stops at the first find."""


def floor_of(db: Database, agent: str) -> int:
    row = db.execute("SELECT floor FROM progress WHERE participant = ?", (agent,)).fetchone()
    return int(row[0]) if row else 0


def raise_floors(db: Database, floors: Iterable[tuple[str, int]]) -> None:
    """Raise floors to the positions given; never lower one."""
    db.executemany(
        "INSERT INTO progress (participant, floor) VALUES (?, ?) ON CONFLICT (participant) "
        "DO UPDATE SET floor = excluded.floor WHERE excluded.floor > progress.floor",
        floors,
    )


def lift_floor(db: Database, agent: str) -> None:
    """Raise the floor up to the first wake that no turn has taken, or to the end of the log."""
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
