"""This process: its event loop, its garbage collector, and where its log records go."""

from __future__ import annotations

import gc
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO, TypeVar, cast

if TYPE_CHECKING:
    from hubbub.app.printer import Printer

__all__ = ["configure_logging", "loading", "run_loop"]

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
