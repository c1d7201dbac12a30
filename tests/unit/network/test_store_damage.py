"""Damage to the log's file is refused with its position, never served."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from hubbub.errors import HubbubError, LogDamaged
from hubbub.network.ports import Store
from hubbub.network.queries import InteractionMessages, MentionsOf, PendingWakes
from hubbub.network.records import Batch, ThreadCreated
from hubbub.network.store import open_store
from hubbub.network.store.migrate import migrate, scripts
from hubbub.network.store.verify import verify_log
from hubbub.network.stored import StoredMember
from hubbub.testing.store_rows import delivery, message, wake, write

T = TypeVar("T")

PAGE = 4096
COUNT = 120
TEXTS = {
    seq: f'{{"seq":{seq},"text":"grüße {seq:x} {"abc" * 150}"}}' for seq in range(1, COUNT + 1)
}
SENT = {seq: text.encode() for seq, text in TEXTS.items()}
THREADS = {1: set(range(1, COUNT + 1, 2)), 2: set(range(2, COUNT + 1, 2))}


async def filled(path: Path) -> str:
    """The URL of a new store with messages."""
    url = f"sqlite:{path}"
    await fill_log(url)
    return url


async def fill_log(url: str) -> None:
    """Writes messages, alternately to bob and to a channel."""
    store = open_store(url)
    await store.open()
    threads = (ThreadCreated(1, "dm.alice.bob"), ThreadCreated(2, "channel.desk"))
    await write(store, *threads, StoredMember("bob", 2, 0))
    for seq in range(1, COUNT + 1, 2):
        direct = message(seq, tseq=seq // 2 + 1, cid=f"c{seq}", digest=seq, text=TEXTS[seq])
        channel = message(seq + 1, thread=2, tseq=seq // 2 + 1, scope=2, text=TEXTS[seq + 1])
        named = [wake("bob", seq) if seq % 3 else delivery("bob", seq)]
        if seq % 5:
            await write(store, messages=[direct, channel], deliveries=named)
        else:  # in the old format, without the first recipient in the message's row
            await store.append(Batch(messages=[direct, channel], deliveries=named))
    await store.close()
    await store.open()  # completes the indexes
    await store.close()


def execute(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


async def result_or(default: T, query: Awaitable[T]) -> T:
    """The query's result, or the default if it is refused."""
    try:
        return await query
    except (HubbubError, sqlite3.Error):
        return default


def is_notice(body: bytes) -> bool:
    """Whether it stands for a damaged message, and has nothing of it."""
    return b'"sender_kind":"system"' in body and b"abc" not in body


async def served(store: Store) -> list[str]:
    """Every result of a store, by any query, that differs from the sent messages."""
    corrupted: list[str] = []
    for seq in SENT:
        body = await result_or(SENT[seq], store.message(seq))
        corrupted += [f"message {seq}"] * (body != SENT[seq])
        for event in await result_or((), store.log(seq - 1, COUNT, 1)):
            corrupted += [f"log {seq}"] * ((event.seq, event.body) != (seq, SENT[seq]))
    for event in await result_or((), store.log(0, COUNT, COUNT)):
        corrupted += [f"log {event}"] * (event.body != SENT[event.seq])
    for event in await result_or((), store.events("bob", 0, COUNT, COUNT, True)):
        corrupted += [f"event {event}"] * (event.body != SENT.get(event.seq))
    for row in await result_or((), store.read(PendingWakes("bob", COUNT))):
        corrupted += [f"pending {row}"] * (row.body != SENT.get(row.seq))
    for thread, seqs in THREADS.items():
        whole = [SENT[seq] for seq in sorted(seqs)]
        page = await result_or((), store.thread_page(thread, None, COUNT))
        tails = await result_or({}, store.tails([thread], COUNT, COUNT))
        for bodies in (page, tails.get(thread, ())):
            sent = whole[len(whole) - len(bodies) :]
            for body, expected in zip(bodies, sent, strict=True):
                corrupted += [f"thread {thread}"] * (body != expected and not is_notice(body))
    return corrupted


