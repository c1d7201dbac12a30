"""One call searches a bounded part of the log, however rare the matches."""

from __future__ import annotations

import json
import sqlite3

import pytest

from hubbub.network.records import MessageRow
from hubbub.network.store import searches
from hubbub.network.store.checksums import checksum
from hubbub.network.store.searches import interaction, mentions


@pytest.fixture
def db(db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch) -> sqlite3.Connection:
    monkeypatch.setattr(searches, "_PART", 10)
    monkeypatch.setattr(searches, "SEARCH_ENTRIES", 40)
    return db


def insert(db: sqlite3.Connection, seq: int, text: str) -> None:
    """Inserts a message to bob, who is not the first recipient of every second one."""
    named = ("bob", "because", None) if seq % 2 else ("cy", "because", None)
    row = MessageRow(seq, 1, seq, None, "ann", None, None, *named, text.encode())
    values = ", ".join("?" * (len(row) + 1))
    db.execute(f"REPLACE INTO message VALUES ({values})", (*row, checksum(row)))
    if seq % 2 == 0:
        db.execute("REPLACE INTO delivery VALUES (?, 'bob', 'because', NULL)", (seq,))


def fill(db: sqlite3.Connection, count: int, *, indexed: int = 0, size: int = 1) -> None:
    """Inserts messages to bob; only the first mentions him and belongs to interaction i1."""
    for seq in range(1, count + 1):
        named = {"mentions": ["bob"]} if seq == 1 else {}
        body = {"seq": seq, "content": "x" * size, **named, "interaction_id": f"i{seq}"}
        text = json.dumps(body, separators=(",", ":"))
        insert(db, seq, text)
        if seq <= indexed:
            db.execute("INSERT INTO by_participant VALUES ('bob', ?)", (seq,))
    db.execute("UPDATE indexed SET upto = ? WHERE name = 'by_participant'", (indexed,))


@pytest.mark.behaviour("S-11", "P-34")
@pytest.mark.parametrize("indexed", [0, 5, 47, 95, 100])
def test_mentions_are_searched_part_by_part(db: sqlite3.Connection, indexed: int) -> None:
    fill(db, 100, indexed=indexed)
    before, calls, bodies = 101, 0, list[bytes]()
    while before > 1:
        page = mentions(db, "bob", before, 9)
        assert before - 50 <= page.upto < before
        bodies += page.bodies
        before, calls = page.upto, calls + 1
    assert [json.loads(body)["seq"] for body in bodies] == [1]
    assert 3 <= calls <= 5


@pytest.mark.behaviour("S-11", "P-36")
def test_an_interaction_is_searched_part_by_part(db: sqlite3.Connection) -> None:
    fill(db, 100)
    first = interaction(db, "i1", 0, 100)
    assert ([no for no, _ in first.rows], first.upto) == ([1], 40)
    assert interaction(db, "i1", 40, 100) == ([], 80)
    assert interaction(db, "i1", 80, 100) == ([], 100)
    assert interaction(db, "i1", 0, 25).upto == 25
    assert interaction(db, "i1", 120, 100) == ([], 100)


def test_large_messages_shrink_the_searched_parts(
    db: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searches, "SEARCH_BYTES", 15_000)
    fill(db, 100, size=1000)
    assert interaction(db, "i1", 0, 100).upto == 20
    assert mentions(db, "bob", 101, 9) == ([], 81)


@pytest.mark.behaviour("S-17")
def test_a_notice_stands_for_a_damaged_message(db: sqlite3.Connection) -> None:
    fill(db, 30)
    db.execute("INSERT INTO thread VALUES (1, 'channel.desk')")
    fields = '"interaction_id":"i1","mentions":["bob"]'
    for seq in (10, 20, 25):
        text = f'{{"seq":{seq},{fields}}}'
        insert(db, seq, text)
    db.execute("UPDATE message SET tseq = 21 WHERE seq = 20")
    found = [json.loads(body) for body in mentions(db, "bob", 31, 9).bodies]
    assert [message["seq"] for message in found] == [25, 20, 10, 1]
    assert found[1]["content"] == "Message m20 is damaged in the log and is not shown."
    followed = [json.loads(body) for _, body in interaction(db, "i1", 0, 30).rows]
    assert [message["seq"] for message in followed] == [1, 10, 20, 25]
    assert followed[2] == found[1]
