"""This process: its event loop, garbage collector, output and logging."""

from __future__ import annotations

import gc
import io
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Self, TextIO, TypeVar, cast

__all__ = ["Printer", "configure_logging", "loading", "run_loop"]


YOUNG, MIDDLE, OLD = 20_000, 20, 50
"""Thresholds of the garbage collector. Messages consist of objects that are freed by reference
counting once they are sent; with the defaults, a burst of messages makes the collector traverse
everything that the hub holds, again and again."""
T = TypeVar("T")


@contextmanager
def loading() -> Iterator[None]:
    """Wrap imports and other allocations that live until exit, to exclude them from garbage
    collection both during loading, where it takes a sixth of the time, and later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG, MIDDLE, OLD)
        gc.enable()


def run_loop(work: Coroutine[None, None, T]) -> T:
    """Run a program's coroutine to its end, with uvloop if available."""
    import asyncio

    try:
        import uvloop
    except ImportError:  # not available on this platform
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def configure_logging(*, debug: bool, printer: Printer | None = None) -> None:
    """Write log records to stderr, one plain line each, and keep stdout for answers. Without
    `debug`, only warnings and above.

    A process whose loop serves others passes a `printer`, so that records never block on a slow
    reader. A missing reader is ignored in either case.
    """
    import logging

    import structlog

    from hubbub.logs import STDERR, processors

    stream = STDERR if printer is None else cast(TextIO, printer)  # only `write` is used
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=processors(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


MOST = 4 * 1024 * 1024
"""Characters that are buffered for a slow reader; further lines are dropped and counted."""
CLOSE_WITHIN_S = 0.5
"""Seconds that closing waits for a slow reader."""


class Printer:
    """Writes to `stream` without ever blocking its caller.

    A stopped terminal (Ctrl-S) or a program that does not read its pipe blocks only a thread. Text
    beyond the buffer is dropped; `gap(count)` is the text to write instead. When the reader has
    gone, writing stops. Characters that the stream's encoding lacks become question marks.
    """

    def __init__(self, stream: TextIO, gap: Callable[[int], str], *, most: int = MOST):
        self._stream, self._gap, self._most = stream, gap, most
        self._waiting: deque[str] = deque()
        self._size = self._left_out = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="printer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(CLOSE_WITHIN_S)

    def write(self, text: str) -> int:
        """Queue `text` for writing. Returns its length, as files do."""
        with self._changed:
            if self._left_out or self._size + len(text) > self._most:
                self._left_out += 1
            elif not self._closed:
                self._waiting.append(text)
                self._size += len(text)
                self._changed.notify()
        return len(text)

    def flush(self) -> None:
        """Does nothing: a flush would block on the reader."""

    def _run(self) -> None:
        while (text := self._next()) is not None:
            try:
                _write(self._stream, text)
            except (OSError, ValueError):  # the reader is gone, or the stream was closed
                with self._changed:
                    self._closed = True
                    self._waiting.clear()
                return

    def _next(self) -> str | None:
        """All buffered text and the gap, if any; None at the end."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if not self._waiting:
                return None
            text = "".join(self._waiting)
            left_out, self._left_out, self._size = self._left_out, 0, 0
            self._waiting.clear()
        return text + self._gap(left_out) if left_out else text


def _write(stream: TextIO, text: str) -> None:
    """Write all of `text`.

    Bypasses the stream's own buffer, which Python flushes at exit, where it would block on the
    reader.
    """
    data = text.encode(stream.encoding or "utf-8", "replace")
    try:
        fd = stream.fileno()
    except io.UnsupportedOperation:  # not a real file
        stream.write(data.decode(stream.encoding or "utf-8"))
        return
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # another program made the terminal non-blocking
            select.select([], [fd], [])
