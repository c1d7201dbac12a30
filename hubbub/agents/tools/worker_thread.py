"""Running a plain function in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

from hubbub.user_code import Escape, describe_error

__all__ = ["run_in_thread"]

T = TypeVar("T")


async def run_in_thread(function: Callable[[], T]) -> T:
    """The function's result, from a new thread with the same context variables.

    Raises what the function raises, and `Escape` for exceptions that would end more than the caller
    (such as SystemExit).

    Cancelling abandons the thread: it runs on, and its result is discarded. Unlike threads of
    `asyncio.to_thread`, it does not keep the process from exiting.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # it is T when there is no error

    def work() -> None:
        result: T | None = None
        error: Exception | None = None
        try:
            result = context.run(function)
        except StopIteration as exc:  # a future cannot carry it
            error = RuntimeError(f"the function raised StopIteration: {exc}")
        except Exception as exc:  # noqa: BLE001 - handed over to the caller
            error = exc
        except BaseException as exc:  # noqa: BLE001 - likewise, wrapped
            error = Escape(describe_error(exc))
            error.__cause__ = exc
        if not loop.is_closed():
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=work, daemon=True, name=f"hubbub {function!r:.40}").start()
    return await future
