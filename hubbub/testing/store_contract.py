"""The contract of `Store`, as tests:

    class TestMyStore(StoreContract):
        def new_store(self, folder): return MyStore(folder / "log")
        def refusing(self, store): return full_disk(store)

`DurableStoreContract` adds tests of persistence, where all stores that `new_store` returns for one
folder have the same data. The tests need pytest with pytest-asyncio in auto mode.
"""

from __future__ import annotations

from pathlib import Path
from typing import get_type_hints

from hubbub.network.queries import (
    LatestTurns,
    MemoryValue,
    MissingParts,
    OpenWakes,
    PendingWakes,
    PromptsOf,
    SettledCall,
    TokenHashes,
    TokenOwner,
    TokensByParticipant,
    TurnById,
    WakeOf,
)
from hubbub.network.stored import StoredChannel, StoredMark, StoredMember

try:
    import pytest
except ImportError as error:
    raise ImportError("hubbub.testing.store_contract needs pytest: pip install pytest") from error

from hubbub.errors import StoreUnavailable
from hubbub.network import queries
from hubbub.network.ports import DuplicateCids, Store
from hubbub.network.records import (
    DIGEST,
    Batch,
    CallSettled,
    CursorMoved,
    MemberLeft,
    MemoryDeleted,
    MemoryWritten,
    ParticipantSeen,
    PartStored,
    StepRecorded,
    ThreadCreated,
    TokenAdded,
    TokenRevoked,
    TurnBegun,
    TurnEnded,
    TurnSent,
    WakesSettled,
    WakesTaken,
)
from hubbub.network.running_turns import NO_LIVES
from hubbub.network.stored import (
    Settled,
    StoredKey,
    StoredParticipant,
    StoredThread,
    StoredWake,
)
from hubbub.testing.store_contract_control import (
    ControlContract,
    DurableControlContract,
    MemoryContract,
)
from hubbub.testing.store_contract_log import (
    EventsContract,
    HistoryContract,
    SearchesContract,
    StoreMaker,
)
from hubbub.testing.store_contract_mods import DurableModsContract, ModsContract
from hubbub.testing.store_rows import (
    body,
    delivery,
    direct,
    message,
    opened,
    seqs,
    wake,
    wake_states,
    write,
)

__all__ = ["DurableStoreContract", "StoreContract"]


