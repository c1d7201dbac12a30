"""The queries about what participants remember."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from hubbub.network.stored import StoredMemory

__all__ = ["memories", "memory"]

MEMORIES_QUERY = """
SELECT key, length(CAST(value AS BLOB)) AS size,
       CASE WHEN length(CAST(value AS BLOB)) <= :short THEN CAST(value AS BLOB) END
FROM memory WHERE participant = :participant ORDER BY key
"""
MEMORY_QUERY = "SELECT CAST(value AS BLOB) FROM memory WHERE participant = ? AND key = ?"


def memory(db: sqlite3.Connection, participant: str, key: str) -> bytes | None:
    row = db.execute(MEMORY_QUERY, (participant, key)).fetchone()
    return row[0] if row else None


def memories(db: sqlite3.Connection, participant: str, short: int) -> Sequence[StoredMemory]:
    rows = db.execute(MEMORIES_QUERY, {"participant": participant, "short": short})
    return [StoredMemory._make(row) for row in rows]
