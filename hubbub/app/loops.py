"""Event loops: uvloop where it exists."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

__all__ = ["run_loop"]

T = TypeVar("T")


def run_loop(work: Coroutine[None, None, T]) -> T:
    """Run a program's coroutine to its end."""
    with asyncio.Runner(loop_factory=_factory()) as runner:
        return runner.run(work)


def _factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:  # not made for this platform
        return None
    return uvloop.new_event_loop