class TurnsContract(StoreMaker):
    """Wakes, and the turns that answer them."""

    async def test_a_wake_is_pending_until_its_turn_has_ended(self, store: Store) -> None:
        wakes = [wake("bob", 1), wake("bob", 2), delivery("bob", 3), wake("cy", 4), wake("bob", 5)]
        await write(store, messages=[message(seq) for seq in range(1, 6)], deliveries=wakes)
        assert await store.read(WakeOf("bob", 1)) == StoredWake(
            "direct", "required", "bob-m1", "pending"
        )
        assert await store.read(WakeOf("bob", 3)) == StoredWake("person", None, None, None)
        assert (await store.read(WakeOf("bob", 4)), await store.read(WakeOf("carol", 1))) == (
            None,
            None,
        )
        first, *_ = await store.read(PendingWakes("bob", 9))
        assert first == (1, body(1), "direct", "required", "bob-m1", None)
        await write(store, TurnBegun("bob-m2", "bob", 5.0, "{}", (2,)))
        assert await wake_states(store, "bob", [1, 2]) == ["pending", "running"]
        open_wakes = [(1, None), (2, "bob-m2"), (5, None)]
        pending = await store.read(PendingWakes("bob", 9))
        assert [(row.seq, row.started) for row in pending] == open_wakes
        assert await store.read(OpenWakes("bob", 9)) == open_wakes
        assert [row.seq for row in await store.read(PendingWakes("bob", 2))] == [1, 2]
        assert await store.read(OpenWakes("bob", 4)) == open_wakes[:2]
        ended = (TurnEnded("bob-m2", 6.0, "{}"), WakesSettled("bob", 1))
        await write(store, *ended, messages=[message(6)], deliveries=[wake("bob", 6)])
        assert await wake_states(store, "bob", [1, 2]) == ["ended", "ended"]
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [5, 6]
        assert await store.read(OpenWakes("bob", 9)) == [(5, None), (6, None)]
        assert [
            *await store.read(OpenWakes("dan", 9)),
            *await store.read(PendingWakes("dan", 9)),
        ] == []

    async def test_settling_wakes_spares_those_of_a_running_turn(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 6)]
        await write(store, messages=rows, deliveries=[wake("bob", s) for s in range(1, 6)])
        await write(store, TurnBegun("bob-m2", "bob", 5.0, "{}", (2,)))
        await write(store, WakesSettled("bob", 3))
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [2, 4, 5]
        states = await wake_states(store, "bob", range(1, 6))
        assert states == ["ended", "running", "ended", "pending", "pending"]
        await write(store, WakesSettled("bob", 1))
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [2, 4, 5]
        assert [row.seq for row in await store.read(PendingWakes("bob", 1))] == []
        await write(store, TurnEnded("bob-m2", 6.0, "{}"))
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [4, 5]

    async def test_a_turn_that_ends_settles_its_own_wakes_only(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 7)]
        await write(store, messages=rows, deliveries=[wake("bob", s) for s in range(1, 7)])
        await write(store, TurnBegun("bob-m4", "bob", 5.0, "{}", (4, 6)))
        await write(store, TurnBegun("bob-m1", "bob", 5.0, "{}", (1,)))
        await write(store, TurnEnded("bob-m4", 6.0, "{}"))
        pending = [(row.seq, row.started) for row in await store.read(PendingWakes("bob", 9))]
        assert pending == [(1, "bob-m1"), (2, None), (3, None), (5, None)]
        await write(store, TurnEnded("bob-m1", 6.0, "{}"))
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [2, 3, 5]

    async def test_a_running_turn_can_take_more_wakes(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 4)]
        await write(store, messages=rows, deliveries=[wake("bob", s) for s in range(1, 4)])
        await write(store, TurnBegun("bob-m1", "bob", 5.0, "{}", (1,)))
        await write(store, WakesTaken("bob-m1", "bob", (3,)))
        await write(store, WakesTaken("bob-m1", "bob", (3,)))
        pending = [(row.seq, row.started) for row in await store.read(PendingWakes("bob", 9))]
        assert pending == [(1, "bob-m1"), (2, None), (3, "bob-m1")]
        stored = await store.read(TurnById("bob-m1"))
        assert stored is not None
        assert stored.attempts == 1
        await write(store, TurnEnded("bob-m1", 6.0, "{}"))
        assert await wake_states(store, "bob", [1, 2, 3]) == ["ended", "pending", "ended"]

    async def test_each_agent_woken_by_a_message_takes_its_own_wake(self, store: Store) -> None:
        rows = [message(seq) for seq in range(1, 4)]
        wakes = [wake(agent, seq) for seq in range(1, 4) for agent in ("bob", "carol")]
        await write(store, messages=rows, deliveries=wakes)
        await write(store, TurnBegun("carol-m1", "carol", 5.0, "{}", (1, 2)))
        await write(store, TurnBegun("bob-m2", "bob", 5.0, "{}", (2,)))
        await write(store, TurnEnded("bob-m2", 6.0, "{}"), TurnEnded("carol-m1", 6.0, "{}"))
        assert [row.seq for row in await store.read(PendingWakes("bob", 9))] == [1, 3]
        assert [row.seq for row in await store.read(PendingWakes("carol", 9))] == [3]

    async def test_a_wake_belongs_to_the_turn_that_took_it_last(self, store: Store) -> None:
        await write(store, messages=[message(1)], deliveries=[wake("bob", 1)])
        await write(store, TurnBegun("first", "bob", 5.0, "{}", (1,)))
        await write(store, TurnBegun("second", "bob", 6.0, "{}", (1,)))
        await write(store, TurnEnded("first", 7.0, "{}"))
        assert [row.started for row in await store.read(PendingWakes("bob", 9))] == ["second"]

    async def test_a_turn_is_read_back_with_the_latest_version_of_each_part(
        self, store: Store
    ) -> None:
        await write(store, TurnBegun("t", "bob", 5.5, '"a"', ()), StepRecorded("t", 2, '"two"'))
        await write(store, StepRecorded("t", 1, '"one"'))
        await write(store, TurnSent("t", 8), TurnSent("t", 7), TurnSent("t", 8))
        turn = await store.read(TurnById("t"))
        assert turn is not None
        assert (turn.id, turn.agent, turn.attempts, turn.start) == ("t", "bob", 1, b'"a"')
        assert (turn.ended_at, turn.end) == (None, None)
        await write(store, TurnBegun("t", "bob", 6.0, '{"model":"m"}', ()))
        await write(store, StepRecorded("t", 2, '"two, better"'))
        await write(store, TurnEnded("t", 9.5, '"first"'))
        await write(store, TurnEnded("t", 9.9, '"second"'), TurnEnded("unknown", 7.0, "{}"))
        turn = await store.read(TurnById("t"))
        assert turn is not None
        assert (turn.attempts, turn.started_at, turn.start) == (2, 5.5, b'{"model":"m"}')
        assert (list(turn.steps), list(turn.sent)) == ([b'"one"', b'"two, better"'], [7, 8])
        assert (turn.ended_at, turn.end) == (9.5, b'"first"'), "a second end has no effect"
        assert await store.read(TurnById("unknown")) is None

    async def test_prompt_parts_are_stored_once_per_agent_and_read_as_one_text(
        self, store: Store
    ) -> None:
        one, two, three = (bytes([n]) * DIGEST for n in (1, 2, 3))
        stored = [PartStored("bob", one, "é<"), PartStored("bob", two, "b")]
        begun = TurnBegun("t", "bob", 5.5, "{}", (), NO_LIVES, two, one + two + one)
        await write(store, *stored, begun)
        again = TurnBegun("u", "bob", 5.5, "{}", (), NO_LIVES, b"", two)
        await write(store, PartStored("bob", two, "not stored"), again)
        await write(store, PartStored("carol", two, "hers"))
        assert await store.read(PromptsOf("t")) == ("b", "é<bé<")
        assert await store.read(PromptsOf("u")) == (None, "b")
        assert await store.read(PromptsOf("unknown")) == (None, None)
        four = bytes([4]) * DIGEST
        endless = TurnBegun("v", "bob", 5.5, "{}", (), NO_LIVES, b"", four * 1024)
        await write(store, PartStored("bob", four, "long " * 10_000), endless)
        _, prompt = await store.read(PromptsOf("v"))
        assert prompt is not None
        assert len(prompt) < 5 * 1024**2, "a part repeated a thousand times does not fill memory"
        assert list(await store.read(MissingParts("bob", [one, three, two]))) == [three]
        assert list(await store.read(MissingParts("carol", [one, two]))) == [one]

    async def test_turns_are_paged_in_the_order_in_which_they_began(self, store: Store) -> None:
        for number, agent in enumerate(["bob", "carol", "bob", "carol"]):
            await write(store, TurnBegun(f"t{number}", agent, 9.0 - number, "{}", ()))
        await write(store, TurnBegun("t0", "bob", 99.0, "{}", ()))
        latest = [turn.id for turn in await store.read(LatestTurns(None, 9))]
        assert latest == ["t3", "t2", "t1", "t0"], "the times do not matter"
        assert [turn.id for turn in await store.read(LatestTurns("bob", 1))] == ["t2"]
        assert await store.read(LatestTurns("dora", 9)) == []
        assert [turn.id for turn in await store.read(LatestTurns(None, 2, "t3"))] == ["t2", "t1"]
        assert [turn.id for turn in await store.read(LatestTurns("bob", 9, "t3"))] == ["t2", "t0"]
        assert await store.read(LatestTurns(None, 9, "t0")) == []
        assert await store.read(LatestTurns(None, 9, "unknown")) == []


