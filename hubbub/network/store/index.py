"""The indexes of the log, which follow it in bulk.

A message that enters four indexes at once touches a page in each, and where many threads and
participants speak in turn nobody shares these pages: writing them costs five times the message
itself. Some thousands of messages, sorted, touch a page once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from hubbub.network.store.database import Database

__all__ = ["INDEXES", "IndexName", "index_all", "index_log", "indexed_upto"]

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
    """The seq up to which an index knows the log; what comes after it is the index's tail."""
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
