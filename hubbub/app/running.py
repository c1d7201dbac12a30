"""Building blocks for programs that run until they are stopped."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from hubbub.app.lifecycle import Report, Stopping

__all__ = ["background", "stopping", "until_signal"]


@contextmanager
def stopping(stop: asyncio.Event, report: Report, signals: bool) -> Iterator[None]:
    """A signal sets `stop`; a second one ends the process at once, and its agents with it."""
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()  # first, because the report can fail if the terminal is gone
        report(Stopping(number.name))

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signals else ()
    for number in numbers:
        loop.add_signal_handler(number, on_signal, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


async def until_signal(work: Coroutine[None, None, None]) -> None:
    """Run `work` until it ends, or until SIGINT or SIGTERM cancels it. Raises what it raises."""
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(work)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task


@asynccontextmanager
async def background(work: Coroutine[None, None, None]) -> AsyncIterator[None]:
    """Run `work` alongside the body, and cancel it at the end; its failure ends the body."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(work)
        try:
            yield
        finally:
            task.cancel()
