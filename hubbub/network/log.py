"""The log's pen: whatever has queued becomes one transaction; answers and pushes come after it.

    append(entry) --> pending --> number --> encode --> store.append --> committed(entries)

One task writes. While a commit is under way the next batch gathers, so load makes batches larger.
A batch that is smaller than the one before waits for the others, half as long as a commit takes;
who is alone never waits. Positions are given when a batch is formed and taken back when its
commit fails; nobody has seen them by then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

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

__all__ = ["CallbackWaiter", "Change", "Entry", "Log", "LogListeners", "RowsOf", "Waiter", "settle"]

T = TypeVar("T")

MAX_BATCH = 512
"""Entries in one transaction: more would only make the first of them wait."""
MOST_AWAITED = 64
"""A batch of so many waits for no others: a sync is then a small part of what they cost."""


_STOPPED = StoreUnavailable("the hub has stopped")


class Waiter(Protocol):
    """Who waits for an entry to become durable. `ref` is the call's."""

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None: ...

    def repeated(self, ref: str, value: bytes) -> None:
        """It was in the log before: `value` is the first result as JSON."""
        ...

    def failed(self, ref: str, error: Exception) -> None: ...


class CallbackWaiter:
    """A waiter that calls `done` with the position of the message, or with why it has none."""

    def __init__(self, done: Callable[[int | Exception], None]):
        self._done = done

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None:
        self._done(entry.seq)

    def repeated(self, ref: str, value: bytes) -> None:
        self._done(int(json.loads(value)["seq"]))

    def failed(self, ref: str, error: Exception) -> None:
        self._done(error)


def settle(future: asyncio.Future[T], outcome: T | Exception) -> None:
    """Give the future its result, or raise the error there, if anybody still waits."""
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


RowsOf = Callable[["Entry"], Sequence[Record]]
"""Makes what is written with an entry, once it is numbered."""


_LATER: Any = None
"""Stands where the policy puts a value before anybody reads it."""


class Entry(Struct, eq=False):
    """A message on its way into the log: submitted, judged, numbered, committed."""

    draft: Draft
    waiter: Waiter
    """Is answered when it is durable, or told why it is not."""
    ref: str = ""
    """The call, under which the waiter is answered."""
    cid: str | None = None
    """With one the sender writes it once, however often it is submitted."""
    digest: int | None = None
    """Tells a repetition from a conflict."""
    also: tuple[tuple[Waiter, str], ...] = ()
    """Who asked for the same while it was on its way."""
    thread: Thread = _LATER
    decisions: list[Decision] = _LATER
    wakes: bool = _LATER
    """Whether any of them wakes somebody."""
    interaction: str | None = None
    """None: it opens one."""
    hop: int = 0
    hop_limit: int = 0
    awaited: bool = False
    """Whether it answers somebody who does nothing until then."""
    turn: str | None = None
    """The turn that sends it."""
    rows: tuple[RowsOf, ...] = ()
    """What services write with it."""
    seq: int = 0
    tseq: int = 0
    sent_at: str = ""
    body: bytes = b""
    by_person: bool = False
    """Whether a person says it, in its own name or for an agent."""

    def __post_init__(self) -> None:
        draft = self.draft
        self.by_person = draft.sender_kind == "human" or draft.spoken_by is not None

    def fail(self, error: Exception) -> None:
        """Tell all who wait that the entry is not in the log."""
        for waiter, ref in ((self.waiter, self.ref), *self.also):
            waiter.failed(ref, error)


class Change:
    """Records to write that are no message.

    `records(head)` is asked when the batch is formed, `head` being the last position before it.
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
    """Who hears what the log did, in this order."""

    recorded: tuple[Callable[[Sequence[Record]], None], ...] = ()
    """These records are durable: called once per batch that has any, before all else."""
    committed: tuple[tuple[object, Committed], ...] = ()
    """These entries are durable: called once per batch, in the order of the log. Each with what it
    watches: if that is empty, it need not hear."""
    refused: tuple[Callable[[Sequence[Entry], Exception], None], ...] = ()
    """The store could not write these entries; who asked has its answer. Anything but a
    `StoreUnavailable` is a defect."""
    repeated: tuple[Callable[[Entry], None], ...] = ()
    """The entry's cid was used before: it is not in the log a second time."""


def patience(took_s: float) -> float:
    """Seconds that a batch waits for others, after a commit that took so long."""
    return min(took_s / 2, 0.01)