@pytest.mark.slow
@pytest.mark.behaviour("S-17")
async def test_no_flipped_bit_is_ever_served(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    intact = path.read_bytes()
    rng = random.Random(12)
    corrupted, opened = [], 0
    for _ in range(75):
        bit = rng.randrange(len(intact) * 8)
        flipped = bytearray(intact)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        store = open_store(url)
        try:
            await store.open()
            opened += 1
            corrupted += [(bit, each) for each in await served(store)]
        except (HubbubError, sqlite3.Error):
            pass
        finally:
            await store.close()
    assert not corrupted
    assert opened > 50


@pytest.mark.behaviour("S-17")
async def test_messages_before_and_after_a_destroyed_page_of_the_file_are_read(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    intact = path.read_bytes()
    page = intact.index(SENT[60]) // PAGE * PAGE
    store, read, lost, notices = open_store(url), set[int](), set[int](), list[bytes]()
    await store.open()  # before, as a start counts the last messages
    with path.open("r+b") as file:
        file.seek(page)
        file.write(bytes(PAGE))
    while (after := max((0, *read, *lost))) < COUNT:
        try:
            read |= {event.seq for event in await store.log(after, COUNT, 1)}
        except LogDamaged as damage:
            lost.add(damage.seq)
            notices.append(damage.notice or b"")
    assert all(map(is_notice, notices))
    assert 60 in lost
    assert len(lost) < 20
    assert read | lost == set(SENT)
    for thread, seqs in THREADS.items():
        bodies = await store.thread_page(thread, None, COUNT)
        assert [SENT[seq] if seq in read else None for seq in sorted(seqs)] == [
            None if is_notice(body) else body for body in bodies
        ]
    before = await store.events("bob", 0, min(lost) - 1, COUNT, True)
    later = await store.events("bob", max(lost), COUNT, COUNT, True)
    assert {event.seq for event in (*before, *later)} == read
    mentions = await store.read(MentionsOf("bob", COUNT + 1, COUNT))
    assert mentions.upto == 1
    assert all(map(is_notice, mentions.bodies))
    assert [json.loads(body)["seq"] for body in mentions.bodies] == sorted(
        lost & THREADS[1], reverse=True
    )
    interaction = await store.read(InteractionMessages("i1", 0, COUNT))
    assert interaction.upto == COUNT
    assert {json.loads(body)["seq"]: no for no, body in interaction.rows} == {
        seq: 1 if seq in THREADS[1] else 2 for seq in lost
    }
    for reading in (store.events("bob", 0, COUNT, COUNT, True), store.message(min(lost))):
        with pytest.raises(LogDamaged, match=f"m{min(lost)} cannot be read"):
            await reading
    await store.close()


@pytest.mark.behaviour("S-17")
async def test_a_log_with_missing_messages_is_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    intact = path.read_bytes()
    for statement, damage in (
        (f"DELETE FROM message WHERE seq > {COUNT - 5}", f"and lacks m{COUNT - 4}"),
        ("DELETE FROM message WHERE seq = 7", "and lacks m7"),
        ("DELETE FROM message", "and lacks m1"),
        ("UPDATE sqlite_sequence SET seq = seq - 1", f"its log was written up to m{COUNT - 1}"),
    ):
        path.write_bytes(intact)
        execute(path, statement)
        with pytest.raises(LogDamaged) as refused:
            await open_store(url).open()
        text = str(refused.value)
        assert f"{path} is damaged: " in text
        assert damage in text
        assert "restore a backup (`hubbub network restore`)" in text


@pytest.mark.behaviour("S-17")
async def test_intact_messages_around_damage_stay_readable(tmp_path: Path) -> None:
    url = await filled(tmp_path / "x.db")
    other = "CAST(replace(body, 'abca', 'abcb') AS BLOB)"
    execute(tmp_path / "x.db", f"UPDATE message SET body = {other} WHERE seq = 5")
    store = open_store(url)
    await store.open()
    damage = r"message m5 of dm\.alice\.bob is damaged in the log and is not shown"
    for query in (store.message(5), store.log(3, COUNT, 9)):
        with pytest.raises(LogDamaged, match=damage) as refused:
            await query
        assert refused.value.seq == 5
    with pytest.raises(LogDamaged, match=damage):
        await store.events("bob", 0, COUNT, 9, own=False)
    assert await store.message(6) == SENT[6]
    one, three, notice = await store.thread_page(1, 4, 9)
    assert (one, three, is_notice(notice)) == (SENT[1], SENT[3], True)
    assert len(await store.thread_page(1, None, COUNT)) == len(THREADS[1])
    assert await store.tails([1], 5, 9) == {1: [one, three, notice]}
    assert [row.seq for row in await store.read(PendingWakes("bob", 8))] == [1, 7]
    await store.close()


@pytest.mark.behaviour("S-17")
async def test_verification_reports_the_first_damaged_position(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    intact = path.read_bytes()
    assert verify_log(url) == COUNT
    for statement, damage in (
        (
            "UPDATE message SET tseq = tseq + 1 WHERE seq = 9",
            "message m9 of dm.alice.bob is damaged",
        ),
        ("DELETE FROM message WHERE seq = 9", "message m9 is missing in the log"),
        ("DELETE FROM by_scope WHERE seq = 10", "m10 is missing in the index by_scope"),
        ("DELETE FROM by_cid WHERE seq = 11", "m11 is missing in the index by_cid"),
        ("DELETE FROM by_participant WHERE seq = 3", "m3 is missing in the index by_participant"),
        ("DELETE FROM by_thread WHERE seq = 3", "m3 is missing in the index by_thread"),
    ):
        path.write_bytes(intact)
        execute(path, statement)
        with pytest.raises(LogDamaged, match=damage):
            verify_log(url)


async def test_a_log_of_the_old_format_gets_checksums(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        migrate(db, "x", {number: scripts()[number] for number in range(1, 8)})
        rows = [(seq, 1, seq, None, "ann", f"c{seq}", None, SENT[seq].decode()) for seq in SENT]
        db.executemany("INSERT INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
    store = open_store(f"sqlite:{path}")
    assert (await store.open()).head == COUNT
    assert [event.body for event in await store.log(0, COUNT, COUNT)] == list(SENT.values())
    await store.close()
    assert verify_log(f"sqlite:{path}") == COUNT
