"""Verifies a whole log against its checksums, even while a hub is running."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from urllib.parse import quote

from hubbub.config.paths import POSTGRES
from hubbub.errors import LogDamaged, UserError
from hubbub.network.store.checksums import ENTRY, damaged, log_end, proven_body
from hubbub.network.store.connection import explained
from hubbub.network.store.database import Database
from hubbub.network.store.index import IndexName, indexed_upto
from hubbub.network.store.location import cluster_extra, parse_url
from hubbub.network.store.migrate import check_version, latest_version

__all__ = ["verify_entries", "verify_log"]

_PIECE = 5000
"""Messages read at a time."""

_INDEXED: Sequence[tuple[IndexName, str, Sequence[str], Sequence[str]]] = [
    ("by_thread", "message", ("thread_no", "tseq"), ("thread_no", "tseq")),
    ("by_scope", "message", ("scope",), ("scope",)),
    ("by_participant", "message", ("participant",), ("recipient",)),
    ("by_participant", "delivery", ("participant",), ("participant",)),
    ("by_cid", "message", ("sender", "cid"), ("sender", "cid")),
]
"""For each index a table that it covers, and the columns in the index and in the table."""
_UNINDEXED = [
    (
        index,
        f"SELECT seq FROM {table} m WHERE m.seq > ? AND m.seq <= ? AND m.{of[-1]} IS NOT NULL "
        f"AND NOT EXISTS (SELECT 1 FROM {index} i WHERE i.seq = m.seq AND "
        f"{' AND '.join(f'i.{a} = m.{b}' for a, b in zip(names, of, strict=True))})",
    )
    for index, table, names, of in _INDEXED
]
"""By index: the query for messages that are missing in it."""


def verify_log(url: str) -> int:
    """Read the whole log; returns the number of messages.

    Raises `LogDamaged` at the first damage, and `UserError` for a store that cannot be read.
    """
    if url.startswith(POSTGRES):
        with cluster_extra():
            from hubbub.network.store.postgres.database import run_beside
        return run_beside(url, verify_entries)
    place = parse_url(url)
    if place.path is None or not place.path.exists():
        raise UserError(f"{place} does not exist: no log to read")
    uri = f"file:{quote(str(place.path))}?mode=ro"
    with explained(place), closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as db:
        version = check_version(db, str(place))
        if version != latest_version():
            raise UserError(f"{place} has schema version {version}: start its hub once, then retry")
        end = verify_entries(db)
        ((problem, *_),) = db.execute("PRAGMA quick_check(1)")
        if problem != "ok":
            what = problem.splitlines()[-1]  # after a heading
            raise LogDamaged(0, f"all messages are intact, but the file is not: {what}")
    return end


def verify_entries(db: Database) -> int:
    """Read every entry; returns the number of messages. Raises `LogDamaged`."""
    end = log_end(db)
    threads: dict[int, int] = {}
    for after in range(0, end, _PIECE):
        _verify_piece(db, after, min(after + _PIECE, end), threads)
    return end


def _verify_piece(db: Database, after: int, upto: int, threads: dict[int, int]) -> None:
    """Raises `LogDamaged`. `threads` has the last tseq of each thread before the piece."""
    sql = f"SELECT {ENTRY} FROM message AS m WHERE seq > ? AND seq <= ? ORDER BY seq"
    rows = {row[0]: row for row in db.execute(sql, (after, upto))}
    for seq in range(after + 1, upto + 1):
        row = rows.get(seq)
        proven_body(db, seq, row)
        if row is None:
            raise damaged(db, seq, None)
        _, thread, tseq, *_ = row
        before = threads.get(thread, 0)
        if tseq != before + 1:
            raise LogDamaged(seq, f"m{seq} is number {tseq} of its thread, after number {before}")
        threads[thread] = tseq
    for name, sql in _UNINDEXED:
        missing = db.execute(sql, (after, min(upto, indexed_upto(db, name)))).fetchone()
        if missing:
            raise LogDamaged(missing[0], f"m{missing[0]} is missing in the index {name}")
