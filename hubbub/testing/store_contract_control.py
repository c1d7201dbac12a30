"""The part of the store contract about stops, approvals, requests, accounts and memories."""

from __future__ import annotations

import math
from pathlib import Path

from hubbub.network.ports import Store
from hubbub.network.queries import (
    AccountOf,
    ApprovalById,
    LatestApprovals,
    LatestRequests,
    MemoriesOf,
    MemoryValue,
    RequestAt,
    SpendingSince,
)
from hubbub.network.records import (
    AccountChanged,
    ApprovalSaved,
    MemoryDeleted,
    MemoryWritten,
    RequestSaved,
    StopLifted,
    TakeoverEnded,
    TurnBegun,
    TurnEnded,
)
from hubbub.network.stored import (
    StoredAccount,
    StoredMemory,
    StoredSpending,
    StoredStop,
    StoredTakeover,
)
from hubbub.testing.store_contract_log import StoreMaker
from hubbub.testing.store_rows import opened, write

__all__ = ["ControlContract", "DurableControlContract", "MemoryContract"]


class MemoryContract(StoreMaker):
    """Memories: keys and values of one participant each."""

    async def test_memories_belong_to_one_participant(self, store: Store) -> None:
        await write(store, MemoryWritten("bob", "k", "1"), MemoryWritten("alice", "k", '"é"'))
        assert await store.read(MemoryValue("bob", "k")) == b"1"
        assert await store.read(MemoryValue("alice", "k")) == '"é"'.encode()
        assert await store.read(MemoryValue("carol", "k")) is None
        assert await store.read(MemoryValue("bob", "K")) is None
        assert await store.read(MemoriesOf("carol", 99)) == []

    async def test_the_last_write_or_deletion_of_a_memory_wins(self, store: Store) -> None:
        await write(store, MemoryWritten("bob", "k", "1"), MemoryWritten("bob", "k", "2"))
        assert await store.read(MemoryValue("bob", "k")) == b"2"
        await write(store, MemoryDeleted("bob", "k"), MemoryDeleted("bob", "never"))
        assert await store.read(MemoryValue("bob", "k")) is None
        await write(store, MemoryWritten("bob", "k", "3"), MemoryDeleted("bob", "k"))
        await write(store, MemoryDeleted("bob", "k"), MemoryWritten("bob", "j", "null"))
        assert await store.read(MemoriesOf("bob", 9)) == [StoredMemory("j", 4, b"null")]

    async def test_memories_are_sorted_by_key_without_long_values(self, store: Store) -> None:
        for key in ("b", "a", "B", "_"):
            await write(store, MemoryWritten("bob", key, '"é"'))
        await write(store, MemoryWritten("bob", "a", '"éé"'))
        assert await store.read(MemoriesOf("bob", 4)) == [
            StoredMemory("B", 4, '"é"'.encode()),
            StoredMemory("_", 4, '"é"'.encode()),
            StoredMemory("a", 6, None),
            StoredMemory("b", 4, '"é"'.encode()),
        ]


def _approval(
    id: str, state: str = "pending", *, agent: str = "bob", turn: str = "t1", text: str = ""
) -> ApprovalSaved:
    return ApprovalSaved(id, agent, turn, state, 99.5, text or f'"{id} {state} é"')


def _approval_body(id: str, state: str = "pending") -> bytes:
    return f'"{id} {state} é"'.encode()


def _request(seq: int, requester: str, worker: str, state: str = "open") -> RequestSaved:
    return RequestSaved(seq, requester, worker, state, 99.5, f'"{seq} {state} é"')


def _saved(seq: int, state: str = "open") -> bytes:
    return f'"{seq} {state} é"'.encode()


