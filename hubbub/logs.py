"""The log of Hubbub's own parts: one plain line a record, to stderr, and it never fails anybody.

A program that has configured structlog gets the records its own way. Without that (a hub inside a
test, an agent in a script) structlog would print to stdout, where answers belong.
"""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TextIO, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

__all__ = ["STDERR", "Unfailing", "get_logger", "processors"]


def processors() -> list[Processor]:
    """What makes a line of a record."""
    import structlog  # with all that it loads; most commands have nothing to log

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["level", "event"], drop_missing=True),
    ]


class Unfailing:
    """stderr as it is at the moment. What it does not take is lost, and nobody hears of it.

    A record is written in the middle of a call or of a connection, which must not end because
    whoever read stderr has gone (OSError), because it was closed (ValueError), or because there is
    none (None, in a program without a console).
    """

    def write(self, text: str) -> int:
        """Returns the text's length, as files do."""
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.flush()


STDERR = cast(TextIO, Unfailing())  # it is only written to
"""One for all: structlog keeps a lock for each file, so that the threads' lines do not mix."""


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger that looks for its configuration whenever it is used, so modules can keep one."""
    return cast("FilteringBoundLogger", _Lazy(name))


class _Lazy:
    """Passes everything on to structlog's logger, or to ours while structlog is not configured."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, method: str) -> object:
        import structlog

        configured = structlog.is_configured()
        logger = structlog.get_logger(self._name) if configured else _ours()
        return getattr(logger, method)


def _ours() -> FilteringBoundLogger:
    import structlog

    return cast(
        "FilteringBoundLogger",
        structlog.wrap_logger(
            structlog.PrintLogger(STDERR),
            processors=processors(),
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        ),
    )
