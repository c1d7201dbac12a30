"""Whether what the hub is given can be stored: monitors ask, and the log has the answer."""

from __future__ import annotations

import asyncio

from hubbub.clock import Clock
from hubbub.errors import StoreUnavailable
from hubbub.network.log import Log
from hubbub.network.records import Forgotten, Remembered

__all__ = ["Readiness"]

FRESH_S = 5.0
"""Seconds that what is known holds: who asks all the time must not make the disk work."""
PATIENCE_S = 5.0
"""Seconds that a write may take."""
_TRIAL = (Remembered("hub", "trial", f'"{"." * 16_000}"'), Forgotten("hub", "trial"))
"""Goes the way of a large message, and leaves nothing behind."""


class Readiness:
    """Knows whether the log can be written, from what it did last, or by trying."""

    def __init__(self, log: Log, clock: Clock):
        self._log, self._clock = log, clock
        self._writable = True
        self._known_at = float("-inf")
        self._trying = asyncio.Lock()

    def refused(self) -> None:
        """The store has just refused something."""
        self._know(False)

    async def writable(self) -> bool:
        async with self._trying:
            if self._clock.monotonic() - self._known_at >= FRESH_S:
                try:
                    async with asyncio.timeout(PATIENCE_S):
                        await self._log.write(lambda head: _TRIAL)
                except (StoreUnavailable, TimeoutError):
                    self._know(False)
                else:
                    self._know(True)
            return self._writable

    def _know(self, writable: bool) -> None:
        self._writable, self._known_at = writable, self._clock.monotonic()