class AccountsContract(StoreMaker):
    """Sums of changes."""

    async def test_an_account_is_the_sum_of_its_changes(self, store: Store) -> None:
        assert await store.read(AccountOf(7)) is None
        first = AccountChanged(7, wakes=2, turns=1, agents=("bob", "ann"), reached=("wakes",))
        other = AccountChanged(8, tokens_in=1)
        await write(store, first, other, AccountChanged(7, wakes=1, tokens_in=5, usd=0.25))
        await write(store, AccountChanged(7, tokens_in=-2, tokens_out=3, usd=0.5))
        assert await store.read(AccountOf(7)) == StoredAccount(
            3, 1, 3, 3, 0.75, ("ann", "bob"), ("wakes",)
        )
        assert await store.read(AccountOf(8)) == StoredAccount(0, 0, 1, 0, 0.0, (), ())
        await write(store, AccountChanged(7, agents=("cy", "bob"), reached=("bob", "wakes")))
        account = await store.read(AccountOf(7))
        assert account is not None
        assert (account.agents, account.reached) == (("ann", "bob", "cy"), ("bob", "wakes"))
        await write(store, *(AccountChanged(9, usd=0.001) for _ in range(1000)))
        small = await store.read(AccountOf(9))
        assert small is not None
        assert math.isclose(small.usd, 1.0)

    async def test_daily_spending_is_summed_by_agent_and_thread(self, store: Store) -> None:
        await write(store, StoredSpending("2026-01-02", "bob", 1, wakes=1, turns=1, usd=0.5))
        await write(
            store,
            StoredSpending("2026-01-02", "bob", 1, tokens_in=7, tokens_out=2, usd=0.25),
            StoredSpending("2026-01-02", "ann", 2, wakes=3),
            StoredSpending("2026-01-03", "bob", 2, tokens_in=4),
        )
        late = StoredSpending("2026-01-03", "bob", 2, 0, 0, 4, 0, 0.0)
        ann = StoredSpending("2026-01-02", "ann", 2, 3, 0, 0, 0, 0.0)
        bob = StoredSpending("2026-01-02", "bob", 1, 1, 1, 7, 2, 0.75)
        assert await store.read(SpendingSince("2026-01-01")) == [late, ann, bob]
        assert await store.read(SpendingSince("2026-01-03")) == [late]
        assert await store.read(SpendingSince("2026-01-04")) == []
        assert await store.read(SpendingSince("2026-01-02", agent="bob")) == [late, bob]
        assert await store.read(SpendingSince("2026-01-02", thread=2)) == [late, ann]
        assert await store.read(SpendingSince("2026-01-02", agent="bob", thread=1)) == [bob]


class ApprovalsContract(StoreMaker):
    """The latest versions of approvals."""

    async def test_approvals_are_listed_newest_first(self, store: Store) -> None:
        await write(store, _approval("b"), _approval("a"), _approval("c", agent="cy"))
        await write(store, _approval("b", "approved"), _approval("b", "denied"))
        assert await store.read(ApprovalById("b")) == _approval_body("b", "denied")
        assert await store.read(ApprovalById("B")) is None
        everything = [_approval_body("c"), _approval_body("a"), _approval_body("b", "denied")]
        assert await store.read(LatestApprovals(None, 9)) == everything
        assert await store.read(LatestApprovals(None, 2)) == everything[:2]
        assert await store.read(LatestApprovals("bob", 9)) == everything[1:]
        assert await store.read(LatestApprovals("cy", 9)) == everything[:1]
        assert await store.read(LatestApprovals("dee", 9)) == []


