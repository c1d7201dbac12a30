"""`PostgresStore`: the log in a Postgres database.

One session writes and one reads, each in its own thread. Every commit is on the server's disk when
`append` returns (`synchronous_commit`), and carries the owner's fencing number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import psycopg

from hubbub.config.paths import shown_store
from hubbub.errors import StoreUnavailable, UserError
from hubbub.ids import new_ulid
from hubbub.network import queries
from hubbub.network.queries import Query
from hubbub.network.records import Batch, Delivery
from hubbub.network.store import events, reads
from hubbub.network.store.checksums import check_end
from hubbub.network.store.database import Database
from hubbub.network.store.postgres.database import (
    LEASE_S,
    StoreInUse,
    connected,
    own,
    own_again,
    prepare,
    release_from_silent,
)
from hubbub.network.store.postgres.link import (
    DatabaseConnectionLost,
    Link,
    OwnerSuperseded,
    line_of,
)
from hubbub.network.store.postgres.mod_tables import ModTables
from hubbub.network.store.postgres.session import COPY_DELIVERIES, COPY_MESSAGES, PostgresSession
from hubbub.network.store.sqlite import RUNS, answer
from hubbub.network.store.writer import BatchWriter
from hubbub.network.stored import StoredEvent, StoreState

__all__ = ["PostgresStore"]

T = TypeVar("T")

_CUT_OFF_S = LEASE_S
"""Seconds without the server after which an owner with standbys gives up, as it may have a
successor that clients and gateways should move to."""
_BEAT_S = 1.0
"""Seconds between signs of life of an owner."""
_AGAIN_S = 0.2
_PATIENCE_S = 60.0
"""Seconds to wait for a server that was lost during a commit."""


class _CopyWriter(BatchWriter):
    def inserts(
        self, messages: Sequence[tuple[Any, ...]], deliveries: Sequence[Delivery]
    ) -> Sequence[tuple[str, Sequence[Any]]]:
        rows = ((COPY_MESSAGES, messages), (COPY_DELIVERIES, deliveries))
        return [each for each in rows if each[1]]


class PostgresStore:
    """A `Store` (hubbub.network.ports) on Postgres; `open` it first, `close` it at the end."""

    def __init__(
        self,
        url: str,
        waiting: Callable[[str], None] | None = None,
        lost: Callable[[str], None] = lambda why: None,
        node: str = "",
    ):
        """Parameters as in `hubbub.network.store.open_store`."""
        self._url, self._name, self._node = url, shown_store(url), node
        self._waiting, self._lost = waiting, lost
        self._beating: asyncio.Task[None] | None = None
        self._fence: int | None = None
        self._written = (0, 0)
        """The last acknowledged batch that has a number, and the log's end; used by the writing
        thread."""
        self._problem, self._is_superseded = "", False
        self._late: asyncio.Task[None] | None = None
        """Determines the outcome of a batch that was given up."""
        self._mods = ModTables()
        self._writer = _CopyWriter(write_mod_rows=self._mods.write)
        self.writing = Link(self._connect)
        self.reading = Link(lambda: connected(url, reading=True, node=node))

    async def open(self) -> StoreState:
        self._fence, self._written = None, (0, 0)
        self._problem, self._is_superseded = "", False
        self.writing.start()
        self.reading.start()
        try:
            await self._become_owner()
            self.reading.runs_again = True
            self._beating = asyncio.create_task(self._beat())
            return await self.reading.run(reads.state)
        except psycopg.Error as error:
            await self.close()
            raise UserError(f"{self._name} cannot be used as a store: {line_of(error)}") from error
        except BaseException:
            await self.close()
            raise

    async def _become_owner(self) -> None:
        """Raises `StoreInUse` if another hub owns the store, unless this one should wait."""
        while True:
            try:
                await self._until_free()
                await self.writing.run(_begin_run, self._name)
            except (StoreInUse, StoreUnavailable):  # another waiting hub may have been first
                if self._waiting is None:
                    raise
                await asyncio.sleep(_AGAIN_S)
            else:
                return

    async def _until_free(self) -> None:
        """Wait until no hub owns the store. After a loss of the server, the old owner gets a lease
        to return, as it has the clients and agents."""
        reported, waiting, free_from = "", self._waiting, 0.0
        while waiting is not None:
            try:
                owner = await self.reading.run(release_from_silent, LEASE_S)
            except StoreUnavailable as error:
                why, free_from = str(error), time.monotonic() + LEASE_S
            else:
                if owner is None and time.monotonic() >= free_from:
                    return
                why = f"{owner or 'a hub that may return'} runs this network"
            if why != reported:
                waiting(why)
            reported = why
            await asyncio.sleep(_AGAIN_S)

    async def _beat(self) -> None:
        """Send signs of life, and check that this hub still owns the store."""
        now = asyncio.get_running_loop().time
        last_contact = now()
        while not self._is_superseded:
            await asyncio.sleep(_BEAT_S)
            try:
                async with asyncio.timeout(LEASE_S):
                    await self.writing.run(_look)
            except OwnerSuperseded as error:
                self._supersede(error)
            except (StoreUnavailable, psycopg.Error, TimeoutError):
                # Writers get the error. A hub with standbys leaves its clients to a successor.
                if self._waiting is not None and now() - last_contact > _CUT_OFF_S:
                    self._supersede(StoreUnavailable(f"{self._name} is out of reach"))
                    self.writing.cut()
                    self.reading.cut()
            else:
                last_contact = now()

    def _supersede(self, error: StoreUnavailable) -> None:
        self._problem = str(error)
        if not self._is_superseded:
            self._is_superseded = True
            self._lost(self._problem)

    async def close(self) -> None:
        for task in (self._beating, self._late):
            if task is not None:
                task.cancel()
        await self.reading.close()
        await self.writing.close(self._mods.close)

    def _connect(self) -> PostgresSession:
        session = connected(self._url, node=self._node)
        try:
            if self._fence is None:
                prepare(session, self._name)
                self._fence = own(session, self._name)
            else:
                self._written = own_again(session, self._fence, self._written)
            self._writer.start(None)
        except BaseException:
            session.close()
            raise
        return session

    def problem(self) -> str:
        return self._problem

    async def append(self, batch: Batch) -> None:
        """If the connection is lost during a commit, waits for the server and checks whether the
        batch was written."""
        if self._problem:
            raise StoreUnavailable(self._problem)
        sent: list[int] = []
        try:
            await self.writing.run(self._write, batch, sent)
        except OwnerSuperseded as error:
            self._supersede(error)
            raise
        except DatabaseConnectionLost as error:
            if sent and not await self._was_written(batch, sent[0]):
                raise StoreUnavailable(f"{error}; nothing of it was written") from error

    def _write(self, session: PostgresSession, batch: Batch, sent: list[int]) -> None:
        """Adds the transaction's number to `sent` before it begins."""
        sent.append(session.batch + 1)
        try:
            self._writer.write(session, batch)
        except psycopg.IntegrityError as error:
            text = f"the batch contradicts the log or itself: {line_of(error)}"
            raise ValueError(text) from error
        except BaseException:
            self._writer.start(None)
            raise
        else:
            self._mods.settle()
            head = batch.messages[-1].seq if batch.messages else self._written[1]
            self._written = (session.batch, head)
        finally:
            self._mods.undo()

    async def _was_written(self, batch: Batch, number: int) -> bool:
        """Whether the server committed the batch during which the connection was lost."""
        if not self._is_superseded:
            self._problem = f"{self._name} was lost during a commit: start it again"
        try:
            async with asyncio.timeout(_PATIENCE_S):
                written = await self._when_back(batch, number)
        except TimeoutError:
            self._late = asyncio.create_task(self._settle_late(batch, number))
            return False
        self._problem = ""
        return written

    async def _when_back(self, batch: Batch, number: int) -> bool:
        while True:
            if self._is_superseded:
                raise StoreUnavailable(self._problem)
            try:
                return await self.writing.run(_has, batch, number)
            except OwnerSuperseded as error:
                self._supersede(error)
                raise
            except StoreUnavailable:
                await asyncio.sleep(_AGAIN_S)

    async def _settle_late(self, batch: Batch, number: int) -> None:
        """Resolve a batch that was given up. If it was written after all, the hub must restart to
        read it."""
        if await self._when_back(batch, number):
            self._problem = (
                f"{self._name} has a batch that the hub had given up: restart the hub to continue "
                "from there"
            )
        else:
            self._problem = ""

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        span = (participant, after, upto, limit, own, events.LATERAL_EVENT_QUERIES)
        return await self.reading.run(events.events, *span)

    async def log(self, after: int, upto: int, limit: int) -> Sequence[StoredEvent]:
        return await self.reading.run(events.log, after, upto, limit)

    async def tails(
        self, threads: Sequence[int], upto: int, limit: int
    ) -> Mapping[int, Sequence[bytes]]:
        return await self.reading.run(reads.tails, threads, upto, limit)

    async def thread_page(self, thread: int, before: int | None, limit: int) -> Sequence[bytes]:
        return await self.reading.run(reads.thread_page, thread, before, limit)

    async def message(self, seq: int) -> bytes | None:
        return await self.reading.run(reads.message, seq)

    async def read(self, query: Query[T]) -> T:
        if type(query) in (queries.ModsWithTables, queries.ModSelect):
            return await self.writing.run(self._mods.read, query)
        return await self.reading.run(answer, query)

    async def admit_mod(self, mod: str, scripts: Mapping[int, str]) -> None:
        await self.writing.run(self._mods.admit, mod, scripts)


def _begin_run(session: PostgresSession, name: str) -> None:
    check_end(session, name, "restore a backup of the database, or configure another one")
    (head,) = session.execute("SELECT coalesce(max(seq), 0) FROM message").fetchone()
    session.execute("INSERT INTO run (id, since) VALUES (?, ?)", (new_ulid(), head))
    session.execute("DELETE FROM run WHERE no <= (SELECT max(no) FROM run) - ?", (RUNS,))


def _look(session: PostgresSession) -> None:
    session.execute("SELECT 1")


def _has(db: Database, batch: Batch, number: int) -> bool:
    if batch.messages:
        (head,) = db.execute("SELECT head FROM owner").fetchone()
        return bool(head >= batch.messages[-1].seq)
    (last,) = db.execute("SELECT batch FROM owner").fetchone()
    return bool(last >= number)
