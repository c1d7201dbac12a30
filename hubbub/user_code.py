"""Code of users that runs inside the agent: what it raises ends nothing but itself.

`sys.exit()` in a tool, a `CancelledError` that a handler raises by itself, an exception that cannot
even be written down: for the agent they are failures like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Escape", "contained", "told"]


class Escape(Exception):
    """What would have ended more than the code that raised it; that is the `__cause__`."""


@contextmanager
def contained() -> Iterator[None]:
    """Around code of a user, within a task. Raises `Escape` for what is no `Exception`.

    A task that is cancelled from outside stays cancelled, and a coroutine that is closed is closed.
    """
    task = asyncio.current_task()
    assert task is not None, "only within a task"
    before = task.cancelling()
    try:
        yield
    except Exception:
        raise
    except asyncio.CancelledError as exc:
        if task.cancelling() > before:
            raise
        raise Escape(told(exc)) from exc
    except BaseException as exc:
        if asyncio.current_task(task.get_loop()) is not task:
            raise  # the coroutine is not running: it is closed
        raise Escape(told(exc)) from exc


def told(exc: BaseException) -> str:
    """The exception's type and what it says, on one or more lines. Raises nothing."""
    if isinstance(exc, Escape):
        return str(exc)
    name = type(exc).__name__
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - `__str__` is a user's code as well
        return f"{name} (what it says cannot be read)"
    return f"{name}: {text}" if text else name