class Log:
    """Numbers entries and writes them in groups."""

    def __init__(self, store: Store, threads: Threads, clock: Clock, metrics: HubMetrics):
        self._store, self._threads, self._clock, self._metrics = store, threads, clock, metrics
        self.hearers = LogListeners()
        self._entries: list[Entry] = []
        self._changes: list[Change] = []
        self._wakeup = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._second = (-1, "")
        self._stopped = False
        self._expected = 0
        """Entries that are likely to come, because the batch before had as many."""
        self._complete = asyncio.Event()
        """They have come, or have been waited for long enough."""
        self._took_s = 0.0
        self._under_way = _Undo()
        """What the batch that is being written moves."""
        self.head = 0
        """The last committed position."""

    @property
    def stopped(self) -> bool:
        """Whether nothing more is written."""
        return self._stopped

    @property
    def waiting(self) -> int:
        """Entries and changes that wait for the next commit."""
        return len(self._entries) + len(self._changes)

    def position(self, thread: Thread) -> int:
        """The position (tseq) of the last committed message of a thread; 0 if it has none."""
        marks = self._under_way.before.get(thread)
        return thread.tseq if marks is None else marks[0]

    def append(self, entry: Entry) -> None:
        """Queue an entry; its waiters are answered after the commit."""
        if not self._entries:
            if self._stopped:
                self._give_up([entry], [], _STOPPED)
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
        """Queue a change and wait for the commit; without records: for all that was queued before.
        Raises `StoreUnavailable`."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.change(Change(lambda head: records, partial(settle, done)))
        await done

    async def settle(self) -> None:
        """Wait until all that was handed over is committed or refused."""
        while self.waiting or not self._idle.is_set():
            await self._idle.wait()
            await asyncio.sleep(0)

    def stop(self) -> None:
        """Write what is queued and no more; whoever comes later is refused."""
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
        """Let others come: one sync costs the same for one entry and for fifty. Who waits for a
        change, as an agent in a turn does, waits for nobody's messages.
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
                entries, changes = self._set_aside(entries, changes, duplicates)
            except StoreUnavailable as error:
                undo.apply()
                self._give_up(entries, changes, error)
                return
            except Exception as error:  # noqa: BLE001  no batch, however odd, may end the log
                undo.apply()
                if len(entries) + len(changes) > 1:
                    await self._write_halves(entries, changes)
                else:
                    self._give_up(entries, changes, error)
                return
            else:
                undo.before.clear()
                for thread in undo.created:
                    thread.stored = True
                self.head += len(entries)
                self._took_s = self._clock.monotonic() - started
                self._expected = min(len(entries), MOST_AWAITED)
                if batch.records:
                    for recorded in self.hearers.recorded:
                        recorded(batch.records)
                for change in changes:
                    change.done(None)
                for watches, committed in self.hearers.committed:
                    if watches:
                        committed(entries)
                self._metrics.committed(len(entries), self._clock.monotonic() - started)
                return

    async def _write_halves(self, entries: list[Entry], changes: list[Change]) -> None:
        """Write a batch in two: one thing that cannot be written must not take others with it."""
        if entries and changes:
            await self._write([], changes)
            await self._write(entries, [])
        else:
            middle = (len(entries) + len(changes)) // 2
            await self._write(entries[:middle], changes[:middle])
            await self._write(entries[middle:], changes[middle:])

    def _give_up(self, entries: list[Entry], changes: list[Change], error: Exception) -> None:
        self._metrics.refused += len(entries)
        for change in changes:
            change.done(error)
        for entry in entries:
            entry.fail(error)
        for refused in self.hearers.refused:
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
        """Record a thread that is not in the store yet, its root before it."""
        if thread.scope not in (None, thread.no):
            root = self._threads.by_no(thread.scope or 0)
            if not root.stored and root not in undo.created:
                self._create(root, records, undo)
        if thread not in undo.created:
            undo.created.append(thread)
            records.append(ThreadCreated(thread.no, thread.id))

    def _set_aside(
        self, entries: list[Entry], changes: list[Change], duplicates: DuplicateCids
    ) -> tuple[list[Entry], list[Change]]:
        """What is left of a batch without its repetitions, which are handed to the listener."""
        fresh: list[Entry] = []
        for entry in entries:
            if (entry.draft.sender_id, entry.cid) in duplicates.found:
                for repeated in self.hearers.repeated:
                    repeated(entry)
            else:
                fresh.append(entry)
        left = []
        for change in changes:
            if change.cid in duplicates.found:
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
    """The numbers of threads as they were before a batch was numbered."""

    __slots__ = ("before", "created")

    def __init__(self) -> None:
        self.before: dict[Thread, ThreadMarks] = {}
        self.created: list[Thread] = []

    def apply(self) -> None:
        for thread, marks in self.before.items():
            thread.tseq, thread.last_seq, thread.last_agent, thread.remembered = marks
