"""The hub's port to the outside: a `Store`. (Time is `hubbub.clock.Clock`.)

The hub decides everything (positions, recipients, wakes) and passes finished records; a store
writes them, one transaction per batch, and reads them back. Every store must pass the contract
suite in `hubbub.testing.store_contract`.
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
    """The store already has a (sender, cid) of the batch. Nothing of the batch was written.

    `pairs` has every such pair.
    """

    def __init__(self, pairs: frozenset[tuple[str, str]]):
        self.pairs = pairs
        super().__init__(f"{len(pairs)} duplicate cids")


class Store(Protocol):
    """A durable log and the state that belongs to it. One hub writes; reads can run concurrently.

    Every method raises `StoreUnavailable` when the disk refuses; after that the store is usable,
    and nothing of the failed batch is in it.
    """

    async def open(self) -> StoreState:
        """Create or migrate the database, then read the hub's state.

        Raises `StoreVersionError` if the database is newer than this program or of another
        application, and `UserError` if another hub has it open.
        """
        ...

    async def close(self) -> None: ...

    def problem(self) -> str:
        """Why nothing can be written, from a quick check; empty if there is no known problem."""
        ...

    async def append(self, batch: Batch) -> None:
        """Write the batch in one transaction; durable when this returns.

        Deliveries belong to messages of the same batch. Raises `DuplicateCids` or
        `StoreUnavailable`, and `ValueError` for a batch that contradicts the log (a defect of the
        caller). In each case nothing of it is written.
        """
        ...

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        """The participant's messages in (after, upto], in log order, at most `limit`.

        These are its deliveries, and the messages of the scopes it was a member of at that seq. Its
        own messages are left out unless `own`.
        """
        ...

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        """All messages in (after, upto], in order, for an observer (wake columns None)."""
        ...

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        """The bodies of the last `limit` messages up to `upto` by thread number, oldest first.

        Fewer if they are large, as in `thread_page`.
        """
        ...

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        """Bodies of the last `limit` messages of a thread with tseq < `before`, oldest first.

        Fewer if they are large: a page has at least one message, and at most about 256 KiB.
        """
        ...

    async def message(self, seq: int) -> bytes | None:
        """The body of the message at `seq`."""
        ...

    async def read(self, query: Query[T]) -> T:
        """The answer to a query of `hubbub.network.queries`."""
        ...

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        """Migrate the tables of a mod with its scripts.

        Raises `UserError` for a script that fails or touches other tables, for tables of a newer
        version of the mod, and for a mod whose table names are taken, even without scripts, as it
        could read and write those tables.
        """
        ...
