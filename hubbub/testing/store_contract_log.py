"""The part of the store contract about messages: delivery, history, mentions, interactions. See
hubbub.testing.store_contract."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from hubbub.network.ports import DuplicateCids, Store
from hubbub.network.queries import (
    InteractionMessages,
    IsMember,
    MembersAt,
    MentionsOf,
    SettledCall,
    TurnsById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import (
    CallSettled,
    MemberLeft,
    MessageRow,
    ParticipantSeen,
    TurnBegun,
    TurnEnded,
)
from hubbub.network.stored import Settled, StoredEvent, StoredMember, StoredWake
from hubbub.testing.store_rows import (
    body,
    delivery,
    direct,
    message,
    opened,
    seqs,
    wake,
    write,
)

__all__ = [
    "EventsContract",
    "HistoryContract",
    "SearchesContract",
    "StoreMaker",
    "entry",
]


class StoreMaker:
    """Provides the store under test."""

    def new_store(self, folder: Path) -> Store:
        """A store that is not open."""
        raise NotImplementedError

    def refusing(self, store: Store) -> AbstractAsyncContextManager[None]:
        """A context in which the disk has no room for another 100 KB."""
        raise NotImplementedError

    @pytest.fixture
    async def store(self, tmp_path: Path) -> AsyncIterator[Store]:
        store = self.new_store(tmp_path)
        async with opened(store):
            yield store


class EventsContract(StoreMaker):
    """The messages that reach a participant."""

    async def test_a_message_reaches_its_recipients_or_the_members_of_its_scope_only(
        self, store: Store
    ) -> None:
        await write(
            store,
            StoredMember("bob", 4, 0),
            messages=[
                message(1, tseq=7),
                message(2, thread=5, scope=4),
                message(3, thread=4, scope=4),
            ],
            deliveries=[wake("bob", 1), wake("bob", 3, reply="optional")],
        )
        assert await store.events("bob", 0, 9, 9, own=False) == [
            StoredEvent(1, 7, "alice", body(1), "direct", "required", "bob-m1"),
            StoredEvent(2, 2, "alice", body(2), None, None, None),
            StoredEvent(3, 3, "alice", body(3), "direct", "optional", "bob-m3"),
        ]
        assert await store.events("carol", 0, 9, 9, own=True) == []

    async def test_own_messages_are_left_out_unless_asked_for(self, store: Store) -> None:
        await write(
            store,
            StoredMember("alice", 4, 0),
            messages=[message(1), message(2, thread=4, scope=4), message(3, sender="bob")],
            deliveries=[delivery("alice", 1), delivery("alice", 3)],
        )
        assert seqs(await store.events("alice", 0, 9, 9, own=False)) == [3]
        assert seqs(await store.events("alice", 0, 9, 9, own=True)) == [1, 2, 3]

    async def test_a_membership_begins_after_since_and_ends_with_until(self, store: Store) -> None:
        rows = [message(seq, thread=4, scope=4) for seq in range(1, 9)]
        await write(store, messages=rows[:2])
        await write(store, StoredMember("bob", 4, 2), messages=rows[2:4])
        await write(store, MemberLeft("bob", 4, 4), messages=rows[4:6])
        await write(store, StoredMember("bob", 4, 6), messages=rows[6:])
        assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [3, 4, 7, 8]
        reached = [await store.read(IsMember("bob", 4, seq)) for seq in range(1, 9)]
        assert reached == [False, False, True, True, False, False, True, True]

    async def test_rejoining_without_a_gap_continues_the_membership(self, store: Store) -> None:
        rows = [message(seq, thread=4, scope=4) for seq in (1, 2)]
        await write(store, StoredMember("bob", 4, 0), MemberLeft("bob", 4, 0))
        await write(store, StoredMember("bob", 4, 0), messages=rows)
        await write(store, StoredMember("bob", 4, 2))
        assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1, 2]
        await write(store, MemberLeft("bob", 4, 1))
        assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1]

    async def test_memberships_are_separate_by_participant_and_scope(self, store: Store) -> None:
        await write(
            store,
            StoredMember("bob", 4, 0),
            StoredMember("bob", 5, 0),
            StoredMember("carol", 4, 0),
            MemberLeft("bob", 4, 0),
            messages=[message(1, thread=4, scope=4), message(2, thread=5, scope=5)],
        )
        assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [2]
        assert seqs(await store.events("carol", 0, 9, 9, own=False)) == [1]

    async def test_pages_together_are_all_events(self, store: Store) -> None:
        """Deliveries and two scopes alternate, in several batches, with own messages."""
        await write(store, StoredMember("bob", 4, 0), StoredMember("bob", 5, 10))
        for first in range(1, 61, 12):
            span = range(first, first + 12)
            await write(
                store,
                messages=[
                    message(
                        seq,
                        thread=seq % 3 + 3,
                        scope=None if seq % 3 == 0 else seq % 3 + 3,
                        sender="bob" if seq % 7 == 0 else "alice",
                    )
                    for seq in span
                ],
                deliveries=[delivery("bob", seq) for seq in span if seq % 3 == 0],
            )
        expected = [s for s in range(1, 61) if s % 7 and (s % 3 != 2 or s > 10)]
        for limit in (1, 5, 64):
            paged: list[int] = []
            while page := await store.events("bob", paged[-1] if paged else 0, 60, limit, False):
                assert len(page) <= limit
                paged += seqs(page)
            assert paged == expected

    async def test_a_page_of_own_messages_is_not_the_end(self, store: Store) -> None:
        await write(
            store,
            StoredMember("bob", 4, 0),
            messages=[message(seq, thread=4, scope=4, sender="bob") for seq in range(1, 9)],
        )
        await write(store, messages=[message(seq, thread=4, scope=4) for seq in (9, 10)])
        assert seqs(await store.events("bob", 0, 99, 2, own=False)) == [9, 10]
        assert seqs(await store.events("bob", 0, 9, 2, own=False)) == [9]  # the end is inclusive
        assert seqs(await store.events("bob", 9, 99, 2, own=False)) == [10]  # the start is not

    async def test_the_log_is_every_message_without_wake_columns(self, store: Store) -> None:
        await write(store, messages=[message(1), message(2)], deliveries=[wake("bob", 1)])
        await write(store, messages=[message(3, thread=4, scope=4)])
        assert await store.log(0, 1, 9) == [StoredEvent(1, 1, "alice", body(1), None, None, None)]
        assert seqs(await store.log(1, 3, 9)) == [2, 3]
        assert seqs(await store.log(0, 3, 2)) == [1, 2]

    async def test_concurrent_reads_see_whole_batches(self, store: Store) -> None:
        async def fill() -> None:
            for first in range(1, 200, 8):
                await store.append(direct(first, first + 7))

        filling = asyncio.create_task(fill())
        while not filling.done():
            stored = seqs(await store.events("bob", 0, 1000, 1000, own=False))
            assert stored == list(range(1, len(stored) + 1))
            assert len(stored) % 8 == 0
        await filling
        assert len(await store.events("bob", 0, 1000, 1000, own=False)) == 200


class HistoryContract(StoreMaker):
    """Threads, single messages, and results of earlier calls."""

    async def test_a_page_of_a_thread_ends_before_the_given_position(self, store: Store) -> None:
        for seq in range(1, 13):
            await write(store, messages=[message(seq, thread=seq % 2, tseq=(seq + 1) // 2)])
        assert await store.thread_page(1, None, 2) == [body(9), body(11)]
        assert await store.thread_page(1, 5, 2) == [body(5), body(7)]
        assert await store.thread_page(1, 2, 9) == [body(1)]
        assert await store.thread_page(1, 1, 9) == []
        assert await store.thread_page(77, None, 9) == []
        await write(store, messages=[message(13, text='{"nul":"\\u0000"}')])
        assert await store.message(13) == b'{"nul":"\\u0000"}'
        assert (await store.message(1), await store.message(14)) == (body(1), None)

    async def test_pages_of_large_messages_are_cut_to_the_newest(self, store: Store) -> None:
        large = [f'"{seq}{"x" * 60_000}"' for seq in range(1, 13)]
        await write(store, messages=[message(s, text=large[s - 1]) for s in range(1, 13)])
        tails = await store.tails([1], 12, 10)
        for page in (await store.thread_page(1, None, 10), tails[1]):
            assert 60_000 < sum(map(len, page)) <= 300_000
            assert list(page) == [text.encode() for text in large[-len(page) :]]
        await write(store, messages=[message(13, text=f'"{"y" * 400_000}"')])
        assert len(await store.thread_page(1, None, 10)) == 1

    async def test_tails_are_the_last_messages_up_to_a_position(self, store: Store) -> None:
        for seq in range(1, 13):
            await write(store, messages=[message(seq, thread=seq % 2, tseq=(seq + 1) // 2)])
        assert await store.tails([0, 1, 7], 12, 2) == {
            0: [body(10), body(12)],
            1: [body(9), body(11)],
            7: [],
        }
        assert await store.tails([0, 1], 6, 2) == {0: [body(4), body(6)], 1: [body(3), body(5)]}
        assert await store.tails([0, 1], 1, 2) == {0: [], 1: [body(1)]}
        assert await store.tails([], 12, 2) == {}

    async def test_every_tail_of_a_long_thread_is_complete(self, store: Store) -> None:
        for first in range(1, 41, 5):
            await store.append(direct(first, first + 4))
        for upto in range(41):
            expected = [body(seq) for seq in range(max(1, upto - 2), upto + 1)]
            assert await store.tails([1], upto, 3) == {1: expected}

    async def test_a_cid_finds_the_message_or_the_result_of_its_sender(self, store: Store) -> None:
        for seq in range(1, 6):
            await write(store, messages=[message(seq, cid=f"c{seq}", digest=seq * 10)])
        await write(store, messages=[message(6, sender="bob", cid="c1")])
        await write(store, CallSettled("carol", "c1", 3_000_000_000, '{"done":true}'))
        assert await store.read(SettledCall("alice", "c1")) == Settled(10, 1, None)
        assert await store.read(SettledCall("alice", "c5")) == Settled(50, 5, None)
        assert await store.read(SettledCall("bob", "c1")) == Settled(0, 6, None)
        answer = Settled(3_000_000_000, None, b'{"done":true}')
        assert await store.read(SettledCall("carol", "c1")) == answer
        assert await store.read(SettledCall("alice", "c9")) is None

    async def test_repeated_cids_are_reported_and_nothing_is_written(self, store: Store) -> None:
        await write(
            store,
            CallSettled("alice", "call", 1, "1"),
            messages=[message(1, cid="said"), message(2, sender="bob", cid="said")],
        )
        repeated = [message(3, cid="said"), message(4, cid="call"), message(5, cid="new")]
        with pytest.raises(DuplicateCids) as refused:
            await write(store, ParticipantSeen("x", "agent", "{}"), messages=repeated)
        assert refused.value.pairs == {("alice", "said"), ("alice", "call")}
        assert await store.message(3) is None
        assert await store.read(SettledCall("alice", "new")) is None

    async def test_a_call_must_not_repeat_the_cid_of_a_message_or_call(self, store: Store) -> None:
        for seq in range(1, 6):
            await write(store, messages=[message(seq, cid=f"c{seq}")])
        await write(store, CallSettled("alice", "call", 1, "1"))
        for cid in ("c1", "c5", "call"):
            with pytest.raises(DuplicateCids) as refused:
                await write(store, CallSettled("alice", cid, 2, "2"))
            assert refused.value.pairs == {("alice", cid)}
        assert await store.read(SettledCall("alice", "call")) == Settled(1, None, b"1")

    async def test_a_batch_that_contradicts_the_log_is_refused_whole(self, store: Store) -> None:
        await write(store, messages=[message(1)])
        with pytest.raises(ValueError, match="contradicts"):
            await write(store, messages=[message(2), message(1)])
        with pytest.raises(ValueError, match="contradicts"):
            await write(store, messages=[message(2, cid="c"), message(3, cid="c")])
        assert seqs(await store.log(0, 9, 9)) == [1]


# Mentions and interactions ----------------------------------------------------------------------


def entry(seq: int, *mentions: str, opened: int = 1, content: object = "text") -> MessageRow:
    """A log entry as the hub writes it, in the interaction opened by the message at `opened`."""
    mentioned = {"mentions": list(mentions)} if mentions else {}
    fields = {"id": f"m{seq}", "content": content, **mentioned, "interaction_id": f"i{opened}"}
    return message(seq, text=json.dumps(fields, separators=(",", ":"), ensure_ascii=False))


def _numbers(bodies: list[bytes]) -> list[int]:
    return [int(json.loads(body)["id"][1:]) for body in bodies]


async def _all_mentions(store: Store, participant: str, before: int, limit: int = 9) -> list[int]:
    """The positions of all mentions, read in pages."""
    positions: list[int] = []
    while before > 1:
        page = await store.read(MentionsOf(participant, before, limit))
        assert page.upto < before, "the page makes no progress"
        assert len(page.bodies) <= limit
        positions += _numbers(list(page.bodies))
        before = page.upto
    return positions


async def _whole_interaction(store: Store, name: str, after: int, upto: int) -> list[int]:
    """The positions of all messages of an interaction, read in pages."""
    positions: list[int] = []
    while after < upto:
        page = await store.read(InteractionMessages(name, after, upto))
        assert after < page.upto <= upto, "the page makes no progress"
        positions += _numbers([body for _, body in page.rows])
        after = page.upto
    return positions


class SearchesContract(StoreMaker):
    """Rare queries, about single messages or the whole log."""

    async def test_wakes_of_several_messages_are_read_together(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 5)]
        wakes = [wake("bob", 1), wake("carol", 1), delivery("dora", 1), wake("bob", 3)]
        await write(store, messages=rows, deliveries=[*wakes, wake("bob", 4)])
        await write(store, TurnBegun("bob-m1", "bob", 5.0, "{}", (1, 3)))
        stored = await store.read(WakesAt([3, 1, 2, 3]))
        assert list(stored) == [(1, "bob"), (1, "carol"), (1, "dora"), (3, "bob")]
        running = StoredWake("direct", "required", "bob-m3", "running", "bob-m1")
        assert stored[3, "bob"] == running
        assert stored[1, "carol"] == StoredWake("direct", "required", "carol-m1", "pending", None)
        assert stored[1, "dora"] == StoredWake("person", None, None, None, None)
        assert await store.read(WakeOf("bob", 3)) == running
        await write(store, TurnEnded("bob-m1", 6.0, "{}"))
        assert (await store.read(WakesAt([3])))[3, "bob"] == running._replace(state="ended")
        assert await store.read(WakesAt([])) == {}
        assert await store.read(WakesAt([9])) == {}

    async def test_turns_are_read_by_id(self, store: Store) -> None:
        for name in ("c", "a", "b"):
            await write(store, TurnBegun(name, "bob", 5.0, "{}", ()))
        turns = await store.read(TurnsById(["a", "b", "c", "other"]))
        assert [turn.id for turn in turns] == ["c", "a", "b"]
        assert await store.read(TurnsById([])) == []

    async def test_the_members_at_a_position_are_listed(self, store: Store) -> None:
        joined = [StoredMember(name, 4, 2) for name in ("bob", "carol")]
        await write(store, *joined, StoredMember("dora", 5, 0), MemberLeft("bob", 4, 6))
        await write(store, StoredMember("bob", 4, 8))
        members = {seq: set(await store.read(MembersAt(4, seq))) for seq in (2, 3, 6, 7, 9)}
        both = {"bob", "carol"}
        assert members == {2: set(), 3: both, 6: both, 7: {"carol"}, 9: both}

    async def test_mentions_are_listed_newest_first(self, store: Store) -> None:
        rows = [entry(seq, *(["bob"] if seq % 3 == 0 else ["carol"])) for seq in range(1, 14)]
        delivered = [delivery(name, seq) for seq in range(1, 14) for name in ("bob", "carol")]
        await write(store, messages=rows, deliveries=delivered)
        assert await _all_mentions(store, "bob", 99) == [12, 9, 6, 3]
        assert await _all_mentions(store, "bob", 12, limit=2) == [9, 6, 3]
        page = await store.read(MentionsOf("bob", 99, 2))
        assert _numbers(list(page.bodies)) == [12, 9]
        assert 6 < page.upto <= 9
        assert (await store.read(MentionsOf("bob", 3, 9))).upto == 1
        assert await _all_mentions(store, "dora", 99) == []

    async def test_only_delivered_mentions_count_and_quotations_do_not(self, store: Store) -> None:
        quoting = {"mentions": ["bob"], "as": '"mentions":["bob"]'}
        rows = [
            entry(1, "bob"),
            entry(2, content=quoting),
            entry(3, "bobby"),
            entry(4, "carol", content='"bob"'),
            entry(5, "carol", "bob"),
        ]
        delivered = [delivery("bob", seq) for seq in range(2, 6)]
        await write(store, messages=rows, deliveries=[*delivered, delivery("carol", 1)])
        assert await _all_mentions(store, "bob", 9) == [5]

    async def test_an_interaction_is_read_forward(self, store: Store) -> None:
        rows = [entry(seq, opened=seq % 3 + 1) for seq in range(1, 15)]
        await write(store, messages=rows)
        assert await _whole_interaction(store, "i2", 0, 14) == [1, 4, 7, 10, 13]
        assert await _whole_interaction(store, "i2", 4, 10) == [7, 10]
        assert await _whole_interaction(store, "i9", 0, 14) == []
        page = await store.read(InteractionMessages("i2", 0, 14))
        assert page.rows[0] == (1, rows[0].body)
        assert (await store.read(InteractionMessages("i2", 14, 14))).upto == 14

    async def test_a_message_that_quotes_an_interaction_does_not_join_it(
        self, store: Store
    ) -> None:
        rows = [
            entry(1),
            entry(2, opened=2, content={"interaction_id": "i1"}),
            entry(3, opened=10),
            entry(4, opened=4, content='"interaction_id":"i1"'),
        ]
        await write(store, messages=rows)
        assert await _whole_interaction(store, "i1", 0, 4) == [1]

    async def test_pages_of_large_messages_are_short_and_complete(self, store: Store) -> None:
        rows = [entry(seq, "bob", content="x" * 60_000) for seq in range(1, 13)]
        await write(store, messages=rows, deliveries=[delivery("bob", s) for s in range(1, 13)])
        page = await store.read(MentionsOf("bob", 99, 12))
        assert 1 <= len(page.bodies) < 8
        assert await _all_mentions(store, "bob", 99) == list(range(12, 0, -1))
        part = await store.read(InteractionMessages("i1", 0, 12))
        assert 1 <= len(part.rows) < 8
        assert await _whole_interaction(store, "i1", 0, 12) == list(range(1, 13))

    async def test_a_long_log_is_searched_to_the_end(self, store: Store) -> None:
        for first in range(1, 3001, 1000):
            await store.append(direct(first, first + 999))
        await write(store, messages=[entry(3001, "bob")], deliveries=[delivery("bob", 3001)])
        assert await _all_mentions(store, "bob", 2**62) == [3001]
        assert await _whole_interaction(store, "i1", 0, 3001) == [3001]
