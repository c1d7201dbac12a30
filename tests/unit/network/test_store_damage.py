"""Damage to the log's file: what cannot be proven whole is refused, with its place."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Awaitable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from hubbub.errors import HubbubError, LogDamaged
from hubbub.network.ports import Store
from hubbub.network.queries import PendingWakes
from hubbub.network.records import Batch, ThreadCreated
from hubbub.network.store import open_store
from hubbub.network.store.migrate import migrate, scripts
from hubbub.network.store.verify import verify_log
from hubbub.network.stored import StoredMember
from hubbub.testing.store_rows import delivery, message, wake, write

T = TypeVar("T")

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
    """Write messages in turn to bob alone, and to the members of a channel."""
    store = open_store(url)
    await store.open()
    threads = (ThreadCreated(1, "dm.alice.bob"), ThreadCreated(2, "channel.desk"))
    await write(store, *threads, StoredMember("bob", 2, 0))
    for seq in range(1, COUNT + 1, 2):
        said = message(seq, tseq=seq // 2 + 1, cid=f"c{seq}", digest=seq, text=TEXTS[seq])
        told = message(seq + 1, thread=2, tseq=seq // 2 + 1, scope=2, text=TEXTS[seq + 1])
        named = [wake("bob", seq) if seq % 3 else delivery("bob", seq)]
        if seq % 5:
            await write(store, messages=[said, told], deliveries=named)
        else:  # as before the first one stood in the message's row
            await store.append(Batch(messages=[said, told], deliveries=named))
    await store.close()
    await store.open()  # which brings the indexes to the end of the log
    await store.close()


def changed(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in statements:
            db.execute(statement)


async def reading(what: Awaitable[T], otherwise: T) -> T:
    """What is read, or what stands for a refusal."""
    try:
        return await what
    except (HubbubError, sqlite3.Error):
        return otherwise


async def served(store: Store) -> list[str]:
    """What a store shows that was never sent so, in each way in which messages are read."""
    wrong: list[str] = []
    for seq in SENT:
        body = await reading(store.message(seq), SENT[seq])
        wrong += [f"message {seq}"] * (body != SENT[seq])
        for found in await reading(store.log(seq - 1, COUNT, 1), ()):
            wrong += [f"log {seq}"] * ((found.seq, found.body) != (seq, SENT[seq]))
    for event in await reading(store.log(0, COUNT, COUNT), ()):
        wrong += [f"log {event}"] * (event.body != SENT[event.seq])
    for event in await reading(store.events("bob", 0, COUNT, COUNT, True), ()):
        wrong += [f"event {event}"] * (event.body != SENT.get(event.seq))
    for row in await reading(store.read(PendingWakes("bob", COUNT)), ()):
        wrong += [f"pending {row}"] * (row.body != SENT.get(row.seq))
    for thread, seqs in THREADS.items():
        whole = [SENT[seq] for seq in sorted(seqs)]
        page = await reading(store.thread_page(thread, None, COUNT), ())
        tails = await reading(store.tails([thread], COUNT, COUNT), {})
        for bodies in (page, tails.get(thread, ())):
            wrong += [f"thread {thread}"] * (list(bodies) != whole[len(whole) - len(bodies) :])
    return wrong


@pytest.mark.slow
@pytest.mark.behaviour("S-17")
async def test_of_single_bits_that_flip_none_is_served(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    sound = path.read_bytes()
    rng = random.Random(12)
    wrong, opened = [], 0
    for _ in range(75):
        bit = rng.randrange(len(sound) * 8)
        flipped = bytearray(sound)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        store = open_store(url)
        try:
            await store.open()
            opened += 1
            wrong += [(bit, each) for each in await served(store)]
        except (HubbubError, sqlite3.Error):
            pass
        finally:
            await store.close()
    assert not wrong
    assert opened > 50


@pytest.mark.behaviour("S-17")
async def test_a_hole_or_a_cut_end_is_refused_at_start(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    sound = path.read_bytes()
    for statement, said in (
        (f"DELETE FROM message WHERE seq > {COUNT - 5}", f"and lacks m{COUNT - 4}"),
        ("DELETE FROM message WHERE seq = 7", "and lacks m7"),
        ("DELETE FROM message", "and lacks m1"),
        ("UPDATE sqlite_sequence SET seq = seq - 1", f"its log was written up to m{COUNT - 1}"),
    ):
        path.write_bytes(sound)
        changed(path, statement)
        with pytest.raises(LogDamaged) as refused:
            await open_store(url).open()
        for words in (
            f"{path} is damaged: ",
            said,
            "restore a backup (`hubbub network restore`)",
        ):
            assert words in str(refused.value)


@pytest.mark.behaviour("S-17")
async def test_what_is_whole_around_damage_stays_readable(tmp_path: Path) -> None:
    url = await filled(tmp_path / "x.db")
    other = "CAST(replace(body, 'abca', 'abcb') AS BLOB)"
    changed(tmp_path / "x.db", f"UPDATE message SET body = {other} WHERE seq = 5")
    store = open_store(url)
    await store.open()
    damage = r"message m5 of dm\.alice\.bob is damaged in the log and is not shown"
    for reading in (store.message(5), store.log(3, COUNT, 9), store.thread_page(1, 4, 9)):
        with pytest.raises(LogDamaged, match=damage) as refused:
            await reading
        assert refused.value.seq == 5
    with pytest.raises(LogDamaged, match=damage):
        await store.events("bob", 0, COUNT, 9, own=False)
    assert await store.message(6) == SENT[6]
    assert await store.thread_page(1, 3, 9) == [SENT[1], SENT[3]]
    assert (await store.thread_page(1, None, COUNT))[0] == SENT[7]
    assert await store.tails([1], 5, 9) == {1: []}
    assert [row.seq for row in await store.read(PendingWakes("bob", 8))] == [1, 7]
    await store.close()


@pytest.mark.behaviour("S-17")
async def test_reading_all_says_the_first_place_that_is_not_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    url = await filled(path)
    sound = path.read_bytes()
    assert verify_log(url) == COUNT
    for statement, said in (
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
        path.write_bytes(sound)
        changed(path, statement)
        with pytest.raises(LogDamaged, match=said):
            verify_log(url)


async def test_a_log_from_before_there_were_checksums_gets_them(tmp_path: Path) -> None:
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
