"""Readiness for monitors: whether the hub can write to its log."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from hubbub.clock import Clock
from hubbub.errors import StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.log import Entry, Log
from hubbub.network.records import MemoryDeleted, MemoryWritten

__all__ = ["Readiness"]

log = get_logger(__name__)

FRESH_S = 5.0
"""Seconds that a result is cached, so that frequent checks do not load the disk."""
PATIENCE_S = 5.0
"""Timeout of a write in seconds."""
_TRIAL = (MemoryWritten("hub", "trial", f'"{"." * 16_000}"'), MemoryDeleted("hub", "trial"))
"""A write as large as a large message, which leaves nothing behind."""


class Readiness:
    """Reports whether the log can be written, from its last write or a trial write."""

    def __init__(self, log: Log, clock: Clock):
        self._log, self._clock = log, clock
        self._refusal = ""
        """Why the store refused the last batch; empty after a success."""
        self._writable = True
        self._known_at = float("-inf")
        self._trying = asyncio.Lock()

    def committed(self, entries: Sequence[Entry]) -> None:
        """The store wrote a batch."""
        if self._refusal:
            self._refusal = ""
            log.warning("the store accepts writes again")

    def refused(self, entries: Sequence[Entry], error: Exception) -> None:
        """The store refused a batch."""
        if not isinstance(error, StoreUnavailable):
            log.error("the store refused a batch", exc_info=error)
        elif str(error) != self._refusal:
            log.error("the store refuses writes", reason=str(error))
        self._refusal = str(error)
        self._know(False)

    async def writable(self) -> bool:
        async with self._trying:
            if self._clock.monotonic() - self._known_at >= FRESH_S:
                try:
                    async with asyncio.timeout(PATIENCE_S):
                        await self._log.write(*_TRIAL)
                except (StoreUnavailable, TimeoutError):
                    self._know(False)
                else:
                    self._know(True)
            return self._writable

    def _know(self, writable: bool) -> None:
        self._writable, self._known_at = writable, self._clock.monotonic()
