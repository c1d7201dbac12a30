"""Waiting with an end, also in the middle of a cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["done_within"]


async def done_within(work: Coroutine[Any, Any, object], seconds: float) -> bool:
    """Whether `work` ends within `seconds`; it is cancelled if it does not. Raises what it raises.

    For what is tidied up on the way out. Python before 3.11.3 (gh-102780) lets `asyncio.timeout`
    raise CancelledError in place of TimeoutError in a task that is being cancelled, so that what
    was to be done after the deadline would never be done.
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
