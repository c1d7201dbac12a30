"""Numbered scripts bring a database of any age to the present schema."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from importlib import resources

import pytest

from hubbub.errors import LogDamaged, StoreVersionError
from hubbub.network.records import MessageRow
from hubbub.network.store.checksums import check_end, checksum, log_end
from hubbub.network.store.events import events
from hubbub.network.store.migrate import check_version, latest_version, migrate, scripts
from hubbub.network.store.mods import bring_up
from hubbub.network.store.reads import message, missing_parts, pending, prompts, state, turn
from hubbub.protocol.turns import part_id

NEXT = {1: scripts()[1], 2: "CREATE TABLE added (x); INSERT INTO added VALUES (7);"}


@pytest.fixture
def db() -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(":memory:", isolation_level=None)
    yield db
    db.close()


def epoch(db: sqlite3.Connection) -> str:
    text: str = db.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()[0]
    return text


@pytest.mark.behaviour("S-10")
def test_migrations_are_numbered_from_1_without_gaps() -> None:
    folder = resources.files("hubbub.network.store") / "migrations"
    names = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    assert [int(name[:4]) for name in names] == list(range(1, len(names) + 1))
    assert len(scripts()) == latest_version() == len(names)


def test_an_empty_database_gets_every_migration_and_an_epoch(db: sqlite3.Connection) -> None:
    assert check_version(db, "x") == 0
    migrate(db, "x", NEXT)
    assert check_version(db, "x", 2) == 2
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert len(epoch(db)) == 26


def test_an_older_database_gets_only_the_missing_migrations(db: sqlite3.Connection) -> None:
    migrate(db, "x", {1: NEXT[1]})
    db.execute("INSERT INTO channel VALUES ('desk', '')")
    first = epoch(db)
    migrate(db, "x", NEXT)
    migrate(db, "x", NEXT)
    assert db.execute("SELECT x FROM added").fetchall() == [(7,)]
    assert db.execute("SELECT name FROM channel").fetchall() == [("desk",)]
    assert epoch(db) == first


@pytest.mark.behaviour("S-10")
def test_a_failed_migration_leaves_the_version_before_it(db: sqlite3.Connection) -> None:
    broken = {**NEXT, 3: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1);"}
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(db, "x", broken)
    assert check_version(db, "x", 3) == 2
    tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
    assert "added" in tables
    assert "half" not in tables
    assert not db.in_transaction


def test_a_database_of_a_newer_version_is_refused(db: sqlite3.Connection) -> None:
    migrate(db, "x", NEXT)
    with pytest.raises(StoreVersionError, match="schema version 2, written by a newer Hubbub"):
        migrate(db, "x", {1: NEXT[1]})


def row(seq: int, thread: int, tseq: int, scope: int | None = None) -> tuple[object, ...]:
    return seq, thread, tseq, scope, "bot", None, None, "{}"


@pytest.mark.behaviour("P-33")
def test_people_have_read_all_messages_from_before_read_marks_existed(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x", {1: scripts()[1]})
    people = [("ann", "human", "{}"), ("bob", "human", "{}"), ("bot", "agent", "{}")]
    db.executemany("INSERT INTO participant VALUES (?, ?, ?)", people)
    threads = {1: "dm.ann.bot", 2: "channel.desk", 3: "channel.desk.t2", 4: "channel.desk2", 5: "x"}
    threads |= {6: "dm.ann.bot.t1", 7: "broadcast"}
    db.executemany("INSERT INTO thread VALUES (?, ?)", threads.items())
    members = [("ann", 2), ("bot", 2), ("bob", 4), ("ann", 7), ("bob", 7), ("bot", 7)]
    db.executemany("INSERT INTO member (participant, scope, since) VALUES (?, ?, 0)", members)
    db.execute("INSERT INTO member VALUES ('bob', 2, 0, 1)")  # bob left
    log = [row(1, 1, 1), row(2, 2, 1, 2), row(3, 3, 1, 2), row(4, 4, 1, 4), row(5, 1, 2)]
    log += [row(6, 3, 2, 2), row(7, 6, 1)]
    db.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", log)
    db.execute("INSERT INTO by_thread VALUES (1, 1, 1), (2, 1, 2), (3, 1, 3)")
    db.execute(
        "UPDATE indexed SET upto = 3 WHERE name = 'by_thread'"
    )  # the rest is not indexed yet
    migrate(db, "x")
    marks = db.execute("SELECT * FROM read_mark ORDER BY participant, thread_no").fetchall()
    assert marks == [("ann", 1, 2), ("ann", 2, 1), ("ann", 3, 2), ("ann", 6, 1), ("bob", 4, 1)]
    assert db.execute("SELECT upto FROM indexed WHERE name = 'by_thread'").fetchone() == (7,)
    assert db.execute("SELECT count(*) FROM by_thread").fetchone() == (7,)


@pytest.mark.behaviour("S-10")
def test_messages_of_the_old_format_still_reach_their_recipient(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x", {n: scripts()[n] for n in range(1, 8)})
    body = '{"text":"grüße"}'
    rows = [(seq, 1, seq, None, "ann", None, None, body) for seq in (1, 2, 3)]
    db.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    wakes = [(seq, "bot", "direct", "required", f"bot-m{seq}") for seq in (1, 2)]
    db.executemany("INSERT INTO delivery VALUES (?, ?, ?, ?, ?)", wakes)
    migrate(db, "x", {n: scripts()[n] for n in range(1, 9)})
    db.execute("UPDATE message SET body = replace(body, 'e', 'a') WHERE seq = 3")
    migrate(db, "x")
    assert [message(db, seq) for seq in (1, 2)] == [body.encode()] * 2
    with pytest.raises(LogDamaged):
        message(db, 3)  # damage is not concealed
    assert log_end(db) == 3
    received = [(event.seq, event.turn) for event in events(db, "bot", 0, 3, 9, own=False)]
    assert received == [(1, "bot-m1"), (2, "bot-m2")]
    assert [wake.seq for wake in pending(db, "bot", 3)] == [1, 2]


@pytest.mark.behaviour("S-10", "T-5")
def test_prompts_of_the_old_format_without_parts_are_read_whole(db: sqlite3.Connection) -> None:
    migrate(db, "x", {n: scripts()[n] for n in range(1, 12)})
    starts: list[dict[str, str | None]] = [
        {"id": "t1", "model": "é", "system_prompt": "Be brief.", "prompt": "<a>\n\u0007 grüße"},
        {"id": "t2", "system_prompt": "Be brief.", "prompt": ""},
        {"id": "t3", "system_prompt": None},
    ]
    for start in starts:
        row = (start["id"], "bot", 1.0, json.dumps(start))
        db.execute("INSERT INTO turn (id, agent, started_at, start) VALUES (?, ?, ?, ?)", row)
    migrate(db, "x")
    pairs = [prompts(db, name) for name in ("t1", "t2", "t3")]
    assert pairs == [("Be brief.", "<a>\n\u0007 grüße"), ("Be brief.", None), (None, None)]
    stored = turn(db, "t1")
    assert stored is not None
    assert json.loads(stored.start) == {"id": "t1", "model": "é"}
    assert not missing_parts(db, "bot", [bytes.fromhex(part_id("Be brief."))])
    assert db.execute("SELECT count(*) FROM prompt_part").fetchone() == (2,)


def test_an_empty_older_database_starts_at_position_zero(db: sqlite3.Connection) -> None:
    migrate(db, "x", {n: scripts()[n] for n in range(1, 9)})
    migrate(db, "x")
    check_end(db, "x")
    assert log_end(db) == 0


@pytest.mark.behaviour("H-100", "M-20")
def test_an_old_database_gets_later_tables_and_keeps_its_rows(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x", {n: scripts()[n] for n in (1, 2)})
    db.execute("INSERT INTO participant VALUES ('bot', 'agent', '{}')")
    migrate(db, "x", {n: scripts()[n] for n in (1, 2, 3)})
    db.execute("INSERT INTO memory VALUES ('bot', 'k', '1')")
    assert check_version(db, "x") == 3
    migrate(db, "x")
    assert check_version(db, "x") == latest_version()
    after = state(db)
    assert not any((after.stops, after.takeovers, after.approvals, after.requests))
    assert not after.latest_day
    assert db.execute("SELECT * FROM memory").fetchall() == [("bot", "k", "1")]
    assert db.execute("SELECT id FROM participant").fetchall() == [("bot",)]
    assert db.execute("SELECT * FROM mod_schema").fetchall() == []
    bring_up(db, "polls", {1: "CREATE TABLE polls_vote (who);"})
    assert db.execute("SELECT * FROM mod_schema").fetchall() == [("polls", 1)]


@pytest.mark.behaviour("S-10")
def test_renamed_fields_of_messages_are_migrated_and_messages_stay_intact(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x", {n: scripts()[n] for n in range(1, 13)})
    bodies = [
        b'{"content":"\\"outside\\": \xc3\xa4","outside":true,"spoken_by":"bob"}',
        b'{"content":{"outside":1}}',
        b'{"outside":true}',
    ]
    rows = [
        MessageRow(seq, 1, seq, None, "ann", "c", 7, None, None, None, body)
        for seq, body in enumerate(bodies, 1)
    ]
    marks = ", ".join("?" * 12)
    db.executemany(f"INSERT INTO message VALUES ({marks})", [(*row, checksum(row)) for row in rows])
    db.execute("UPDATE message SET digest = 8 WHERE seq = 3")
    migrate(db, "x")
    assert json.loads(message(db, 1) or b"") == {
        "content": '"outside": \u00e4', "untrusted": True, "sent_by": "bob",
    }  # fmt: skip
    assert message(db, 2) == bodies[1], "content is the sender's own"
    with pytest.raises(LogDamaged):
        message(db, 3)


def test_renamed_reasons_are_migrated_and_messages_stay_intact(
    db: sqlite3.Connection,
) -> None:
    migrate(db, "x", {n: scripts()[n] for n in range(1, 10)})
    rows = [
        MessageRow(seq, 1, seq, None, "ann", "c", 7, "bot", reason, None, b"{}")
        for seq, reason in enumerate(("dampened", "latched", "direct", "dampened"), 1)
    ]
    marks = ", ".join("?" * 12)
    db.executemany(f"INSERT INTO message VALUES ({marks})", [(*row, checksum(row)) for row in rows])
    db.execute("UPDATE message SET body = CAST('[]' AS BLOB) WHERE seq = 4")
    db.execute("INSERT INTO delivery VALUES (1, 'cy', 'latched', NULL)")
    migrate(db, "x")
    assert [message(db, seq) for seq in (1, 2, 3)] == [b"{}"] * 3
    with pytest.raises(LogDamaged):
        message(db, 4)
    reasons = db.execute("SELECT reason FROM message UNION ALL SELECT reason FROM delivery")
    assert [reason for (reason,) in reasons] == [
        "loop_limit", "breaker_open", "direct", "loop_limit", "breaker_open",
    ]  # fmt: skip


def test_a_mod_can_rename_a_column_of_its_own_table(db: sqlite3.Connection) -> None:
    migrate(db, "x")
    steps = {1: "CREATE TABLE polls_vote (who TEXT);"}
    bring_up(db, "polls", steps)
    db.execute("INSERT INTO polls_vote VALUES ('ann')")
    bring_up(db, "polls", {**steps, 2: "ALTER TABLE polls_vote RENAME COLUMN who TO voter;"})
    assert db.execute("SELECT voter FROM polls_vote").fetchall() == [("ann",)]
