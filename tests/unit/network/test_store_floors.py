"""The floor rises as turns end, so that what is pending is found without reading the past."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import pytest

from hubbub.network.records import Batch, Record, TurnBegun, TurnEnded, WakesSettled
from hubbub.network.store.floors import floor_of, lift_floor, raise_floors
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


@pytest.fixture(params=[1, 3, 1000], ids="tail={}".format)
def desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    migrate(db, "a test's database")
    yield Desk(db, request.param)
    db.close()


def test_an_unknown_agent_has_the_floor_0(desk: Desk) -> None:
    assert desk.floor == 0


def test_the_floor_rises_up_to_the_first_wake_that_nobody_has_taken(desk: Desk) -> None:
    desk.wake_bob(1, 9)
    desk.turn(1)
    assert desk.floor == 2
    desk.turn(5)
    assert desk.floor == 2
    desk.turn(3)
    assert desk.floor == 6


def test_the_floor_rises_to_the_end_of_the_log_when_all_are_taken(desk: Desk) -> None:
    desk.wake_bob(1, 8)
    desk.turn(1, 3, 5, 7)
    assert desk.floor == 8


def test_a_running_turn_does_not_hold_the_floor(desk: Desk) -> None:
    desk.wake_bob(1, 8)
    desk.write(TurnBegun("slow", "bob", 1.0, "{}", (1,)))
    desk.turn(3, 5)
    assert desk.floor == 6


def test_a_floor_is_never_lowered(desk: Desk) -> None:
    desk.wake_bob(1, 8)
    desk.write(WakesSettled("bob", 6), WakesSettled("bob", 4))
    assert desk.floor == 6
    desk.turn(1)
    assert desk.floor == 6
    raise_floors(desk.db, [("bob", 2)])
    lift_floor(desk.db, "bob")
    assert desk.floor == 6


def test_the_floor_of_another_agent_stays(desk: Desk) -> None:
    desk.wake_bob(1, 4)
    desk.turn(1, 3)
    assert floor_of(desk.db, "carol") == 0