class RequestsContract(StoreMaker):
    """The latest versions of requests."""

    async def test_requests_are_listed_by_participant_and_state(self, store: Store) -> None:
        await write(store, _request(4, "ann", "bob"), _request(9, "bob", "ann"))
        await write(store, _request(6, "bob", "cy", "result"), _request(7, "ann", "ann"))
        await write(store, _request(4, "ann", "bob", "failed"), _request(4, "ann", "bob"))
        assert (await store.read(RequestAt(6)), await store.read(RequestAt(5))) == (
            _saved(6, "result"),
            None,
        )
        latest = [_saved(9), _saved(7), _saved(6, "result"), _saved(4)]
        assert await store.read(LatestRequests(None, None, 9)) == latest
        assert await store.read(LatestRequests(None, None, 3)) == latest[:3]
        assert await store.read(LatestRequests(None, "open", 9)) == [
            _saved(9),
            _saved(7),
            _saved(4),
        ]
        assert await store.read(LatestRequests("ann", None, 9)) == [
            _saved(9),
            _saved(7),
            _saved(4),
        ]
        assert await store.read(LatestRequests("bob", None, 2)) == [
            _saved(9),
            _saved(6, "result"),
        ]
        assert await store.read(LatestRequests("bob", "open", 9)) == [
            _saved(9),
            _saved(4),
        ]
        assert await store.read(LatestRequests("dan", None, 9)) == []


class ControlContract(AccountsContract, ApprovalsContract, RequestsContract):
    """All tests that do not open the store twice."""


class DurableControlContract(ControlContract):
    """The state of a hub after a restart."""

    async def test_stops_and_takeovers_survive_a_restart_until_lifted(self, tmp_path: Path) -> None:
        store = self.new_store(tmp_path)
        async with opened(store) as first:
            assert [*first.stops, *first.takeovers] == []
            await write(
                store,
                StoredStop("all", "", "ann", "", 1.0),
                StoredStop("agent", "bob", "ann", "first", 2.0),
                StoredStop("thread", "bob", "ann", "", 4.0),
                StoredStop("breaker", "broadcast", "hub", "", 5.0, 40),
                StoredTakeover("bob", "ann", 9.5),
                StoredTakeover("cy", "ann", 7.5),
            )
            await write(
                store,
                StoredStop("agent", "bob", "cy", "again", 3.0),
                StopLifted("all", ""),
                StopLifted("agent", "never"),
                StoredTakeover("bob", "dan", 8.5),
                TakeoverEnded("cy"),
                TakeoverEnded("eve"),
            )
        async with opened(store) as state:
            assert sorted(state.stops) == [
                StoredStop("agent", "bob", "cy", "again", 3.0, 0),
                StoredStop("breaker", "broadcast", "hub", "", 5.0, 40),
                StoredStop("thread", "bob", "ann", "", 4.0, 0),
            ]
            assert list(state.takeovers) == [StoredTakeover("bob", "dan", 8.5)]

    async def test_open_approvals_and_requests_survive_a_restart_in_order(
        self, tmp_path: Path
    ) -> None:
        store = self.new_store(tmp_path)
        async with opened(store) as first:
            assert ([*first.approvals, *first.requests], first.latest_day) == ([], "")
            begun = [TurnBegun(id, "bob", 5.0, "{}", ()) for id in ("t1", "t2")]
            unused = [_approval(f"{s}-{t}", s, turn=t) for t in ("t1", "t2") for s in _STATES]
            await write(store, *begun, *unused, TurnEnded("t2", 6.0, "{}"))
            await write(store, _request(9, "ann", "bob"), _request(4, "ann", "bob"))
            await write(store, _request(5, "ann", "bob", "result"))
            await write(
                store, StoredSpending("2026-01-03", "bob", 1), StoredSpending("2026-01-02", "cy", 1)
            )
        async with opened(store) as state:
            running = [("pending", "t1"), ("approved", "t1"), ("denied", "t1"), ("expired", "t1")]
            expected = [_approval_body(f"{s}-{t}", s) for s, t in (*running, ("pending", "t2"))]
            assert list(state.approvals) == expected
            assert list(state.requests) == [_saved(4), _saved(9)]
            assert state.latest_day == "2026-01-03"
            assert await store.read(SpendingSince("2026-01-03")) != []


_STATES = ("pending", "approved", "denied", "expired", "cancelled", "started")
