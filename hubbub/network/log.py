"""The log's writer: everything queued becomes one transaction; answers and pushes follow it.

    append(entry) --> pending --> number --> encode --> store.append --> committed(entries)

One task writes. While a commit runs, the next batch gathers, so load makes batches larger. A batch
smaller than the previous one waits for more entries, for half the duration of a commit; a lone
sender never waits. Positions are assigned when a batch is formed and withdrawn if its commit fails,
before they become visible.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from hubbub.clock import Clock
from hubbub.errors import StoreUnavailable
from hubbub.network.metrics import HubMetrics
from hubbub.network.ports import DuplicateCids, Store
from hubbub.network.records import Batch, Delivery, MessageRow, Record, ThreadCreated
from hubbub.network.threads import Thread, ThreadMarks, Threads
from hubbub.network.wakes import Decision
from hubbub.protocol.codec import encode_message
from hubbub.protocol.messages import Draft
from hubbub.waiting import settle

__all__ = ["CallbackWaiter", "Change", "Entry", "Log", "LogListeners", "RowsOf", "Waiter"]

MAX_BATCH = 512
"""Entries per transaction; more would only delay the first of them."""
MAX_GATHERED = 64
"""A batch of this size waits for no more entries: the sync is then a small part of its cost."""


_STOPPED = StoreUnavailable("the hub has stopped")


class Waiter(Protocol):
    """Receives the outcome of an entry. `ref` is the call's."""

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None: ...

    def repeated(self, ref: str, value: bytes) -> None:
        """The entry was already in the log; `value` is its first result as JSON."""
        ...

    def failed(self, ref: str, error: Exception) -> None: ...


class CallbackWaiter:
    """A waiter that calls `done` with the message's position, or with the error."""

    def __init__(self, done: Callable[[int | Exception], None]):
        self._done = done

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        self._done(entry.seq)

    def repeated(self, ref: str, value: bytes) -> None:
        self._done(int(json.loads(value)["seq"]))

    def failed(self, ref: str, error: Exception) -> None:
        self._done(error)


RowsOf = Callable[["Entry"], Sequence[Record]]
"""Builds the records written with an entry, once it is numbered."""


_UNSET: Any = None
"""Placeholder for a field that the policy sets before its first use."""


class Entry(Struct, eq=False):
    """A message on its way into the log: submitted, checked, numbered, committed."""

    draft: Draft
    waiter: Waiter
    """Gets the answer when the entry is durable, or the error."""
    ref: str = ""
    """The call to answer."""
    cid: str | None = None
    """Makes the write idempotent: however often it is submitted, it is written once."""
    digest: int | None = None
    """Distinguishes a repeated write from a conflicting one."""
    also: tuple[tuple[Waiter, str], ...] = ()
    """Waiters that submitted the same write while it was in flight."""
    thread: Thread = _UNSET
    decisions: list[Decision] = _UNSET
    wakes: bool = _UNSET
    """Whether any decision wakes an agent."""
    interaction: str | None = None
    """None if the entry opens one."""
    hop: int = 0
    hop_limit: int = 0
    awaited: bool = False
    """Whether the caller it answers is blocked until then."""
    turn: str | None = None
    """The turn that sends it."""
    rows: tuple[RowsOf, ...] = ()
    """Records that services write with it."""
    seq: int = 0
    tseq: int = 0
    sent_at: str = ""
    body: bytes = b""
    by_person: bool = False
    """Whether a person sends it, for themselves or on behalf of an agent."""
    ordinary: bool = False
    """Whether it comes from an agent or a service, waits for no answer and has no purpose, as most
    messages do. Set when it is appended, as a gate can give it a purpose."""

    def __post_init__(self) -> None:
        draft = self.draft
        self.by_person = draft.sender_kind == "human" or draft.sent_by is not None

    def fail(self, error: Exception) -> None:
        """Report to all waiters that the entry is not in the log."""
        for waiter, ref in ((self.waiter, self.ref), *self.also):
            waiter.failed(ref, error)


class Change:
    """Records to write without a message.

    `records(head)` is called when the batch is formed, with the last position before it.
    `done(error)` is called after the commit, before the batch's messages are pushed.
    """

    __slots__ = ("cid", "done", "records")

    def __init__(
        self,
        records: Callable[[int], Sequence[Record]],
        done: Callable[[Exception | None], None],
        cid: tuple[str, str] | None = None,
    ):
        self.records, self.done, self.cid = records, done, cid


Committed = Callable[["Sequence[Entry]"], None]


