"""The writer: batches of every size, indexes updated in bulk, and a full disk."""

from __future__ import annotations

import sqlite3

import pytest

from hubbub.network.ports import DuplicateCids
from hubbub.network.records import Batch, CallSettled, ParticipantSeen
from hubbub.network.store.index import INDEXES, index_all, indexed_upto
from hubbub.network.store.writer import BatchWriter
from hubbub.testing.store_rows import delivery, message


def started(tail: int, head: int = 0) -> BatchWriter:
    writer = BatchWriter(tail)
    writer.start(head)
    return writer


def batch(first: int, last: int) -> Batch:
    """Messages of two senders in three threads, half of them in a scope, each with a cid."""
    span = range(first, last + 1)
    return Batch(
        messages=[
            message(
                seq,
                thread=seq % 3,
                scope=4 if seq % 2 else None,
                sender=f"s{seq % 2}",
                cid=f"c{seq}",
                to=delivery(f"p{seq % 5}", seq),
            )
            for seq in span
        ],
        deliveries=[delivery("q", seq) for seq in span if seq % 3],
    )


def lags(db: sqlite3.Connection, head: int) -> list[int]:
    return [head - indexed_upto(db, name) for name in INDEXES]


def rows(db: sqlite3.Connection, sql: str) -> list[tuple[object, ...]]:
    return db.execute(sql).fetchall()


def assert_indexes_match_the_log(db: sqlite3.Connection) -> None:
    """Each index has exactly the rows of the log up to its own position."""
    sources = {
        "by_thread": ("thread_no, tseq, seq", "SELECT thread_no, tseq, seq FROM message"),
        "by_scope": ("scope, seq", "SELECT scope, seq FROM message WHERE scope IS NOT NULL"),
        "by_participant": (
            "participant, seq",
            "SELECT recipient, seq FROM message UNION ALL SELECT participant, seq FROM delivery",
        ),
        "by_cid": ("sender, cid, seq", "SELECT sender, cid, seq FROM message"),
    }
    assert sources.keys() == set(INDEXES)
    for name in INDEXES:
        columns, source = sources[name]
        indexed = rows(db, f"SELECT {columns} FROM {name}")
        logged = rows(db, f"SELECT * FROM ({source}) WHERE seq <= {indexed_upto(db, name)}")
        assert sorted(map(repr, indexed)) == sorted(map(repr, logged))


def test_a_batch_of_any_size_is_written_whole(db: sqlite3.Connection) -> None:
    writer, seq = started(1000), 0
    for size in (1, 2, 3, 5, 15, 16, 63, 64, 65, 127, 128, 200):
        writer.write(db, batch(seq + 1, seq + size))
        seq += size
        assert rows(db, "SELECT count(*), max(seq) FROM message") == [(seq, seq)]
        expected = sum(1 for each in range(1, seq + 1) if each % 3)
        assert rows(db, "SELECT count(*) FROM delivery") == [(expected,)]


@pytest.mark.parametrize("tail", [1, 10, 64])
def test_no_index_lags_by_more_than_the_tail_and_a_few_batches(
    db: sqlite3.Connection, tail: int
) -> None:
    writer = started(tail)
    for first in range(1, 500, 3):
        writer.write(db, batch(first, first + 2))
        assert max(lags(db, first + 2)) <= tail + 3 * len(INDEXES)
    assert_indexes_match_the_log(db)


def test_a_commit_updates_at_most_one_index(db: sqlite3.Connection) -> None:
    writer, before = started(10), [0] * len(INDEXES)
    for first in range(1, 100, 4):
        writer.write(db, batch(first, first + 3))
        now = [indexed_upto(db, name) for name in INDEXES]
        assert sum(a != b for a, b in zip(before, now, strict=True)) <= 1
        before = now
    assert min(before) > 80


def test_the_tail_grows_with_the_batches_until_all_is_indexed(
    db: sqlite3.Connection,
) -> None:
    writer = started(8192)
    for seq in range(1, 1200):
        writer.write(db, batch(seq, seq))
    assert max(lags(db, 1199)) <= 512 + len(INDEXES)
    for first in range(1200, 5200, 200):
        writer.write(db, batch(first, first + 199))
    assert min(lags(db, 5199)) >= 1000
    assert index_all(db) == 5199
    assert lags(db, 5199) == [0] * len(INDEXES)
    assert_indexes_match_the_log(db)


@pytest.mark.behaviour("P-22")
@pytest.mark.parametrize("tail", [1, 7, 1000])
def test_a_repeated_cid_is_detected_wherever_the_first_is_stored(
    db: sqlite3.Connection, tail: int
) -> None:
    writer = started(tail)
    for seq in range(1, 30):
        writer.write(db, batch(seq, seq))
    for seq in range(1, 30):
        repeated = Batch(messages=[message(30, sender=f"s{seq % 2}", cid=f"c{seq}")])
        with pytest.raises(DuplicateCids) as refused:
            writer.write(db, repeated)
        assert refused.value.pairs == {(f"s{seq % 2}", f"c{seq}")}


def test_a_refused_batch_writes_nothing_and_uses_no_cid(db: sqlite3.Connection) -> None:
    writer = started(1000)
    writer.write(db, batch(1, 3))
    with pytest.raises(DuplicateCids):
        writer.write(db, Batch(messages=[message(4, cid="new"), *batch(3, 3).messages]))
    with pytest.raises(ValueError, match="contradicts the log"):
        writer.write(db, Batch(messages=[message(4, cid="new"), message(2)]))
    writer.write(db, Batch(messages=[message(4, cid="new")]))
    seen = ParticipantSeen("x", "agent", "{}")
    with pytest.raises(DuplicateCids):
        writer.write(db, Batch([seen, CallSettled("s1", "c1", 1, "1")]))
    with pytest.raises(ValueError, match="surrogates not allowed"):
        writer.write(db, Batch(messages=[message(5, text="\ud800")]))
    assert rows(db, "SELECT max(seq) FROM message") == [(4,)]
    assert rows(db, "SELECT * FROM participant") == []
    assert not db.in_transaction


def fill(db: sqlite3.Connection, writer: BatchWriter) -> int:
    """Writes until the disk is full, and returns the number of stored messages."""
    for first in range(1, 10_000, 10):
        try:
            writer.write(db, batch(first, first + 9))
        except sqlite3.OperationalError as error:
            assert error.sqlite_errorcode == sqlite3.SQLITE_FULL  # noqa: PT017 - the loop's end
            return first - 1
    raise AssertionError("the disk never filled up")


def test_an_index_catches_up_after_a_full_disk(db: sqlite3.Connection) -> None:
    writer = started(50)
    db.execute("PRAGMA max_page_count = 40").fetchone()
    written = fill(db, writer)
    assert rows(db, "SELECT count(*) FROM message") == [(written,)]
    db.execute("PRAGMA max_page_count = 100000").fetchone()
    for first in range(written + 1, written + 200, 10):
        writer.write(db, batch(first, first + 9))
    assert_indexes_match_the_log(db)
