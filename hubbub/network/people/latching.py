"""The breaker at work: turns are counted as they begin, and a thread with too many is latched."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.errors import StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.people.breaker import Breaker
from hubbub.network.people.ending_notices import Why
from hubbub.network.people.halts import BREAKER, refusal
from hubbub.network.records import HaltSet
from hubbub.network.stored import StoredHalt

if TYPE_CHECKING:
    from hubbub.network.hub import Hub

__all__ = ["Latching"]

log = get_logger(__name__)


class Latching:
    """Latches threads; people release them."""

    def __init__(self, hub: Hub):
        self._hub = hub
        self._breaker = Breaker(hub.config.breaker)

    def count(self, thread_id: str, turn: str) -> None:
        """A turn is about to begin. Raises `OperationError` if it is one too many."""
        hub = self._hub
        turns = self._breaker.count(thread_id, turn, hub.clock.monotonic())
        if turns is None:
            return
        halt = StoredHalt(BREAKER, thread_id, "hub", "", hub.clock.now(), turns)
        hub.state.halts.put(halt)
        hub.spawn(self._latch(halt))
        raise refusal(halt)

    async def _latch(self, halt: StoredHalt) -> None:
        hub = self._hub
        why = Why.of(halt, within_s=hub.config.breaker.within)
        within = hub.state.halts.stopper(halt)
        try:
            async with hub.ending.alone():
                await hub.ending.end(tuple(hub.state.agents), within, why, [HaltSet(*halt)])
        except StoreUnavailable:
            hub.state.halts.lift(halt.scope, halt.target)
            log.warning("the breaker could not latch", thread=halt.target)
        else:
            hub.news.stops_changed()

    def forget(self, thread_id: str) -> None:
        """The thread was released: its turns are counted from nothing."""
        self._breaker.forget(thread_id)
