"""Where log records go: to stderr, one plain line each, so that stdout stays for answers."""

from __future__ import annotations

import logging
from typing import TextIO, cast

import structlog

from hubbub.app.printer import Printer
from hubbub.logs import STDERR, processors

__all__ = ["configure_logging"]


def configure_logging(*, debug: bool, printer: Printer | None = None) -> None:
    """For the whole process. Without `debug`, only warnings and worse.

    A process whose loop serves others gives a `printer`: then no record waits for its reader. That
    there is no reader fails no record either way.
    """
    stream = STDERR if printer is None else cast(TextIO, printer)  # it is only written to
    level = logging.DEBUG if debug else logging.WARNING
    structlog.configure(
        processors=processors(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
