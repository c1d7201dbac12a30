"""The only writer: a batch in one transaction, with as few statements as possible.

Runs in the thread of the writing connection. Its cost is paid by every message.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from hubbub.network.ports import DuplicateCids
from hubbub.network.records import Batch, CallSettled, Delivery, MessageRow, ModRows, Record
from hubbub.network.store.checksums import checksum
from hubbub.network.store.database import Database, transaction
from hubbub.network.store.index import INDEXES, IndexName, index_log
from hubbub.network.store.mods import write_mod_rows
from hubbub.network.store.records import RowsWriter, write_records

__all__ = ["TAIL", "BatchWriter", "known_cids"]

TAIL = 8192
"""Messages by which an index can lag. A higher limit makes writing cheaper when many participants
write in turn, and reading the tail more expensive."""

_TAIL_BATCHES = 512
"""Batches by which an index can lag; a quiet network has small batches, and so short tails."""

_LARGE = (512, 256, 128, 64)
"""Row counts of statements for large batches; the rest, below 64 rows, has a statement of its own
size. 512 rows of 12 columns are well below SQLite's limit of 32,766 variables."""

_ANY = chr(0x10FFFF)
"""Beyond every cid."""

Pair = tuple[str, str]
Value = str | int | bytes | None
Statement = Callable[[int], str]
"""The SQL for a number of rows. Each number has its own prepared statement, so that a batch takes
few of them: around each one the thread releases the GIL and must reacquire it."""


def _insert_into(table: str, columns: Sequence[str]) -> Statement:
    row = f"({', '.join('?' * len(columns))})"
    head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
    return cache(lambda rows: head + ", ".join([row] * rows))


_MESSAGES = _insert_into("message", (*MessageRow._fields, "sum"))
_DELIVERIES = _insert_into("delivery", Delivery._fields)
_HIGHEST_CID = "SELECT coalesce(max(cid), '') FROM by_cid WHERE sender = ?"


@cache
def known_cids(rows: int) -> str:
    """The query for the indexed ones of `rows` (sender, cid) pairs."""
    return (
        f"WITH pair (sender, cid) AS (VALUES {', '.join(['(?, ?)'] * rows)}) "
        "SELECT sender, cid FROM pair CROSS JOIN by_cid USING (sender, cid)"
    )


class BatchWriter:
    """Writes batches, detects duplicate cids, and keeps the indexes close to the log's end.

    The cids of the tail, which are not indexed yet, are in memory.
    """

    def __init__(self, tail: int = TAIL, write_mod_rows: RowsWriter = write_mod_rows):
        self._tail, self._write_mod_rows = tail, write_mod_rows
        self._indexed: dict[IndexName, int] = {}
        self._cids: set[Pair] = set()
        self._highest: dict[str, str] = {}
        self._pace = 1.0  # messages of a batch, as a moving average

    def start(self, head: int | None) -> None:
        """Begin at the end of the log, `head`, where all indexes must end as well; None if the
        database updates its indexes itself."""
        self._indexed = {} if head is None else dict.fromkeys(INDEXES, head)
        self._cids.clear()
        self._highest.clear()

    def write(self, db: Database, batch: Batch) -> None:
        """Write a batch in one transaction. On any error nothing of it is written.

        Raises `DuplicateCids` with the repeated calls, and `ValueError` for a batch that
        contradicts the log or itself, which is a defect of the caller.
        """
        cids = _cids_of(batch)
        head = batch.messages[-1].seq if batch.messages else 0
        index = self._index_due(head)
        rows = [(*row, checksum(row)) for row in batch.messages]
        inserts = self.inserts(rows, batch.deliveries)
        doubtful = self._doubtful(cids)
        try:
            if len(inserts) == 1 and not (doubtful or batch.records or index):
                db.execute(*inserts[0])  # an implicit transaction
            else:
                with transaction(db):
                    self._refuse_duplicates(db, doubtful)
                    write_records(db, batch.records, self._write_mod_rows)
                    for sql, parameters in inserts:
                        db.execute(sql, parameters)
                    if index:
                        index_log(db, index, head)
        except sqlite3.IntegrityError as error:
            raise ValueError(f"the batch contradicts the log or itself: {error}") from error
        self._remember(cids - _refused_cids(batch))
        if index:
            self._indexed[index] = head
        if index == "by_cid":
            self._cids.clear()
        if batch.messages:
            self._pace += (len(batch.messages) - self._pace) / 16

    def inserts(
        self, messages: Sequence[tuple[Value, ...]], deliveries: Sequence[Delivery]
    ) -> Sequence[tuple[str, Sequence[Any]]]:
        """The statements, with their parameters, that write rows of the log."""
        return [*_chunks(_MESSAGES, messages), *_chunks(_DELIVERIES, deliveries)]

    def _index_due(self, head: int) -> IndexName | None:
        """The index that lags most, if it exceeds the limit. One at a time, to keep commits
        short."""
        if not self._indexed:
            return None
        last = min(self._indexed, key=self._indexed.__getitem__)
        allowed = min(self._tail, _TAIL_BATCHES * self._pace)
        return last if head - self._indexed[last] >= allowed else None

    def _doubtful(self, cids: set[Pair]) -> list[Pair]:
        """The cids that may have been used before. A cid above the sender's highest is certainly
        new, as with ULIDs, which increase."""
        highest = self._highest
        return [pair for pair in cids if pair[1] <= highest.get(pair[0], _ANY)]

    def _refuse_duplicates(self, db: Database, doubtful: Sequence[Pair]) -> None:
        duplicates = self._cids.intersection(doubtful)
        for sender in {sender for sender, _ in doubtful} - self._highest.keys():
            self._highest[sender] = db.execute(_HIGHEST_CID, (sender,)).fetchone()[0]
        for sql, pairs in _chunks(known_cids, self._doubtful(set(doubtful))):
            duplicates.update(db.execute(sql, pairs))
        if duplicates:
            raise DuplicateCids(frozenset(duplicates))

    def _remember(self, cids: set[Pair]) -> None:
        if self._indexed:
            self._cids |= cids
        highest = self._highest
        for sender, cid in cids:
            if cid > highest[sender]:
                highest[sender] = cid


def _cids_of(batch: Batch) -> set[Pair]:
    pairs = [(row[4], row[5]) for row in batch.messages if row[5] is not None]
    if batch.records:
        pairs += [(call.sender, call.cid) for call in map(_settled_by, batch.records) if call]
    cids = set(pairs)
    if len(cids) != len(pairs):
        raise ValueError("the batch contradicts itself: a cid appears twice in it")
    return cids


def _settled_by(record: Record) -> CallSettled | None:
    """The call whose answer is stored with the record, if there is one."""
    if type(record) is CallSettled:
        return record
    return record.settled if type(record) is ModRows else None


def _refused_cids(batch: Batch) -> set[Pair]:
    """The cids of calls whose rows were refused; they are not stored and can be repeated."""
    refused = (rows for rows in batch.records if type(rows) is ModRows and rows.refused is not None)
    return {(rows.settled.sender, rows.settled.cid) for rows in refused if rows.settled}


def _chunks(
    statement: Statement, rows: Sequence[tuple[Value, ...]]
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """All rows in as few statements as possible, each with its parameters."""
    start, left = 0, len(rows)
    while left:
        size = next((size for size in _LARGE if size <= left), left)
        yield statement(size), tuple(chain.from_iterable(rows[start : start + size]))
        start += size
        left -= size
