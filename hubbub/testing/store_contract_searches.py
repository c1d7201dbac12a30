"""The part of the store contract that is about reading marks, receipts, mentions and interactions.

See hubbub.testing.store_contract.
"""

from __future__ import annotations

import json

from hubbub.network.ports import Store
from hubbub.network.queries import (
    InteractionMessages,
    MembersAt,
    MentionsOf,
    TurnsById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import MemberLeft, MessageRow, TurnBegun, TurnEnded
from hubbub.network.stored import StoredMember, StoredWake
from hubbub.testing.store_contract_log import StoreMaker
from hubbub.testing.store_rows import delivery, direct, message, wake, write

__all__ = ["SearchesContract", "spoken"]


def spoken(seq: int, *mentions: str, opened: int = 1, content: object = "words") -> MessageRow:
    """A log entry as the hub writes it, of the interaction that the message at `opened` opened."""
    named = {"mentions": list(mentions)} if mentions else {}
    text = {"id": f"m{seq}", "content": content, **named, "interaction_id": f"i{opened}"}
    written = json.dumps(text, separators=(",", ":"), ensure_ascii=False)
    return message(seq, text=written)


def _numbers(bodies: list[bytes]) -> list[int]:
    return [int(json.loads(body)["id"][1:]) for body in bodies]


async def _all_mentions(store: Store, participant: str, before: int, limit: int = 9) -> list[int]:
    """The positions of all mentions, page by page."""
    found: list[int] = []
    while before > 1:
        page = await store.read(MentionsOf(participant, before, limit))
        assert page.upto < before, "a page that leads nowhere"
        assert len(page.bodies) <= limit
        found += _numbers(list(page.bodies))
        before = page.upto
    return found


async def _whole_interaction(store: Store, name: str, after: int, upto: int) -> list[int]:
    """The positions of all messages of an interaction, page by page."""
    found: list[int] = []
    while after < upto:
        page = await store.read(InteractionMessages(name, after, upto))
        assert after < page.upto <= upto, "a page that leads nowhere"
        found += _numbers([body for _, body in page.found])
        after = page.upto
    return found


class SearchesContract(StoreMaker):
    """What is asked now and then, about single messages or the whole log."""

    async def test_wakes_of_several_messages_are_found_together(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 5)]
        wakes = [wake("bob", 1), wake("carol", 1), delivery("dora", 1), wake("bob", 3)]
        await write(store, messages=rows, deliveries=[*wakes, wake("bob", 4)])
        await write(store, TurnBegun("bob-m1", "bob", 5.0, "{}", (1, 3)))
        found = await store.read(WakesAt([3, 1, 2, 3]))
        assert list(found) == [(1, "bob"), (1, "carol"), (1, "dora"), (3, "bob")]
        running = StoredWake("direct", "required", "bob-m3", "running", "bob-m1")
        assert found[3, "bob"] == running
        assert found[1, "carol"] == StoredWake("direct", "required", "carol-m1", "pending", None)
        assert found[1, "dora"] == StoredWake("person", None, None, None, None)
        assert await store.read(WakeOf("bob", 3)) == running
        await write(store, TurnEnded("bob-m1", 6.0, "{}"))
        assert (await store.read(WakesAt([3])))[3, "bob"] == running._replace(state="ended")
        assert await store.read(WakesAt([])) == {}
        assert await store.read(WakesAt([9])) == {}

    async def test_turns_are_found_by_their_ids(self, store: Store) -> None:
        for name in ("c", "a", "b"):
            await write(store, TurnBegun(name, "bob", 5.0, "{}", ()))
        found = await store.read(TurnsById(["a", "b", "c", "other"]))
        assert [turn.id for turn in found] == ["c", "a", "b"]
        assert await store.read(TurnsById([])) == []

    async def test_who_were_members_at_a_position(self, store: Store) -> None:
        joined = [StoredMember(name, 4, 2) for name in ("bob", "carol")]
        await write(store, *joined, StoredMember("dora", 5, 0), MemberLeft("bob", 4, 6))
        await write(store, StoredMember("bob", 4, 8))
        found = {seq: set(await store.read(MembersAt(4, seq))) for seq in (2, 3, 6, 7, 9)}
        both = {"bob", "carol"}
        assert found == {2: set(), 3: both, 6: both, 7: {"carol"}, 9: both}

    async def test_mentions_are_found_newest_first(self, store: Store) -> None:
        rows = [spoken(seq, *(["bob"] if seq % 3 == 0 else ["carol"])) for seq in range(1, 14)]
        named = [delivery(name, seq) for seq in range(1, 14) for name in ("bob", "carol")]
        await write(store, messages=rows, deliveries=named)
        assert await _all_mentions(store, "bob", 99) == [12, 9, 6, 3]
        assert await _all_mentions(store, "bob", 12, limit=2) == [9, 6, 3]
        page = await store.read(MentionsOf("bob", 99, 2))
        assert _numbers(list(page.bodies)) == [12, 9]
        assert 6 < page.upto <= 9
        assert (await store.read(MentionsOf("bob", 3, 9))).upto == 1
        assert await _all_mentions(store, "dora", 99) == []

    async def test_a_mention_counts_where_it_arrived_and_is_no_quotation(
        self, store: Store
    ) -> None:
        quoting = {"mentions": ["bob"], "as": '"mentions":["bob"]'}
        rows = [
            spoken(1, "bob"),
            spoken(2, content=quoting),
            spoken(3, "bobby"),
            spoken(4, "carol", content='"bob"'),
            spoken(5, "carol", "bob"),
        ]
        named = [delivery("bob", seq) for seq in range(2, 6)]
        await write(store, messages=rows, deliveries=[*named, delivery("carol", 1)])
        assert await _all_mentions(store, "bob", 9) == [5]

    async def test_an_interaction_is_read_forward(self, store: Store) -> None:
        rows = [spoken(seq, opened=seq % 3 + 1) for seq in range(1, 15)]
        await write(store, messages=rows)
        assert await _whole_interaction(store, "i2", 0, 14) == [1, 4, 7, 10, 13]
        assert await _whole_interaction(store, "i2", 4, 10) == [7, 10]
        assert await _whole_interaction(store, "i9", 0, 14) == []
        page = await store.read(InteractionMessages("i2", 0, 14))
        assert page.found[0] == (1, rows[0].body)
        assert (await store.read(InteractionMessages("i2", 14, 14))).upto == 14

    async def test_what_quotes_an_interaction_does_not_belong_to_it(self, store: Store) -> None:
        rows = [
            spoken(1),
            spoken(2, opened=2, content={"interaction_id": "i1"}),
            spoken(3, opened=10),
            spoken(4, opened=4, content='"interaction_id":"i1"'),
        ]
        await write(store, messages=rows)
        assert await _whole_interaction(store, "i1", 0, 4) == [1]

    async def test_pages_of_large_messages_are_short_and_complete(self, store: Store) -> None:
        rows = [spoken(seq, "bob", content="x" * 60_000) for seq in range(1, 13)]
        await write(store, messages=rows, deliveries=[delivery("bob", s) for s in range(1, 13)])
        page = await store.read(MentionsOf("bob", 99, 12))
        assert 1 <= len(page.bodies) < 8
        assert await _all_mentions(store, "bob", 99) == list(range(12, 0, -1))
        part = await store.read(InteractionMessages("i1", 0, 12))
        assert 1 <= len(part.found) < 8
        assert await _whole_interaction(store, "i1", 0, 12) == list(range(1, 13))

    async def test_a_participant_of_many_messages_is_read_to_the_end(self, store: Store) -> None:
        for first in range(1, 3001, 1000):
            await store.append(direct(first, first + 999))
        await write(store, messages=[spoken(3001, "bob")], deliveries=[delivery("bob", 3001)])
        assert await _all_mentions(store, "bob", 2**62) == [3001]
        assert await _whole_interaction(store, "i1", 0, 3001) == [3001]
