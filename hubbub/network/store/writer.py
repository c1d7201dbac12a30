"""The one writer: a batch in one transaction, in as few statements as it takes.

Runs in the thread of the writing connection. What costs time here is paid by every message.
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
"""Messages by which an index may lag at most. More makes writing cheaper where many participants
write in turn, and reading the tail dearer."""

_TAIL_BATCHES = 512
"""Batches by which it may lag at most: a quiet network has small batches, and so short tails."""

_LARGE = (512, 256, 128, 64)
"""Rows of the statements for large batches; what is left over, below 64, has one of its own size.
512 rows of 12 columns are well below the 32,766 variables that SQLite accepts."""

_ANY = chr(0x10FFFF)
"""Beyond every cid."""

Pair = tuple[str, str]
Value = str | int | bytes | None
Statement = Callable[[int], str]
"""The SQL for so many rows. Each number has its own statement, kept prepared, so that a batch takes
as few as it can: around each of them the thread lets the interpreter go and must win it back."""


def _insert_into(table: str, columns: Sequence[str]) -> Statement:
    row = f"({', '.join('?' * len(columns))})"
    head = f"INSERT INTO {table} ({', '.join(columns)}) VALUES "
    return cache(lambda rows: head + ", ".join([row] * rows))


_MESSAGES = _insert_into("message", (*MessageRow._fields, "sum"))
_DELIVERIES = _insert_into("delivery", Delivery._fields)
_HIGHEST_CID = "SELECT coalesce(max(cid), '') FROM by_cid WHERE sender = ?"


@cache
def known_cids(rows: int) -> str:
    """The query for those of so many (sender, cid) that an index has."""
    return (
        f"WITH pair (sender, cid) AS (VALUES {', '.join(['(?, ?)'] * rows)}) "
        "SELECT sender, cid FROM pair CROSS JOIN by_cid USING (sender, cid)"
    )


class BatchWriter:
    """Writes batches, finds duplicate cids, keeps the indexes close behind the log.

    The cids of the tail are kept in memory, since no index has them yet.
    """

    def __init__(self, tail: int = TAIL, write_mod_rows: RowsWriter = write_mod_rows):
        self._tail, self._write_mod_rows = tail, write_mod_rows
        self._indexed: dict[IndexName, int] = {}
        self._cids: set[Pair] = set()
        self._highest: dict[str, str] = {}
        self._pace = 1.0  # messages of a batch, as a moving average

    def start(self, head: int | None) -> None:
        """Begin at the end of the log, `head`, where all indexes must end too; None: the database
        itself keeps them up to date."""
        self._indexed = {} if head is None else dict.fromkeys(INDEXES, head)
        self._cids.clear()
        self._highest.clear()

    def write(self, db: Database, batch: Batch) -> None:
        """One transaction; whatever it raises, nothing of the batch is written.

        `DuplicateCids` says what the batch repeats; `ValueError` that it contradicts the log or
        itself, which is a defect of the caller.
        """
        cids = _cids_of(batch)
        head = batch.messages[-1].seq if batch.messages else 0
        index = self._index_due(head)
        rows = [(*row, checksum(row)) for row in batch.messages]
        inserts = self.inserts(rows, batch.deliveries)
        doubtful = self._doubtful(cids)
        try:
            if len(inserts) == 1 and not (doubtful or batch.records or index):
                db.execute(*inserts[0])  # a transaction of its own
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
        """The index that lags most, if it lags too much. One at a time, to keep commits short."""
        if not self._indexed:
            return None
        last = min(self._indexed, key=self._indexed.__getitem__)
        allowed = min(self._tail, _TAIL_BATCHES * self._pace)
        return last if head - self._indexed[last] >= allowed else None

    def _doubtful(self, cids: set[Pair]) -> list[Pair]:
        """Those that may have been used before. Cids that grow, as ULIDs do, are new for certain
        when they are beyond the sender's last."""
        highest = self._highest
        return [pair for pair in cids if pair[1] <= highest.get(pair[0], _ANY)]

    def _refuse_duplicates(self, db: Database, doubtful: Sequence[Pair]) -> None:
        found = self._cids.intersection(doubtful)
        for sender in {sender for sender, _ in doubtful} - self._highest.keys():
            self._highest[sender] = db.execute(_HIGHEST_CID, (sender,)).fetchone()[0]
        for sql, pairs in _chunks(known_cids, self._doubtful(set(doubtful))):
            found.update(db.execute(sql, pairs))
        if found:
            raise DuplicateCids(frozenset(found))

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
    """The call whose answer is kept with the record, if there is one."""
    if type(record) is CallSettled:
        return record
    return record.settled if type(record) is ModRows else None


def _refused_cids(batch: Batch) -> set[Pair]:
    """Of calls whose rows were refused: they are not in the store, and may come again."""
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
