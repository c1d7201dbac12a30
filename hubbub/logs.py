"""Hubbub's own log: one plain line per record, to stderr, which never raises.

A program that configures structlog gets the records its own way. Without that (a hub inside a test,
an agent in a script) structlog would print to stdout, which is for results.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger, Processor

__all__ = ["STDERR", "Unfailing", "get_logger", "log_failure", "processors"]


def processors() -> list[Processor]:
    """The processors that format a record as a line."""
    import structlog  # slow to import, and most commands log nothing

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.format_exc_info,
        structlog.processors.KeyValueRenderer(key_order=["level", "event"], drop_missing=True),
    ]


class Unfailing:
    """The current stderr. Text that cannot be written is silently lost.

    Records are written in the middle of calls and connections, which must not fail because the
    reader of stderr is gone (OSError), it was closed (ValueError), or there is none (None, in a
    program without a console).
    """

    def write(self, text: str) -> int:
        """Return the text's length, as files do."""
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.flush()


STDERR = cast(TextIO, Unfailing())  # it is only written to
"""Shared, as structlog has a lock per file so that lines of threads do not mix."""


def get_logger(name: str) -> FilteringBoundLogger:
    """A logger that looks up its configuration on each use, so that modules can have a global
    one."""
    return cast("FilteringBoundLogger", _Lazy(name))


class _Lazy:
    """Delegates to structlog's logger, or to ours while structlog is not configured."""

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


log = get_logger(__name__)


async def log_failure(work: Coroutine[Any, Any, None]) -> None:
    """Run the work of a task, and log its failure, so that it does not end other tasks."""
    try:
        await work
    except Exception:
        log.exception("task failed")
