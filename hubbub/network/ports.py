"""What the hub needs of the outside: a `Store`. (Time is
`hubbub.clock.Clock`.)

The hub decides everything (positions, recipients, wakes) and hands over finished records; a store
keeps them, in one transaction per batch, and reads them back. It decides nothing. Every store runs
the contract suite in `hubbub.testing.store_contract`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from hubbub.network.queries import Query
from hubbub.network.records import Batch
from hubbub.network.stored import StoredEvent, StoreState

__all__ = [
    "DuplicateCids",
    "Store",
]

T = TypeVar("T")


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

    async def read(self, query: Query[T]) -> T:
        """The answer to any of `hubbub.network.queries`."""
        ...

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        """Bring the tables of a mod to what its scripts make of them. Raises `UserError` for a
        script that fails or that touches what is not the mod's, for tables of a newer version of
        the mod, and for a mod whose names are taken, also if it has no scripts: it could read and
        write what is called so.
        """
        ...
