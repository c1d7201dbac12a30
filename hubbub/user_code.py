"""Users' code that runs inside the agent, isolated so that its exceptions end nothing else.

`sys.exit()` in a tool, a `CancelledError` raised by a handler itself, an exception that cannot even
be formatted: for the agent they are failures like any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Escape", "contained", "describe_error"]


class Escape(Exception):
    """Replaces an exception that would have ended more than the user's code; that is the
    `__cause__`."""


@contextmanager
def contained() -> Iterator[None]:
    """Isolates a user's code in a task. Raises `Escape` for exceptions that are not an `Exception`.

    Cancelling the task from outside still works, as does closing a coroutine.
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
        raise Escape(describe_error(exc)) from exc
    except BaseException as exc:
        if asyncio.current_task(task.get_loop()) is not task:
            raise  # the coroutine is not running: it is closed
        raise Escape(describe_error(exc)) from exc


def describe_error(exc: BaseException) -> str:
    """The exception's type and message, on one or more lines; of a group, those of its exceptions.
    Raises nothing."""
    if isinstance(exc, Escape):
        return str(exc)
    if isinstance(exc, BaseExceptionGroup):
        return "; ".join(map(describe_error, exc.exceptions))
    name = type(exc).__name__
    try:
        text = str(exc)
    except Exception:  # noqa: BLE001 - `__str__` is a user's code as well
        return f"{name} (its message cannot be read)"
    return f"{name}: {text}" if text else name
