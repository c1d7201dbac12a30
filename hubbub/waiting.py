"""Waiting for the end of tasks, also during a cancellation; outcomes of tasks and futures."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["cancel", "done_within", "first_error", "settle"]

T = TypeVar("T")


async def done_within(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Whether `work` ends within `seconds`; otherwise it is cancelled. Raises what it raises.

    For cleanup. Before Python 3.11.3 (gh-102780), `asyncio.timeout` raises CancelledError instead
    of TimeoutError in a task that is being cancelled, so code after the deadline would not run.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
    finally:
        task.cancel()
    await asyncio.wait({task})
    if task.cancelled():
        return False
    task.result()
    return True


async def cancel(*tasks: asyncio.Task[Any]) -> None:
    """Cancel the tasks, and wait until each has ended, in whatever way."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def settle(future: asyncio.Future[T], outcome: T | BaseException) -> None:
    """Set the future's result or exception, unless it is done."""
    if future.done():
        return
    if isinstance(outcome, BaseException):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)


def first_error(error: BaseException) -> BaseException:
    """The first error within an exception group, however nested; any other error unchanged."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
