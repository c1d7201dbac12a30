"""A branch of a log, compared with a log that ends at the same message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from hubbub.errors import UserError
from hubbub.network.ports import Store
from hubbub.network.queries import (
    InteractionMessages,
    IsMember,
    MembersAt,
    MentionsOf,
    OpenWakes,
    RequestAt,
    TurnById,
    TurnsById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import (
    Batch,
    Delivery,
    MemberLeft,
    MessageRow,
    ParticipantSeen,
    Record,
    RequestSaved,
    ThreadCreated,
    TurnBegun,
    TurnEnded,
)
from hubbub.network.store.branch import BranchStore
from hubbub.network.store.location import SqliteLocation
from hubbub.network.store.sqlite import SqliteStore
from hubbub.network.stored import StoredChannel, StoredMember, StoreState
from hubbub.testing.store_rows import opened, with_recipient

PEOPLE = ("ann", "bob", "cat")
LENGTH = 24
THREADS = {1: "broadcast", 2: "channel.general", 3: "direct.ann.bob", 4: "direct.bob.cat"}


def history(random: Random, text: str) -> list[Batch]:
    """A batch per message, in threads that start one by one, with members who join and leave."""
    batches, ends = list[Batch](), dict[int, int]()
    for seq in range(1, LENGTH + 1):
        records: list[Record] = []
        if seq == 1:
            records += [ParticipantSeen(name, "agent", "{}") for name in PEOPLE]
            records += [StoredMember(name, 1, 0) for name in PEOPLE]
            records += [ThreadCreated(no, THREADS[no]) for no in (1, 2)]
            records.append(StoredChannel("general", ""))
        thread = random.choice([no for no in THREADS if no <= 1 + seq // 3])
        if thread not in ends and thread > 2:
            records.append(ThreadCreated(thread, THREADS[thread]))
        if seq % 6 == 1:
            records.append(StoredMember("cat", 2, seq - 1))
        if seq % 6 == 4:
            records.append(MemberLeft("cat", 2, seq - 1))
        ends[thread] = ends.get(thread, 0) + 1
        batches.append(Batch(records, *entry(random, seq, thread, ends[thread], text)))
    return batches


def entry(
    random: Random, seq: int, thread: int, tseq: int, text: str
) -> tuple[list[MessageRow], list[Delivery]]:
    sender, to, other = random.sample(PEOPLE, 3)
    content = {
        "tseq": tseq,
        "mentions": [to],
        "interaction_id": f"i{1 + seq % 2}",
        "sent_at": f"2026-01-05T09:00:{seq:02}Z",
        "text": text,
    }
    body = json.dumps(content, separators=(",", ":")).encode()
    scope = thread if thread < 3 else None
    row = MessageRow(seq, thread, tseq, scope, sender, f"c{seq}", 1, None, None, None, body)
    named = with_recipient(row, Delivery(to, seq, "mention", "required"))
    return [named], [Delivery(other, seq, "person", None)]


def initial(state: StoreState) -> object:
    """The state that a hub starts with."""
    names = [each.id for each in state.participants]
    return state.head, names, state.threads, state.channels, state.members


async def all_reads(store: Store, head: int) -> object:
    """The results of every query of the log, in pages of several sizes."""
    results = list[object]()
    span = range(0, head + 1, 5)
    for limit in (2, 9):
        for after in span:
            results.append(await store.log(after, head, limit))
            for name in PEOPLE:
                results.append(await store.events(name, after, head, limit, after % 2 == 0))
                results.append(await store.read(MentionsOf(name, after + 1, limit)))
        for upto in (head, head - 1):
            results.append(await store.tails(list(THREADS), upto, limit))
        for no in THREADS:
            results += [await store.thread_page(no, before, limit) for before in (None, 2, 4)]
    for interaction in ("i1", "i2"):
        results += [await store.read(InteractionMessages(interaction, at, head)) for at in span]
    for seq in range(1, head + 2):
        results.append(await store.message(seq) if seq <= head else None)
        results.append(await store.read(MembersAt(2, seq)))
        results.append(await store.read(IsMember("cat", 2, seq)))
    wakes = await store.read(WakesAt(range(1, head + 1)))
    return results, [(key, wake.reason, wake.turn) for key, wake in wakes.items()]


async def all_pages(store: Store) -> Sequence[Sequence[bytes]]:
    """Each thread back to its start, in pages limited by size."""
    threads = []
    for no in THREADS:
        bodies = list((await store.tails([no], LENGTH + 3, 9))[no])
        while not bodies or json.loads(bodies[0])["tseq"] > 1:
            before = json.loads(bodies[0])["tseq"] if bodies else None
            older = await store.thread_page(no, before, 9)
            if not older:
                break
            bodies = [*older, *bodies]
        threads.append(bodies)
    return threads


async def appended(store: Store, batches: Sequence[Batch]) -> None:
    for batch in batches:
        await store.append(batch)


@pytest.mark.parametrize(("tail", "large"), [(1, False), (8192, False), (8192, True)])
@pytest.mark.behaviour("Q-13")
async def test_a_branch_reads_like_a_log_truncated_there_and_grows_independently(
    tmp_path: Path, tail: int, large: bool
) -> None:
    text = "y" * 100_000 if large else "x"
    base, batches = SqliteLocation(tmp_path / "base.db"), history(Random(tail), text)
    origin = SqliteStore(base, tail=tail)

    async def same(store: Store, head: int) -> object:
        return await (all_pages(store) if large else all_reads(store, head))

    async with opened(origin):
        await appended(origin, batches)
        before = await same(origin, LENGTH)
        for at in (1, 9, LENGTH):
            branch = BranchStore(base, at)
            shorter = SqliteStore(SqliteLocation(tmp_path / f"{at}.db"))
            async with opened(shorter):
                await appended(shorter, batches[:at])
            async with opened(shorter) as then, opened(branch) as now:
                assert initial(now) == initial(then)
                assert {each.cursor for each in now.participants} == {at}
                assert await same(branch, at) == await same(shorter, at)
                ends = {thread.no: thread.tseq for thread in now.threads}
                for seq in range(at + 1, at + 4):
                    thread = Random(seq).choice(list(ends))
                    ends[thread] += 1
                    more = Batch([], *entry(Random(-seq), seq, thread, ends[thread], text))
                    await appended(branch, [more])
                    await appended(shorter, [more])
                assert await same(branch, at + 3) == await same(shorter, at + 3)
        assert await same(origin, LENGTH) == before, "the original log is unchanged"
        with pytest.raises(UserError, match="has no message m25"):
            await BranchStore(base, LENGTH + 1).open()
    with pytest.raises(UserError, match="does not exist"):
        await BranchStore(SqliteLocation(tmp_path / "none.db"), 1).open()


@pytest.mark.behaviour("Q-13")
async def test_a_branch_has_earlier_ended_turns_and_only_its_last_message_open(
    tmp_path: Path,
) -> None:
    base, batches = SqliteLocation(tmp_path / "base.db"), history(Random(1), "x")
    woken = {batch.messages[0].seq: str(batch.messages[0].recipient) for batch in batches}
    origin, at = SqliteStore(base), 9
    times = {3: (4, 5), 7: (8, 60), 9: (30, 40)}  # start and end of each message's turn
    second = 1767603600
    async with opened(origin):
        await appended(origin, batches)
        for seq, (began, ended) in times.items():
            turn = f"{woken[seq]}-m{seq}"
            begun = TurnBegun(turn, woken[seq], second + began, "{}", (seq,))
            await origin.append(Batch([begun, TurnEnded(turn, second + ended, "{}")], [], []))
        for seq, answer in ((2, 4), (5, 12), (9, 11)):
            body = json.dumps({"state": "done", "answer": f"m{answer}", "outcome": "x"})
            request = RequestSaved(seq, "ann", "bob", "done", 0.0, body)
            await origin.append(Batch([request], [], []))
        branch = BranchStore(base, at)
        async with opened(branch) as state:
            ids = [f"{woken[seq]}-m{seq}" for seq in times]
            assert [turn.id for turn in await branch.read(TurnsById(ids))] == ids[:1]
            assert await branch.read(TurnById(ids[0])) is not None
            assert await branch.read(TurnById(ids[2])) is None
            assert await branch.original(TurnById(ids[2])) is not None
            opens = {name: await branch.read(OpenWakes(name, at)) for name in PEOPLE}
            assert {name: [wake.seq for wake in wakes] for name, wakes in opens.items()} == {
                name: [at] * (name == woken[at]) for name in PEOPLE
            }
            earlier = await branch.read(WakeOf(woken[7], 7))
            assert earlier is not None
            assert earlier.state == "ended"
            requests = [json.loads(request) for request in state.requests]
            assert requests == [{"state": "open", "answer": None, "outcome": ""}] * 2
            assert await branch.read(RequestAt(2)) is None
