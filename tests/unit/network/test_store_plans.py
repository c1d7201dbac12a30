"""Every query uses an index, for logs of any length."""

from __future__ import annotations

import re
import sqlite3

import pytest

from hubbub.network.store import control, index, reads, searches, writer
from hubbub.network.store.events import EVENT_QUERIES

SPAN = {"me": "bob", "after": 5, "upto": 9, "limit": 3}
WAKES = {"agent": "bob", "floor": 5, "indexed": 7, "upto": 9}


def plan(db: sqlite3.Connection, sql: str, parameters: object) -> list[str]:
    """The steps of SQLite's plan that read a table."""
    assert isinstance(parameters, dict | tuple)
    steps = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, parameters)]
    return [step for step in steps if step.startswith(("SEARCH", "SCAN"))]


def scanned(steps: list[str]) -> set[str]:
    """Full scans, except those of rows that the query produces itself."""
    produced = re.compile(r"SCAN (page|pair|d|json_each .*|\(subquery-\d\)|(\d+ )?CONSTANT ROWS?)")
    return {step for step in steps if step.startswith("SCAN") and not produced.fullmatch(step)}


def test_events_are_searched_by_participant_scope_and_unindexed_tail(
    db: sqlite3.Connection,
) -> None:
    for own in (False, True):
        indexed, tail = (plan(db, query, SPAN) for query in EVENT_QUERIES[own])
        assert not scanned([*indexed, *tail])
        assert "SEARCH i USING PRIMARY KEY (participant=? AND seq>? AND seq<?)" in indexed
        assert "SEARCH i USING PRIMARY KEY (scope=? AND seq>? AND seq<?)" in indexed
        assert "SEARCH member USING PRIMARY KEY (participant=?)" in indexed
        assert tail[0] == "SEARCH m USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"


def test_pending_wakes_are_searched_above_the_floor_and_by_running_turn(
    db: sqlite3.Connection,
) -> None:
    for sql in (reads.PENDING_QUERY, reads.OPEN_WAKES_QUERY):
        steps = plan(db, sql, WAKES)
        assert not scanned(steps)
        indexed = "SEARCH by_participant USING PRIMARY KEY (participant=? AND seq>? AND seq<?)"
        assert indexed in steps
        assert "SEARCH message USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in steps
        assert "SEARCH delivery USING PRIMARY KEY (seq>? AND seq<?)" in steps
        assert "SEARCH t USING INDEX turn_running (agent=?)" in steps


def test_the_next_floor_is_searched_without_sorting(db: sqlite3.Connection) -> None:
    for sql in index.FIRST_FREE_WAKE:
        details = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, WAKES)]
        assert not any(step.startswith(("SCAN", "USE TEMP")) for step in details)


QUERIES: list[tuple[str, object]] = [
    (reads.SETTLED_QUERY, ("bob", "c")),
    (reads.TAILS_QUERY, (5, 9, "[1]")),
    (reads.WAKES_QUERY, {"seqs": "[5]", "me": "bob"}),
    (reads.WAKES_QUERY, {"seqs": "[5]", "me": None}),
    (searches.INTERACTION_QUERY, ("i", 5, 9)),
    (control.OPEN_REQUESTS_QUERY, ()),
    (control.LATEST_DAY_QUERY, ()),
    (control.SPENDING_QUERY, {"since": "2026-01-01", "agent": None, "thread": None}),
    (writer.known_cids(64), ("bob", "c") * 64),
    (writer.known_cids(1), ("bob", "c")),
]


@pytest.mark.behaviour("S-11")
def test_no_other_query_scans_a_table(db: sqlite3.Connection) -> None:
    for sql, parameters in QUERIES:
        assert not scanned(plan(db, sql, parameters)), sql


def test_unused_approvals_are_searched_by_running_turns(db: sqlite3.Connection) -> None:
    steps = plan(db, control.OPEN_APPROVALS_QUERY, ())
    assert scanned(steps) == {"SCAN t USING INDEX turn_running"}  # limited to running turns
    assert "SEARCH a USING INDEX approval_unused (turn=?)" in steps


def test_mentions_are_searched_backwards_by_participant(db: sqlite3.Connection) -> None:
    span = {"me": "bob", "name": "x", "indexed": 7, "before": 9, "limit": 3}
    tail, index = (plan(db, sql, span) for sql in searches.MENTION_QUERIES)
    assert not scanned([step for step in (*tail, *index) if step != "SCAN n"])
    assert "SEARCH m USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)" in tail
    assert "SEARCH by_participant USING PRIMARY KEY (participant=? AND seq<?)" in index
    for sql in searches.MENTION_QUERIES:
        details = [row[3] for row in db.execute("EXPLAIN QUERY PLAN " + sql, span)]
        assert not any(step.startswith("USE TEMP") for step in details)
