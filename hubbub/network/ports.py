"""What the hub needs of the outside: a `Store`. (Time is `hubbub.clock.Clock`, the way between
nodes `hubbub.network.backplane`.)

The hub decides everything (positions, recipients, wakes) and hands over finished records; a store
keeps them, in one transaction per batch, and reads them back. It decides nothing. Every store runs
the contract suite in `hubbub.testing.store_contract`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from hubbub.mods.rows import Value
from hubbub.network.records import Batch
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

__all__ = [
    "DuplicateCids",
    "Store",
]


class DuplicateCids(Exception):
    """A (sender, cid) of the batch is in the store already. Nothing of the batch was written.

    `found` has every such pair of the batch.
    """

    def __init__(self, found: frozenset[tuple[str, str]]):
        self.found = found
        super().__init__(f"{len(found)} duplicate cids")


class Store(Protocol):
    """A durable log with what belongs to it. One hub writes; reads may run beside the writes.

    Every method raises `StoreUnavailable` when the disk refuses; after that the store can be used
    again, and nothing of the failed batch is in it.
    """

    async def open(self) -> StoreState:
        """Create or migrate, then read what the hub keeps in memory.

        Raises `StoreVersionError` if the database is newer than this program or is not ours, and
        `UserError` if another hub has it open.
        """
        ...

    async def close(self) -> None: ...

    def problem(self) -> str:
        """Why nothing can be written from now on, as far as a quick look tells; empty: it can."""
        ...

    async def append(self, batch: Batch) -> None:
        """Write the batch in one transaction; durable when this returns.

        Deliveries belong to messages of the same batch. Raises `DuplicateCids` or
        `StoreUnavailable`, and `ValueError` for a batch that contradicts the log (a defect of the
        caller); then nothing of it is written.
        """
        ...

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        """What reaches the participant in (after, upto], in log order, at most `limit` entries.

        That is: its deliveries, and the messages of the scopes it was a member of at that seq.
        Its own messages are left out unless `own`.
        """
        ...

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        """Every message in (after, upto], in order (wake columns None): what an observer sees."""
        ...

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        """By thread number: the bodies of its last `limit` messages up to `upto`, oldest first.

        Fewer if they are large, as in `thread_page`.
        """
        ...

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        """Bodies of the last `limit` messages of a thread with tseq < `before`, oldest first.

        Fewer if they are large: a page is at least one message, and about 256 KiB at most.
        """
        ...

    async def message(self, seq: int) -> bytes | None:
        """The body of the message at `seq`."""
        ...

    async def was_member(self, participant: str, scope: int, seq: int) -> bool:
        """Whether a message with this scope and seq reached the participant as a member."""
        ...

    async def members_at(self, scope: int, seq: int) -> Collection[str]:
        """Whom a message with this scope and seq reached as members."""
        ...

    async def mentions(self, participant: str, before: int, limit: int) -> StoredMentions:
        """The last `limit` messages with seq < `before` that reach the participant by name and
        mention it.

        Looks at a bounded part of the log in one call, and gives about 256 KiB at most.
        """
        ...

    async def interaction(self, interaction: str, after: int, upto: int) -> StoredInteraction:
        """The messages in (after, upto] that belong to the interaction.

        Reads the log forward, a bounded part of it in one call, and gives about 256 KiB at most.
        """
        ...

    async def settled(self, sender: str, cid: str) -> Settled | None: ...

    async def pending(self, agent: str, upto: int) -> Sequence[PendingRow]:
        """Wakes of the agent with seq <= `upto` that are not settled, oldest first."""
        ...

    async def open_wakes(self, agent: str, upto: int) -> Sequence[OpenWake]:
        """What `pending` has, without reading any message."""
        ...

    async def wake(self, participant: str, seq: int) -> StoredWake | None:
        """The delivery row of a participant and message."""
        ...

    async def wakes(self, seqs: Sequence[int]) -> Mapping[tuple[int, str], StoredWake]:
        """The delivery rows of these messages, by seq and participant, in that order."""
        ...

    async def turn(self, turn: str) -> StoredTurn | None: ...

    async def turns(
        self, agent: str | None, limit: int, before: str | None = None
    ) -> Sequence[StoredTurn]:
        """The latest turns, newest first; with `before`, of those that began before this turn (none
        if there is no such turn). Turns keep the order in which they first began.
        """
        ...

    async def turns_called(self, ids: Sequence[str]) -> Sequence[StoredTurn]:
        """Those of these turns that have begun, oldest first."""
        ...

    async def ledger(self, interaction: int) -> StoredLedger | None:
        """The account of the interaction that the message at this position opened; None: nothing
        was ever added to it."""
        ...

    async def spending(
        self, since: str, agent: str | None = None, thread: int | None = None
    ) -> Sequence[StoredSpending]:
        """The accounts of the days from `since` on (YYYY-MM-DD), latest day first."""
        ...

    async def approval(self, id: str) -> bytes | None:
        """An approval as JSON."""
        ...

    async def approvals(self, agent: str | None, limit: int) -> Sequence[bytes]:
        """The latest approvals as JSON, newest first; `agent` None: of all."""
        ...

    async def request(self, seq: int) -> bytes | None:
        """The request that the message at this position made, as JSON."""
        ...

    async def requests(
        self, participant: str | None, state: str | None, limit: int
    ) -> Sequence[bytes]:
        """The latest requests as JSON, newest first: of whom the participant is requester or
        worker; None: of everybody, or in any state."""
        ...

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        """Bring the tables of a mod to what its scripts make of them. Raises `UserError` for a
        script that fails or that touches what is not the mod's, for tables of a newer version of
        the mod, and for a mod whose names are taken, also if it has no scripts: it could read and
        write what is called so.
        """
        ...

    async def mods(self) -> Sequence[str]:
        """The mods that have tables here, whether or not they still run."""
        ...

    async def mod_rows(
        self, mod: str, sql: str, values: Sequence[Value]
    ) -> Sequence[tuple[Value, ...]]:
        """Rows of a mod's own tables. Raises `ValueError` for a statement that fails, writes, or
        touches what is not the mod's (a defect of the mod).
        """
        ...

    async def memory(self, participant: str, key: str) -> bytes | None:
        """What the participant remembers under the key, as JSON."""
        ...

    async def memories(self, participant: str, short: int) -> Sequence[StoredMemory]:
        """All that the participant remembers, by key; values over `short` bytes are left out."""
        ...

    async def token_hashes(self, participant: str) -> Sequence[str]:
        """SHA-256 (hex) of the participant's tokens, always as the store has them now."""
        ...

    async def token_counts(self) -> Mapping[str, int]:
        """How many tokens those have who have any, by name; as the store has them now."""
        ...
