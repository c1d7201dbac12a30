"""The floor rises as turns end, so that what is pending is found without reading the past."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from hubbub.network.records import Batch, Record, TurnBegun, TurnEnded, WakesSettled
from hubbub.network.store.index import floor_of, lift_floor, raise_floors
from hubbub.network.store.migrate import migrate
from hubbub.network.store.writer import BatchWriter
from hubbub.testing.store_rows import delivery, message, wake


class Desk:
    """A database and its writer."""

    def __init__(self, db: sqlite3.Connection, tail: int):
        self.db = db
        self.writer = BatchWriter(tail)
        self.writer.start(0)

    def write(self, *records: Record) -> None:
        self.writer.write(self.db, Batch(list(records)))

    def wake_bob(self, first: int, last: int) -> None:
        """Messages one by one; every second one wakes bob, the others only reach him."""
        for seq in range(first, last + 1):
            told = wake("bob", seq) if seq % 2 else delivery("bob", seq)
            self.writer.write(self.db, Batch(messages=[message(seq)], deliveries=[told]))

    def turn(self, *seqs: int) -> None:
        """A turn of bob that takes these wakes, and ends."""
        self.write(TurnBegun(f"bob-m{seqs[0]}", "bob", 1.0, "{}", seqs))
        self.write(TurnEnded(f"bob-m{seqs[0]}", 2.0, "{}"))

    @property
    def floor(self) -> int:
        return floor_of(self.db, "bob")


@pytest.mark.parametrize("tail", [1, 3, 1000])
def test_the_floor_rises_up_to_the_first_wake_that_nobody_has_taken(tail: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        migrate(db, "a test's database")
        desk = Desk(db, tail)
        assert desk.floor == 0
        desk.wake_bob(1, 9)
        desk.turn(1)
        assert desk.floor == 2
        desk.turn(5)
        assert desk.floor == 2
        desk.turn(3)
        assert desk.floor == 6
        desk.write(TurnBegun("slow", "bob", 1.0, "{}", (7,)))
        desk.wake_bob(10, 14)
        desk.turn(9)
        assert desk.floor == 10, "a running turn does not hold it"
        desk.write(WakesSettled("bob", 12), WakesSettled("bob", 4))
        raise_floors(db, [("bob", 2)])
        lift_floor(db, "bob")
        assert desk.floor == 12, "it is never lowered"
        desk.turn(13)
        assert desk.floor == 14, "all are taken: the end of the log"
        assert floor_of(db, "carol") == 0
