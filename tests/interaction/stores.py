"""A real store that fails or waits when a test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence

from hubbub.errors import StoreUnavailable
from hubbub.mods.rows import Value
from hubbub.network.ports import Store
from hubbub.network.records import Batch
from hubbub.network.store import open_store
from hubbub.network.stored import (
    OpenWake,
    PendingRow,
    Settled,
    StoredEvent,
    StoredInteraction,
    StoredLedger,
    StoredMemory,
    StoredMentions,
    StoredSpending,
    StoredTurn,
    StoredWake,
    StoreState,
)

__all__ = ["MoodyStore"]


class MoodyStore:
    """Hands everything on to a real store, unless told to fail or to wait.

    failing    the next so many commits are refused as by a full disk
    deaf       reads fail while it is set
    gate       commits wait until it is set
    reads      reads wait until it is set
    batches    what was committed
    asked      how often something was read
    """

    def __init__(self, store: str | Store = "sqlite::memory:"):
        self._store = open_store(store) if isinstance(store, str) else store
        self.failing = 0
        self.deaf = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.reads = asyncio.Event()
        self.reads.set()
        self.waiting = asyncio.Event()
        """Set when somebody has come to a closed gate."""
        self.batches: list[Batch] = []
        self.asked = 0

    async def open(self) -> StoreState:
        return await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    def problem(self) -> str:
        return self._store.problem()

    async def append(self, batch: Batch) -> None:
        if not self.gate.is_set():
            self.waiting.set()
            await self.gate.wait()
        if self.failing > 0:
            self.failing -= 1
            raise StoreUnavailable("the disk is full")
        await self._store.append(batch)
        self.batches.append(batch)

    async def _listen(self) -> None:
        self.asked += 1
        if not self.reads.is_set():
            self.waiting.set()
            await self.reads.wait()
        if self.deaf:
            raise StoreUnavailable("the disk does not answer")

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        await self._listen()
        return await self._store.events(participant, after, upto, limit, own)

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        await self._listen()
        return await self._store.log(after, upto, limit)

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        await self._listen()
        return await self._store.tails(threads, upto, limit)

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        await self._listen()
        return await self._store.thread_page(thread, before, limit)

    async def message(self, seq: int) -> bytes | None:
        await self._listen()
        return await self._store.message(seq)

    async def was_member(self, participant: str, scope: int, seq: int) -> bool:
        await self._listen()
        return await self._store.was_member(participant, scope, seq)

    async def members_at(self, scope: int, seq: int) -> Collection[str]:
        await self._listen()
        return await self._store.members_at(scope, seq)

    async def mentions(self, participant: str, before: int, limit: int) -> StoredMentions:
        await self._listen()
        return await self._store.mentions(participant, before, limit)

    async def interaction(self, interaction: str, after: int, upto: int) -> StoredInteraction:
        await self._listen()
        return await self._store.interaction(interaction, after, upto)

    async def ledger(self, interaction: int) -> StoredLedger | None:
        await self._listen()
        return await self._store.ledger(interaction)

    async def spending(
        self, since: str, agent: str | None = None, thread: int | None = None
    ) -> Sequence[StoredSpending]:
        await self._listen()
        return await self._store.spending(since, agent, thread)

    async def approval(self, id: str) -> bytes | None:
        await self._listen()
        return await self._store.approval(id)

    async def approvals(self, agent: str | None, limit: int) -> Sequence[bytes]:
        await self._listen()
        return await self._store.approvals(agent, limit)

    async def request(self, seq: int) -> bytes | None:
        await self._listen()
        return await self._store.request(seq)

    async def requests(
        self, participant: str | None, state: str | None, limit: int
    ) -> Sequence[bytes]:
        await self._listen()
        return await self._store.requests(participant, state, limit)

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        await self._store.admit_mod(mod, scripts)

    async def mods(self) -> Sequence[str]:
        return await self._store.mods()

    async def mod_rows(
        self, mod: str, sql: str, values: Sequence[Value]
    ) -> Sequence[tuple[Value, ...]]:
        await self._listen()
        return await self._store.mod_rows(mod, sql, values)

    async def memory(self, participant: str, key: str) -> bytes | None:
        await self._listen()
        return await self._store.memory(participant, key)

    async def memories(self, participant: str, short: int) -> Sequence[StoredMemory]:
        await self._listen()
        return await self._store.memories(participant, short)

    async def settled(self, sender: str, cid: str) -> Settled | None:
        await self._listen()
        return await self._store.settled(sender, cid)

    async def pending(self, agent: str, upto: int) -> Sequence[PendingRow]:
        await self._listen()
        return await self._store.pending(agent, upto)

    async def open_wakes(self, agent: str, upto: int) -> Sequence[OpenWake]:
        await self._listen()
        return await self._store.open_wakes(agent, upto)

    async def wake(self, participant: str, seq: int) -> StoredWake | None:
        await self._listen()
        return await self._store.wake(participant, seq)

    async def wakes(self, seqs: Sequence[int]) -> Mapping[tuple[int, str], StoredWake]:
        await self._listen()
        return await self._store.wakes(seqs)

    async def turn(self, turn: str) -> StoredTurn | None:
        await self._listen()
        return await self._store.turn(turn)

    async def turns(
        self, agent: str | None, limit: int, before: str | None = None
    ) -> Sequence[StoredTurn]:
        await self._listen()
        return await self._store.turns(agent, limit, before)

    async def turns_called(self, ids: Sequence[str]) -> Sequence[StoredTurn]:
        await self._listen()
        return await self._store.turns_called(ids)

    async def token_hashes(self, participant: str) -> Sequence[str]:
        await self._listen()
        return await self._store.token_hashes(participant)

    async def token_counts(self) -> Mapping[str, int]:
        await self._listen()
        return await self._store.token_counts()