class LogListeners(NamedTuple):
    """Callbacks for the log's events, in calling order."""

    recorded: tuple[Callable[[Sequence[Record]], None], ...] = ()
    """Durable records: called first, once per batch that has any."""
    committed: tuple[tuple[object, Committed], ...] = ()
    """Durable entries, in log order: called once per batch. Each is paired with the collection it
    depends on; while that is empty, it gets only entries that are not ordinary, if there are
    any."""
    refused: tuple[Callable[[Sequence[Entry], Exception], None], ...] = ()
    """Entries that the store could not write; their callers have been answered. Any error other
    than `StoreUnavailable` is a defect."""
    repeated: tuple[Callable[[Entry], None], ...] = ()
    """An entry whose cid was used before, so it is not written again."""


def patience(took_s: float) -> float:
    """Seconds that a batch waits for more entries, after a commit that took `took_s`."""
    return min(took_s / 2, 0.01)


class Log:
    """Numbers entries and writes them in groups."""

    def __init__(self, store: Store, threads: Threads, clock: Clock, metrics: HubMetrics):
        self._store, self._threads, self._clock, self._metrics = store, threads, clock, metrics
        self.listeners = LogListeners()
        self._entries: list[Entry] = []
        self._changes: list[Change] = []
        self._wakeup = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._second = (-1, "")
        self._stopped = False
        self._expected = 0
        """The likely size of the next batch: that of the previous one."""
        self._complete = asyncio.Event()
        """Set when the batch has that size or has waited long enough."""
        self._took_s = 0.0
        self._under_way = _Undo()
        """Undoes the numbering of the batch being written."""
        self.head = 0
        """The last committed position."""

    @property
    def stopped(self) -> bool:
        """Whether the log accepts no more writes."""
        return self._stopped

    @property
    def waiting(self) -> int:
        """Number of entries and changes queued for the next commit."""
        return len(self._entries) + len(self._changes)

    def position(self, thread: Thread) -> int:
        """The position (tseq) of the last committed message of a thread; 0 if it has none."""
        marks = self._under_way.before.get(thread)
        return thread.tseq if marks is None else marks[0]

    def append(self, entry: Entry) -> None:
        """Queue an entry; its waiters are answered after the commit."""
        if not self._entries:
            if self._stopped:
                self._refuse_all([entry], [], _STOPPED)
                return
            self._wakeup.set()
        self._entries.append(entry)
        if len(self._entries) == self._expected:
            self._complete.set()

    def change(self, change: Change) -> None:
        """Queue a change."""
        if self._stopped:
            change.done(_STOPPED)
            return
        self._changes.append(change)
        self._wakeup.set()
        self._complete.set()

    async def write(self, *records: Record) -> None:
        """Queue a change and wait for its commit; without records, wait for everything queued
        before. Raises `StoreUnavailable`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.change(Change(lambda head: records, partial(settle, done)))
        await done

    async def settle(self) -> None:
        """Wait until everything queued is committed or refused."""
        while self.waiting or not self._idle.is_set():
            await self._idle.wait()
            await asyncio.sleep(0)

    def stop(self) -> None:
        """Write what is queued and refuse everything after that."""
        self._stopped = True
        self._wakeup.set()
        self._complete.set()

    async def run(self) -> None:
        """Write until stopped."""
        while not self._stopped:
            await self._wakeup.wait()
            self._wakeup.clear()
            self._idle.clear()
            while self._entries or self._changes:
                few = 0 < len(self._entries) < self._expected
                if few and not (self._changes or self._stopped):
                    await self._gather()
                entries, self._entries = self._entries[:MAX_BATCH], self._entries[MAX_BATCH:]
                changes, self._changes = self._changes, []
                await self._write(entries, changes)
            self._idle.set()

    async def _gather(self) -> None:
        """Wait for more entries, as a sync costs the same for one as for fifty. Changes end the
        wait: an agent in its turn is not delayed by messages of others.
        """
        self._complete.clear()
        timer = asyncio.get_running_loop().call_later(patience(self._took_s), self._complete.set)
        await self._complete.wait()
        timer.cancel()

    async def _write(self, entries: list[Entry], changes: list[Change]) -> None:
        while entries or changes:
            undo = self._under_way = _Undo()
            started = self._clock.monotonic()
            try:
                batch = self._number(entries, changes, undo)
                await self._store.append(batch)
            except DuplicateCids as duplicates:
                undo.apply()
                entries, changes = self._without_duplicates(entries, changes, duplicates)
            except StoreUnavailable as error:
                undo.apply()
                self._refuse_all(entries, changes, error)
                return
            except Exception as error:  # noqa: BLE001  no batch must end the log's task
                undo.apply()
                if len(entries) + len(changes) > 1:
                    await self._write_halves(entries, changes)
                else:
                    self._refuse_all(entries, changes, error)
                return
            else:
                undo.before.clear()
                for thread in undo.created:
                    thread.stored = True
                self.head += len(entries)
                self._took_s = self._clock.monotonic() - started
                self._expected = min(len(entries), MAX_GATHERED)
                if batch.records:
                    for recorded in self.listeners.recorded:
                        recorded(batch.records)
                for change in changes:
                    change.done(None)
                special = [entry for entry in entries if not entry.ordinary]
                for watches, committed in self.listeners.committed:
                    if watches:
                        committed(entries)
                    elif special:
                        committed(special)
                self._metrics.committed(len(entries), self._clock.monotonic() - started)
                return

    async def _write_halves(self, entries: list[Entry], changes: list[Change]) -> None:
        """Write a batch in two halves, so that one bad item does not fail the others."""
        if entries and changes:
            await self._write([], changes)
            await self._write(entries, [])
        else:
            middle = (len(entries) + len(changes)) // 2
            await self._write(entries[:middle], changes[:middle])
            await self._write(entries[middle:], changes[middle:])

    def _refuse_all(self, entries: list[Entry], changes: list[Change], error: Exception) -> None:
        self._metrics.refused += len(entries)
        for change in changes:
            change.done(error)
        for entry in entries:
            entry.fail(error)
        for refused in self.listeners.refused:
            refused(entries, error)

    def _number(self, entries: list[Entry], changes: list[Change], undo: _Undo) -> Batch:
        head = seq = self.head
        records: list[Record] = []
        for change in changes:
            records.extend(change.records(head))
        messages: list[MessageRow] = []
        deliveries: list[Delivery] = []
        sent_at = self._now()
        before = undo.before
        for entry in entries:
            seq += 1
            thread, draft = entry.thread, entry.draft
            if thread not in before:
                before[thread] = (
                    thread.tseq,
                    thread.last_seq,
                    thread.last_agent,
                    thread.remembered,
                )
                if not thread.stored:
                    self._create(thread, records, undo)
            thread.tseq = tseq = thread.tseq + 1
            thread.last_seq = seq
            if draft.sender_kind == "agent" and (draft.purpose is None or draft.amends is None):
                thread.last_agent, thread.remembered = draft.sender_id, True
            entry.seq, entry.tseq, entry.sent_at = seq, tseq, sent_at
            interaction = entry.interaction or f"i{seq}"
            entry.body = body = encode_message(draft, seq, tseq, interaction, entry.hop, sent_at)
            recipient = reason = reply = None
            for to, why, need in entry.decisions:
                if recipient is None:
                    recipient, reason, reply = to, str(why), need
                else:
                    deliveries.append(Delivery(to, seq, str(why), need))
            row = MessageRow(
                seq,
                thread.no,
                tseq,
                thread.scope,
                draft.sender_id,
                entry.cid,
                entry.digest,
                recipient,
                reason,
                reply,
                body,
            )
            messages.append(row)
            for rows in entry.rows:
                records.extend(rows(entry))
        return Batch(records, messages, deliveries)

    def _create(self, thread: Thread, records: list[Record], undo: _Undo) -> None:
        """Record a thread that is not in the store yet, after its root."""
        if thread.scope not in (None, thread.no):
            root = self._threads.by_no(thread.scope or 0)
            if not root.stored and root not in undo.created:
                self._create(root, records, undo)
        if thread not in undo.created:
            undo.created.append(thread)
            records.append(ThreadCreated(thread.no, thread.id))

    def _without_duplicates(
        self, entries: list[Entry], changes: list[Change], duplicates: DuplicateCids
    ) -> tuple[list[Entry], list[Change]]:
        """The batch without its duplicates, which go to the listeners."""
        fresh: list[Entry] = []
        for entry in entries:
            if (entry.draft.sender_id, entry.cid) in duplicates.pairs:
                for repeated in self.listeners.repeated:
                    repeated(entry)
            else:
                fresh.append(entry)
        left = []
        for change in changes:
            if change.cid in duplicates.pairs:
                change.done(duplicates)
            else:
                left.append(change)
        return fresh, left

    def _now(self) -> str:
        second, ms = divmod(int(self._clock.now() * 1000), 1000)
        if second != self._second[0]:
            moment = datetime.fromtimestamp(second, UTC)
            self._second = (second, moment.strftime("%Y-%m-%dT%H:%M:%S"))
        return f"{self._second[1]}.{ms:03d}Z"


class _Undo:
    """The state of threads before a batch was numbered."""

    __slots__ = ("before", "created")

    def __init__(self) -> None:
        self.before: dict[Thread, ThreadMarks] = {}
        self.created: list[Thread] = []

    def apply(self) -> None:
        for thread, marks in self.before.items():
            thread.tseq, thread.last_seq, thread.last_agent, thread.remembered = marks
