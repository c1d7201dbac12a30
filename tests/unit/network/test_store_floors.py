"""The floor rises as turns end, so that pending wakes are found without reading the past."""

from __future__ import annotations

import sqlite3

import pytest

from hubbub.network.records import Batch, Record, TurnBegun, TurnEnded, WakesSettled
from hubbub.network.store.index import floor_of, lift_floor, raise_floors
from hubbub.network.store.writer import BatchWriter
from hubbub.testing.store_rows import delivery, message, wake


class Writer:
    """Writes wakes and turns of bob to a database."""

    def __init__(self, db: sqlite3.Connection, tail: int):
        self.db = db
        self.batches = BatchWriter(tail)
        self.batches.start(0)

    def write(self, *records: Record) -> None:
        self.batches.write(self.db, Batch(list(records)))

    def wake_bob(self, first: int, last: int) -> None:
        """Writes single messages; odd ones wake bob, even ones only reach him."""
        for seq in range(first, last + 1):
            row = wake("bob", seq) if seq % 2 else delivery("bob", seq)
            self.batches.write(self.db, Batch(messages=[message(seq)], deliveries=[row]))

    def turn(self, *seqs: int) -> None:
        """Writes a turn of bob that takes these wakes and ends."""
        self.write(TurnBegun(f"bob-m{seqs[0]}", "bob", 1.0, "{}", seqs))
        self.write(TurnEnded(f"bob-m{seqs[0]}", 2.0, "{}"))

    @property
    def floor(self) -> int:
        return floor_of(self.db, "bob")


@pytest.mark.parametrize("tail", [1, 3, 1000])
def test_the_floor_rises_to_the_first_wake_not_taken(db: sqlite3.Connection, tail: int) -> None:
    writer = Writer(db, tail)
    assert writer.floor == 0
    writer.wake_bob(1, 9)
    writer.turn(1)
    assert writer.floor == 2
    writer.turn(5)
    assert writer.floor == 2
    writer.turn(3)
    assert writer.floor == 6
    writer.write(TurnBegun("slow", "bob", 1.0, "{}", (7,)))
    writer.wake_bob(10, 14)
    writer.turn(9)
    assert writer.floor == 10, "a running turn does not hold it"
    writer.write(WakesSettled("bob", 12), WakesSettled("bob", 4))
    raise_floors(db, [("bob", 2)])
    lift_floor(db, "bob")
    assert writer.floor == 12, "it is never lowered"
    writer.turn(13)
    assert writer.floor == 14, "with all wakes taken, the end of the log"
    assert floor_of(db, "carol") == 0
