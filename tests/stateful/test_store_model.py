"""SQLite and the model give the same answers after any sequence of writes."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hubbub.errors import StoreUnavailable
from hubbub.network.ports import DuplicateCids
from hubbub.network.queries import (
    InteractionMessages,
    IsMember,
    LatestTurns,
    MembersAt,
    MemoriesOf,
    MemoryValue,
    MentionsOf,
    PendingWakes,
    SettledCall,
    TokenHashes,
    TurnById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import (
    Batch,
    CallSettled,
    CursorMoved,
    Delivery,
    MemberLeft,
    MemoryDeleted,
    MemoryWritten,
    ParticipantSeen,
    Record,
    StepRecorded,
    ThreadCreated,
    TokenAdded,
    TokenRevoked,
    TurnBegun,
    TurnEnded,
    TurnSent,
    WakesSettled,
)
from hubbub.network.store import SqliteStore
from hubbub.network.store.location import SqliteLocation
from hubbub.network.stored import StoredMark, StoredMember, StoreState
from hubbub.testing.store_rows import message
from tests.contract.full_disk import full_disk
from tests.examples import examples
from tests.stateful.store_model import StoreModel

PEOPLE = ("alice", "bob", "carol")
SCOPES = (10, 11)
THREADS = {1: None, 2: None, 10: 10, 11: 11, 12: 11}
"""Scope by thread: two direct threads, two channels, and a reply thread in one of those."""

people = st.sampled_from(PEOPLE)
scopes = st.sampled_from(SCOPES)
cids = st.sampled_from(("c1", "c2", "c3", "c4")) | st.none()
decisions = st.dictionaries(people, st.sampled_from((None, "optional", "required")), max_size=3)
messages = st.lists(
    st.tuples(st.sampled_from(tuple(THREADS)), people, cids, decisions), min_size=1, max_size=5
)
keys = st.sampled_from(("a", "B", "b.1", "_"))
values = st.sampled_from(("1", "null", '"é"', '"longer than the rest"')) | st.none()
fractions = st.floats(0, 1)


class StoreMachine(RuleBasedStateMachine):
    """Drives a store with short index tails beside the model."""

    @initialize(tail=st.sampled_from((1, 3, 7, 1000)))
    def start(self, tail: int) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.model = StoreModel()
        self.store = SqliteStore(SqliteLocation(self.folder / "log.db"), tail)
        self.runner.run(self.store.open())
        threads = [ThreadCreated(no, f"thread.{no}") for no in THREADS]
        self.write([*threads, *(ParticipantSeen(name, "agent", "{}") for name in PEOPLE)])

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            self.runner.run(self.store.close())
            self.runner.close()
            shutil.rmtree(self.folder)

    def write(self, records: list[Record], batch: Batch | None = None) -> None:
        """Gives a batch to both, which must report the same duplicate cids."""
        whole = batch or Batch()
        whole.records = records + whole.records
        assert self.runner.run(self.duplicates(whole)) == self.expected_duplicates(whole)

    def expected_duplicates(self, batch: Batch) -> frozenset[tuple[str, str]]:
        try:
            self.model.append(batch)
        except DuplicateCids as error:
            return error.pairs
        return frozenset()

    async def duplicates(self, batch: Batch) -> frozenset[tuple[str, str]]:
        try:
            await self.store.append(batch)
        except DuplicateCids as error:
            return error.pairs
        return frozenset()

    def batch_of(self, messages: list[tuple[int, str, str | None, dict[str, str | None]]]) -> Batch:
        """Messages numbered as the hub does it; a cid occurs once in a batch."""
        batch, used = Batch(), set[tuple[str, str | None]]()
        for seq, (thread, sender, asked, decided) in enumerate(messages, self.model.head + 1):
            cid = None if (sender, asked) in used else asked
            used.add((sender, cid))
            numbers = [row.thread_no for row in (*self.model.messages, *batch.messages)]
            tseq = numbers.count(thread) + 1
            digest = None if cid is None else seq
            named = f',"mentions":["{PEOPLE[seq % 3]}"]' if seq % 2 else ""
            opened = max(1, seq // 4)
            text = f'{{"seq":{seq},"from":"{sender}"{named},"interaction_id":"i{opened}"}}'
            deliveries = [Delivery(name, seq, "because", reply) for name, reply in decided.items()]
            # The first delivery in the message's row, or, as in old logs, in its own.
            first = deliveries.pop(0) if deliveries and seq % 5 else None
            row = message(
                seq,
                thread=thread,
                tseq=tseq,
                scope=THREADS[thread],
                sender=sender,
                cid=cid,
                digest=digest,
                to=first,
                text=text,
            )
            batch.messages.append(row)
            batch.deliveries += deliveries
        return batch

    @rule(messages=messages)
    def speak(self, messages: list[tuple[int, str, str | None, dict[str, str | None]]]) -> None:
        self.write([], self.batch_of(messages))

    @rule(name=people, scope=scopes, leave=st.booleans(), messages=messages)
    def join_or_leave(
        self,
        name: str,
        scope: int,
        leave: bool,
        messages: list[tuple[int, str, str | None, dict[str, str | None]]],
    ) -> None:
        head = self.model.head
        change = MemberLeft(name, scope, head) if leave else StoredMember(name, scope, head)
        self.write([change], self.batch_of(messages))

    @rule(name=people, cid=st.sampled_from(("c1", "c4", "c5")))
    def settle_a_call(self, name: str, cid: str) -> None:
        self.write([CallSettled(name, cid, 77, '"done"')])

    @rule(name=people, share=fractions, settle=st.booleans())
    def acknowledge(self, name: str, share: float, settle: bool) -> None:
        seq = int(share * self.model.head)
        self.write([WakesSettled(name, seq)] if settle else [CursorMoved(name, seq)])

    @rule(name=people, thread=st.sampled_from(tuple(THREADS)), tseqs=st.lists(st.integers(0, 9)))
    def read(self, name: str, thread: int, tseqs: list[int]) -> None:
        self.write([StoredMark(name, thread, tseq) for tseq in tseqs])

    @rule(name=people, changes=st.lists(st.tuples(keys, values), min_size=1, max_size=4))
    def remember_or_forget(self, name: str, changes: list[tuple[str, str | None]]) -> None:
        self.write(
            [
                MemoryDeleted(name, key) if value is None else MemoryWritten(name, key, value)
                for key, value in changes
            ]
        )

    @precondition(lambda self: any(self.model.woken(name) for name in PEOPLE))
    @rule(data=st.data())
    def begin_a_turn(self, data: st.DataObject) -> None:
        agent = data.draw(st.sampled_from([n for n in PEOPLE if self.model.woken(n)]))
        wakes = st.sampled_from(list(self.model.woken(agent)))
        seqs = tuple(data.draw(st.lists(wakes, min_size=1, max_size=3, unique=True)))
        self.write([TurnBegun(f"{agent}-m{seqs[0]}", agent, 1.0, "{}", seqs)])

    @precondition(lambda self: self.model.turns)
    @rule(data=st.data(), end=st.booleans(), n=st.integers(1, 3))
    def continue_a_turn(self, data: st.DataObject, end: bool, n: int) -> None:
        turn = data.draw(st.sampled_from(list(self.model.turns)))
        step = f'"{n} of {self.model.turns[turn].attempts}"'
        records: list[Record] = [StepRecorded(turn, n, step), TurnSent(turn, n)]
        self.write([*records, TurnEnded(turn, 2.0, f'"{step}"')] if end else records)

    @rule(name=people, number=st.integers(0, 5), revoke=st.booleans())
    def change_tokens(self, name: str, number: int, revoke: bool) -> None:
        self.write([TokenRevoked(name) if revoke else TokenAdded(f"{number:064}", name)])

    @rule(messages=messages)
    def meet_a_full_disk(
        self, messages: list[tuple[int, str, str | None, dict[str, str | None]]]
    ) -> None:
        batch = self.batch_of(messages)
        batch.messages = [row._replace(cid=None, body=b"x" * 50_000) for row in batch.messages]
        self.runner.run(self.refused(batch))

    async def refused(self, batch: Batch) -> None:
        async with full_disk(self.store):
            try:
                await self.store.append(batch)
            except StoreUnavailable:
                return
            raise AssertionError("a full disk accepted 50 KB")

    @rule()
    def restart(self) -> None:
        self.runner.run(self.store.close())
        state: StoreState = self.runner.run(self.store.open())
        assert state.head == self.model.head
        assert {row.id: row.cursor for row in state.participants} == self.model.cursors
        assert set(state.members) == self.model.members()
        assert set(state.marks) == self.model.read_marks()
        assert list(state.keys) == self.model.keys()
        for thread in state.threads:
            numbers = [row.seq for row in self.model.messages if row.thread_no == thread.no]
            assert (thread.tseq, thread.last_seq) == (len(numbers), max(numbers, default=0))

    @rule(name=people, start=fractions, end=fractions, limit=st.integers(1, 6), own=st.booleans())
    def read_events(self, name: str, start: float, end: float, limit: int, own: bool) -> None:
        after, upto = int(start * self.model.head), int(end * self.model.head)
        found = self.runner.run(self.store.events(name, after, upto, limit, own))
        assert list(found) == self.model.events(name, after, upto, limit, own)

    @rule(share=fractions, limit=st.integers(1, 6), before=st.integers(1, 9) | st.none())
    def read_threads(self, share: float, limit: int, before: int | None) -> None:
        upto = int(share * self.model.head)
        tails = self.runner.run(self.store.tails(list(THREADS), upto, limit))
        for no in THREADS:
            assert list(tails[no]) == self.model.thread(no, upto)[-limit:]
            page = self.runner.run(self.store.thread_page(no, before, limit))
            whole = self.model.thread(no, self.model.head)
            assert list(page) == whole[: None if before is None else before - 1][-limit:]

    @rule(name=people, share=fractions, scope=scopes)
    def read_about_a_participant(self, name: str, share: float, scope: int) -> None:
        seq = int(share * self.model.head)
        ask = self.runner.run
        assert list(ask(self.store.read(PendingWakes(name, seq)))) == self.model.pending(name, seq)
        assert ask(self.store.read(WakeOf(name, seq))) == self.model.wake(name, seq)
        assert ask(self.store.read(IsMember(name, scope, seq))) == self.model.was_member(
            name, scope, seq
        )
        assert set(ask(self.store.read(TokenHashes(name)))) == self.model.hashes(name)
        latest = self.model.latest_turns(name)
        turns = ask(self.store.read(LatestTurns(name, 3)))
        assert [turn.id for turn in turns] == latest[:3]
        if turns:
            rest = ask(self.store.read(LatestTurns(name, 9, turns[-1].id)))
            assert [turn.id for turn in rest] == latest[3:12]

    @rule(name=people, share=fractions, limit=st.integers(1, 4))
    def read_mentions(self, name: str, share: float, limit: int) -> None:
        before = int(share * self.model.head) + 1
        found, expected = list[int](), self.model.named(name, f'"mentions":["{name}"]', before)
        while before > 1:
            page = self.runner.run(self.store.read(MentionsOf(name, before, limit)))
            found += [json.loads(body)["seq"] for body in page.bodies]
            assert page.upto < before
            before = page.upto
        assert found == expected

    @rule(name=people, key=keys, short=st.sampled_from((0, 4, 99)))
    def read_memories(self, name: str, key: str, short: int) -> None:
        found = self.runner.run(self.store.read(MemoriesOf(name, short)))
        assert list(found) == self.model.memories(name, short)
        expected = self.model.memory.get((name, key))
        value = self.runner.run(self.store.read(MemoryValue(name, key)))
        assert value == (None if expected is None else expected.encode())

    @rule(opened=st.integers(1, 5), start=fractions, scope=scopes)
    def read_an_interaction(self, opened: int, start: float, scope: int) -> None:
        after, head = int(start * self.model.head), self.model.head
        found = self.runner.run(self.store.read(InteractionMessages(f"i{opened}", after, head)))
        bodies = [row for row in self.model.messages[after:] if f'"i{opened}"'.encode() in row.body]
        assert list(found.rows) == [(row.thread_no, row.body) for row in bodies]
        seqs = [row.seq for row in bodies]
        assert self.runner.run(self.store.read(WakesAt(seqs))) == self.model.wakes(seqs)
        assert set(
            self.runner.run(self.store.read(MembersAt(scope, after)))
        ) == self.model.members_at(scope, after)

    @invariant()
    def exactly_the_open_wakes_are_pending(self) -> None:
        if not hasattr(self, "model"):
            return
        for name in PEOPLE:
            found = self.runner.run(self.store.read(PendingWakes(name, self.model.head)))
            assert list(found) == self.model.pending(name, self.model.head)

    @invariant()
    def cids_and_turns_are_stored(self) -> None:
        if not hasattr(self, "model"):
            return
        for cid in ("c1", "c4", "c5"):
            found = self.runner.run(self.store.read(SettledCall("alice", cid)))
            assert found == self.model.settled("alice", cid)
        for id_, expected in list(self.model.turns.items())[-2:]:
            turn = self.runner.run(self.store.read(TurnById(id_)))
            assert turn is not None
            assert turn.attempts == expected.attempts
            assert list(turn.steps) == [step.encode() for _, step in sorted(expected.steps.items())]
            assert set(turn.sent) == expected.sent
            assert turn.end == (expected.end.encode() if expected.end else None)


TestStoreModel = StoreMachine.TestCase
TestStoreModel.settings = settings(
    max_examples=examples(40),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
