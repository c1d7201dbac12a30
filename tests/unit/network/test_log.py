"""The log writes in batches that wait briefly for expected entries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

import pytest

from hubbub.clock import SystemClock
from hubbub.errors import StoreUnavailable
from hubbub.network.log import CallbackWaiter, Entry, Log, LogListeners
from hubbub.network.metrics import HubMetrics
from hubbub.network.records import Record, ThreadCreated
from hubbub.network.store import open_store
from hubbub.network.threads import Threads
from hubbub.protocol.messages import Draft
from hubbub.waiting import settle


def raise_failure(outcome: int | Exception) -> None:
    if isinstance(outcome, Exception):
        raise outcome


class LogHarness:
    """A log with an in-memory store, and the size of each batch."""

    def __init__(self, log: Log, threads: Threads):
        self.log, self.batches, self.records = log, list[int](), list[Record]()
        self._threads = threads
        self._written = asyncio.Event()
        log.listeners = LogListeners((self.records.extend,), ((True, self._committed),))

    def _committed(self, entries: Sequence[Entry]) -> None:
        self.batches.append(len(entries))
        self._written.set()

    def append(self, count: int, thread_id: str = "dm.ann.bob") -> None:
        for _ in range(count):
            draft = Draft("ann", "agent", thread_id, "direct", "hi", recipients=("bob",))
            entry = Entry(draft, CallbackWaiter(raise_failure))
            entry.thread, entry.decisions = self._threads.ensure(thread_id), []
            entry.interaction, entry.hop = None, 0
            self.log.append(entry)

    async def written(self) -> None:
        """Waits until the next batch is in the log."""
        self._written.clear()
        async with asyncio.timeout(30):
            await self._written.wait()


@asynccontextmanager
async def running_log() -> AsyncIterator[LogHarness]:
    store, threads = open_store("sqlite::memory:"), Threads()
    await store.open()
    log = Log(store, threads, SystemClock(), HubMetrics())
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(log.run())
            yield LogHarness(log, threads)
            log.stop()
    finally:
        await store.close()


async def test_a_batch_waits_until_it_is_as_large_as_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.network.log.patience", lambda took_s: 60.0)
    async with running_log() as harness:
        for count in (1, 1, 5):
            harness.append(count)
            await harness.written()
        harness.append(1)
        for _ in range(20):
            await asyncio.sleep(0)
        harness.append(4)
        await harness.written()
        assert harness.batches == [1, 1, 5, 5]
        harness.append(2)  # written without waiting when the log stops
        await asyncio.sleep(0)
    assert harness.batches == [1, 1, 5, 5, 2]
    with pytest.raises(StoreUnavailable, match="the hub has stopped"):
        harness.append(1)


async def test_a_batch_waits_only_briefly_for_missing_entries() -> None:
    async with running_log() as harness:
        for count in (5, 1, 1):
            harness.append(count)
            await harness.written()
        assert harness.batches == [5, 1, 1]


async def test_a_change_is_written_at_once_with_any_waiting_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.network.log.patience", lambda took_s: 60.0)
    async with running_log() as harness, asyncio.timeout(30):
        harness.append(5)
        await harness.written()
        await harness.log.write()
        harness.append(5)
        await harness.written()
        harness.append(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert harness.log.waiting == 1, "it waits for four more entries"
        await harness.log.write()
    assert harness.batches == [5, 0, 5, 1]


async def test_a_thread_is_recorded_once_after_its_root() -> None:
    async with running_log() as harness:
        for thread_id in ("channel.desk.t1", "channel.desk.t2", "channel.desk.t1"):
            harness.append(1, thread_id)
        await harness.written()
        harness.append(1, "channel.desk")
        await harness.written()
    assert harness.records == [
        ThreadCreated(1, "channel.desk"),
        ThreadCreated(2, "channel.desk.t1"),
        ThreadCreated(3, "channel.desk.t2"),
    ]


async def test_a_waiter_is_called_back_with_the_position_of_a_message_or_the_error() -> None:
    outcomes: list[int | Exception] = []
    future = asyncio.get_running_loop().create_future()
    waiter, error = CallbackWaiter(outcomes.append), ValueError("no")
    entry = Entry(Draft("ann", "agent", "dm.ann.bob", "direct", "hi"), waiter)
    entry.seq = 7
    waiter.sent("", entry)
    CallbackWaiter(partial(settle, future)).sent("", entry)
    assert await future == 7
    waiter.repeated("", b'{"seq":8}')
    entry.fail(error)
    assert outcomes == [7, 8, error]
