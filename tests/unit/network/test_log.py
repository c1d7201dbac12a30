"""The log writes in groups: who is likely to come is waited for, who is alone is not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from hubbub.clock import SystemClock
from hubbub.network.log import Entry, Log, LogListeners
from hubbub.network.metrics import HubMetrics
from hubbub.network.store import open_store
from hubbub.network.threads import Threads
from hubbub.protocol.messages import Draft


class Nobody:
    """Asks, and does not listen."""

    def sent(self, ref: str, entry: Entry, *, duplicate: bool = False) -> None: ...

    def repeated(self, ref: str, value: bytes) -> None: ...

    def failed(self, ref: str, error: Exception) -> None:
        raise error


class Desk:
    """A log on a store in memory, and how many entries each of its batches had."""

    def __init__(self, log: Log, threads: Threads):
        self.log, self.batches = log, list[int]()
        self._thread = threads.ensure("dm.ann.bob")
        self._written = asyncio.Event()
        log.listeners = LogListeners(committed=((True, self._committed),))

    def _committed(self, entries: Sequence[Entry]) -> None:
        self.batches.append(len(entries))
        self._written.set()

    def append(self, count: int) -> None:
        for _ in range(count):
            draft = Draft("ann", "agent", "dm.ann.bob", "direct", "hi", recipients=("bob",))
            entry = Entry(draft, Nobody())
            entry.thread, entry.decisions, entry.interaction, entry.hop = self._thread, [], None, 0
            self.log.append(entry)

    async def written(self) -> None:
        """The next batch is in the log."""
        self._written.clear()
        async with asyncio.timeout(30):
            await self._written.wait()


@asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    store, threads = open_store("sqlite::memory:"), Threads()
    await store.open()
    log = Log(store, threads, SystemClock(), HubMetrics())
    try:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(log.run())
            yield Desk(log, threads)
            log.stop()
    finally:
        await store.close()


async def test_a_batch_waits_for_as_many_as_the_last_had_and_nobody_waits_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.network.log.patience", lambda took_s: 60.0)
    async with desk() as at:
        for count in (1, 1, 5):
            at.append(count)
            await at.written()
        at.append(1)
        for _ in range(20):
            await asyncio.sleep(0)
        at.append(4)
        await at.written()
        assert at.batches == [1, 1, 5, 5]
        at.append(2)  # written when the log stops: nobody waits for it any more
        await asyncio.sleep(0)
    assert at.batches == [1, 1, 5, 5, 2]


async def test_who_does_not_come_is_waited_for_only_a_little() -> None:
    async with desk() as at:
        for count in (5, 1, 1):
            at.append(count)
            await at.written()
        assert at.batches == [5, 1, 1]


async def test_a_change_waits_for_nobody_alone_or_behind_a_message_that_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hubbub.network.log.patience", lambda took_s: 60.0)
    async with desk() as at, asyncio.timeout(30):
        at.append(5)
        await at.written()
        await at.log.write()
        at.append(5)
        await at.written()
        at.append(1)
        for _ in range(20):
            await asyncio.sleep(0)
        assert at.log.waiting == 1, "it waits for four more"
        await at.log.write()
    assert at.batches == [5, 0, 5, 1]