class FailureContract(StoreMaker):
    """Tokens, and failures of the disk."""

    async def test_added_tokens_are_listed_until_revoked(self, store: Store) -> None:
        assert await store.read(TokensByParticipant()) == {}
        added = (("c", "carol"), ("b", "bob"), ("a", "bob"), ("e", "dan"))
        await write(store, *(TokenAdded(sha * 64, name) for sha, name in added))
        assert set(await store.read(TokenHashes("bob"))) == {"a" * 64, "b" * 64}
        await write(store, TokenRevoked("bob"), TokenAdded("d" * 64, "bob"), TokenRevoked("dan"))
        assert list(await store.read(TokenHashes("bob"))) == ["d" * 64]
        assert list(await store.read(TokenHashes("carol"))) == ["c" * 64]
        assert await store.read(TokenOwner("c" * 64)) == "carol"
        assert await store.read(TokenOwner("a" * 64)) is None
        assert list((await store.read(TokensByParticipant())).items()) == [("bob", 1), ("carol", 1)]

    async def test_every_query_has_an_answer(self, store: Store) -> None:
        samples = {str: "SELECT 1", int: 1, str | None: None, int | None: None}
        for name in set(queries.__all__) - {"Query"}:
            kind = getattr(queries, name)
            await store.read(
                kind(*(samples.get(each, ()) for each in get_type_hints(kind).values()))
            )

    async def test_a_full_disk_stores_no_part_of_a_batch(self, store: Store) -> None:
        await write(store, messages=[message(1, cid="c1")], deliveries=[delivery("bob", 1)])
        big = Batch(
            [TokenAdded("a" * 64, "bob"), CallSettled("alice", "call", 1, "1")],
            [message(2, cid="c2", text="x" * 100_000)],
            [wake("bob", 2)],
        )
        async with self.refusing(store):
            with pytest.raises(StoreUnavailable):
                await store.append(big)
            assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1]
            assert await store.read(TokenHashes("bob")) == []
            assert await store.read(PendingWakes("bob", 9)) == []
        await store.append(big)
        assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1, 2]
        assert await store.read(SettledCall("alice", "c2")) == Settled(0, 2, None)

    async def test_a_closed_store_is_unavailable(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.message(1)
        await store.open()
        await store.close()
        await store.close()
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.append(direct(1, 1))
        with pytest.raises(StoreUnavailable, match="closed"):
            await store.log(0, 9, 9)

    async def test_a_new_store_is_empty(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store) as state:
            assert (len(state.epoch), state.head) == (26, 0)
            everything = [*state.participants, *state.threads, *state.channels, *state.members]
            assert [*everything, *state.marks, *state.keys] == []
            await store.append(Batch())  # an empty batch is valid
            assert await store.log(0, 9, 9) == []


class StoreContract(
    EventsContract,
    HistoryContract,
    TurnsContract,
    SearchesContract,
    MemoryContract,
    ControlContract,
    ModsContract,
    FailureContract,
):
    """All tests that do not open the store twice."""


class DurableStoreContract(DurableControlContract, DurableModsContract, StoreContract):
    """Persistence over a restart of the hub."""

    async def test_participants_threads_and_members_survive_a_restart(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store) as first:
            await write(
                store,
                ParticipantSeen("bob", "agent", "{}"),
                ParticipantSeen("alice", "human", "{}"),
                ParticipantSeen("bob", "agent", '{"description":"b"}'),
                ThreadCreated(1, "dm.alice.bob"),
                ThreadCreated(2, "channel.desk"),
                ThreadCreated(3, "broadcast"),
                StoredChannel("desk", "A desk"),
                StoredChannel("desk", "The desk"),
                StoredMember("bob", 2, 0),
                StoredMember("alice", 2, 0),
                StoredMember("alice", 3, 0),
                CursorMoved("bob", 2),
                messages=[message(1), message(2, tseq=2), message(3, thread=2, tseq=1, scope=2)],
            )
            await write(store, MemberLeft("alice", 2, 3), messages=[message(4, tseq=3)])
        async with opened(store) as state:
            assert (state.epoch, state.head) == (first.epoch, 4)
            assert set(state.participants) == {
                StoredParticipant("bob", "agent", '{"description":"b"}', 2),
                StoredParticipant("alice", "human", "{}", 0),
            }
            assert set(state.threads) == {
                StoredThread(1, "dm.alice.bob", 3, 4),
                StoredThread(2, "channel.desk", 1, 3),
                StoredThread(3, "broadcast", 0, 0),
            }
            assert list(state.channels) == [StoredChannel("desk", "The desk")]
            assert set(state.members) == {StoredMember("bob", 2, 0), StoredMember("alice", 3, 0)}

    async def test_cursors_marks_and_memories_survive_a_restart(self, tmp_path: Path) -> None:
        async with opened(store := self.new_store(tmp_path)):
            await write(store, ParticipantSeen("bob", "agent", "{}"), CursorMoved("bob", 7))
            await write(store, CursorMoved("bob", 9), CursorMoved("bob", 3))
            await write(store, CursorMoved("bob", 8), WakesSettled("bob", 1))
            await write(store, StoredMark("bob", 1, 7), StoredMark("bob", 2, 4))
            await write(store, StoredMark("bob", 1, 3), StoredMark("alice", 1, 5))
            await write(store, MemoryWritten("bob", "b", "1"), MemoryWritten("bob", "a", "2"))
            await write(store, MemoryWritten("alice", "a", "3"), MemoryDeleted("bob", "b"))
        async with opened(again := self.new_store(tmp_path)) as state:
            cursors = [participant.cursor for participant in state.participants]
            assert cursors == [9], "a cursor never moves backwards"
            marks = {("bob", 1, 3), ("bob", 2, 4), ("alice", 1, 5)}
            assert set(state.marks) == {StoredMark(*mark) for mark in marks}
            assert sorted(state.keys) == [StoredKey("alice", "a"), StoredKey("bob", "a")]
            assert await again.read(MemoryValue("bob", "a")) == b"2"

    async def test_the_log_and_its_turns_survive_a_restart(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store):
            await write(
                store,
                StoredMember("bob", 4, 0),
                CallSettled("alice", "call", 1, "1"),
                messages=[message(1, cid="c1"), message(2, thread=4, tseq=1, scope=4)],
                deliveries=[wake("bob", 1)],
            )
            await write(store, TurnBegun("bob-m1", "bob", 5.0, "{}", (1,)))
        async with opened(store):
            assert seqs(await store.events("bob", 0, 9, 9, own=False)) == [1, 2]
            assert [row.started for row in await store.read(PendingWakes("bob", 9))] == ["bob-m1"]
            with pytest.raises(DuplicateCids) as refused:
                await write(store, messages=[message(3, cid="c1"), message(4, cid="call")])
            assert refused.value.pairs == {("alice", "c1"), ("alice", "call")}
            await write(store, messages=[message(3, tseq=2)])
            assert await store.thread_page(1, None, 9) == [body(1), body(3)]
