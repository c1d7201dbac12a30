"""The one writer: a batch in one transaction, in as few statements as it takes.

Runs in the thread of the writing connection. What costs time here is paid by every message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from itertools import chain

from hubbub.network.ports import Batch, CallSettled, DuplicateCids
from hubbub.network.store.connection import transaction
from hubbub.network.store.index import INDEXES, IndexName, index_log
from hubbub.network.store.records import write_records

__all__ = ["KNOWN_CIDS", "TAIL", "BatchWriter"]

TAIL = 8192
"""Messages by which an index may lag at most. More makes writing cheaper where many participants
write in turn, and reading the tail dearer."""

_TAIL_BATCHES = 512
"""Batches by which it may lag at most: a quiet network has small batches, and so short tails."""

_SIZES = (64, 32, 16, 8, 4, 2, 1)
"""Rows of one statement. A few sizes, so that each stays prepared; 64 rows of 8 columns stay below
the 999 variables that any SQLite accepts."""

Pair = tuple[str, str]
Statements = Sequence[tuple[int, str]]


def _inserts(table: str, columns: Sequence[str]) -> Statements:
    row = f"({', '.join('?' * len(columns))})"
    head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
    return tuple((size, head + ", ".join([row] * size)) for size in _SIZES)


_MESSAGES = _inserts(
    "message", ("seq", "thread_no", "tseq", "scope", "sender", "cid", "digest", "body")
)
_DELIVERIES = _inserts("delivery", ("participant", "seq", "reason", "reply", "turn"))
KNOWN_CIDS: Statements = tuple(
    (
        size,
        f"WITH pair (sender, cid) AS (VALUES {', '.join(['(?, ?)'] * size)}) "
        "SELECT sender, cid FROM pair CROSS JOIN by_cid USING (sender, cid)",
    )
    for size in _SIZES
)


class BatchWriter:
    """Writes batches, finds duplicate cids, keeps the indexes close behind the log.

    The cids of the tail are kept in memory, since no index has them yet.
    """

    def __init__(self, tail: int = TAIL):
        self._tail = tail
        self._indexed: dict[IndexName, int] = {}
        self._cids: set[Pair] = set()
        self._pace = 1.0  # messages of a batch, as a moving average

    def start(self, head: int) -> None:
        """Begin at the end of the log, `head`, where all indexes must end too."""
        self._indexed = dict.fromkeys(INDEXES, head)
        self._cids.clear()

    def write(self, db: sqlite3.Connection, batch: Batch) -> None:
        """One transaction; whatever it raises, nothing of the batch is written.

        `DuplicateCids` says what the batch repeats; `ValueError` that it contradicts the log or
        itself, which is a defect of the caller.
        """
        cids = _cids_of(batch)
        head = batch.messages[-1].seq if batch.messages else 0
        index = self._index_due(head)
        try:
            with transaction(db):
                self._refuse_duplicates(db, cids)
                if batch.records:
                    write_records(db, batch.records)
                _insert(db, _MESSAGES, batch.messages)
                _insert(db, _DELIVERIES, batch.deliveries)
                if index:
                    index_log(db, index, head)
        except sqlite3.IntegrityError as error:
            raise ValueError(f"the batch contradicts the log or itself: {error}") from error
        self._cids |= cids
        if index:
            self._indexed[index] = head
        if index == "by_cid":
            self._cids.clear()
        if batch.messages:
            self._pace += (len(batch.messages) - self._pace) / 16

    def _index_due(self, head: int) -> IndexName | None:
        """The index that lags most, if it lags too much. One at a time, to keep commits short."""
        last = min(self._indexed, key=self._indexed.__getitem__)
        allowed = min(self._tail, _TAIL_BATCHES * self._pace)
        return last if head - self._indexed[last] >= allowed else None

    def _refuse_duplicates(self, db: sqlite3.Connection, cids: set[Pair]) -> None:
        found = self._cids & cids
        for sql, pairs in _chunks(KNOWN_CIDS, list(cids)):
            found.update(db.execute(sql, pairs))
        if found:
            raise DuplicateCids(frozenset(found))


def _cids_of(batch: Batch) -> set[Pair]:
    pairs = [(row[4], row[5]) for row in batch.messages if row[5] is not None]
    if batch.records:
        calls = (record for record in batch.records if type(record) is CallSettled)
        pairs += [(call.sender, call.cid) for call in calls]
    cids = set(pairs)
    if len(cids) != len(pairs):
        raise ValueError("the batch contradicts itself: a cid appears twice in it")
    return cids


def _chunks(
    statements: Statements, rows: Sequence[tuple[str | int | None, ...]]
) -> Iterator[tuple[str, tuple[str | int | None, ...]]]:
    """All rows in as few statements as possible, each with its parameters."""
    start, left = 0, len(rows)
    for size, sql in statements:
        while left >= size:
            yield sql, tuple(chain.from_iterable(rows[start : start + size]))
            start += size
            left -= size


def _insert(
    db: sqlite3.Connection, statements: Statements, rows: Sequence[tuple[str | int | None, ...]]
) -> None:
    for sql, parameters in _chunks(statements, rows):
        db.execute(sql, parameters)
