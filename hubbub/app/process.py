"""This process: its event loop, its garbage collector, and where what it prints and logs goes."""

from __future__ import annotations

import gc
import io
import os
import select
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Self, TextIO, TypeVar, cast

__all__ = ["Printer", "configure_logging", "loading", "run_loop"]


YOUNG, MIDDLE, OLD = 20_000, 20, 50
"""Objects after which each generation is looked at. Messages are made of objects that die by
themselves when they have been sent; with the defaults, a burst of them has the collector walk
through everything that the hub holds, again and again."""
T = TypeVar("T")


@contextmanager
def loading() -> Iterator[None]:
    """Around the imports of a program and whatever else lives to its end: none of that is looked
    at, neither while it is made, which takes a sixth of the time, nor later.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.set_threshold(YOUNG, MIDDLE, OLD)
        gc.enable()


def run_loop(work: Coroutine[None, None, T]) -> T:
    """Run a program's coroutine to its end, with uvloop where that exists."""
    import asyncio

    try:
        import uvloop
    except ImportError:  # not made for this platform
        return asyncio.run(work)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def configure_logging(*, debug: bool, printer: Printer | None = None) -> None:
    """Log records go to stderr, one plain line each, so that stdout stays for answers. Without
    `debug`, only warnings and worse.

    A process whose loop serves others gives a `printer`: then no record waits for its reader. That
    there is no reader fails no record either way.
    """
    import logging

    import structlog

    from hubbub.logs import STDERR, processors

    stream = STDERR if printer is None else cast(TextIO, printer)  # it is only written to
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=processors(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )


MOST = 4 * 1024 * 1024
"""Characters that wait for a reader; what comes on top is left out and counted."""
CLOSE_WITHIN_S = 0.5
"""Seconds that the end waits for a reader who does not read."""


class Printer:
    """Writes to `stream` without ever holding up its caller.

    A terminal that was stopped (Ctrl-S) or a program that does not read its pipe holds up a thread
    and nothing else. What does not fit then is left out; `gap(count)` is the text that says so. A
    reader that has gone away gets nothing more. Characters that the stream's encoding lacks
    become question marks.
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(CLOSE_WITHIN_S)

    def write(self, text: str) -> int:
        """Have `text` written soon. Returns its length, as files do."""
        with self._changed:
            if self._left_out or self._size + len(text) > self._most:
                self._left_out += 1
            elif not self._closed:
                self._waiting.append(text)
                self._size += len(text)
                self._changed.notify()
        return len(text)

    def flush(self) -> None:
        """Does nothing: a flush would wait for the reader."""

    def _run(self) -> None:
        while (text := self._next()) is not None:
            try:
                _write(self._stream, text)
            except (OSError, ValueError):  # the reader has gone, or the stream was closed
                with self._changed:
                    self._closed = True
                    self._waiting.clear()
                return

    def _next(self) -> str | None:
        """All that waits, and what to say about the rest; None at the end."""
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

    Past the stream's own buffer: Python empties that at its end, and would wait for the reader.
    """
    data = text.encode(stream.encoding or "utf-8", "replace")
    try:
        fd = stream.fileno()
    except io.UnsupportedOperation:  # it stands for no file
        stream.write(data.decode(stream.encoding or "utf-8"))
        return
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:  # somebody made the terminal so
            select.select([], [fd], [])
