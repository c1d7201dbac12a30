"""Where log records go: to stderr, one plain line each, so that stdout stays for answers."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, cast

import structlog

from hubbub.app.printer import Printer

__all__ = ["configure_logging"]


def configure_logging(*, debug: bool, printer: Printer | None = None) -> None:
    """For the whole process. Without `debug`, only warnings and worse.

    A process whose loop serves others gives a `printer`: then no record waits for its reader, and
    none fails because there is none.
    """
    stream = sys.stderr if printer is None else cast(TextIO, printer)  # it is only written to
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(key_order=["level", "event"], drop_missing=True),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
