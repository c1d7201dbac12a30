"""People who speak for agents: taking over, handing back, and hearing what reaches the agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.network.log import Entry
from hubbub.network.people.ending_notices import Why
from hubbub.network.records import TakeoverEnded, TakeoverSet
from hubbub.network.stored import StoredTakeover
from hubbub.network.timer import Timer
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Signal

if TYPE_CHECKING:
    from hubbub.network.hub import Hub

__all__ = ["SpeakingFor"]

log = get_logger(__name__)


class SpeakingFor:
    """Gives the leases, and ends them when their time has passed."""

    def __init__(self, hub: Hub):
        self._hub, self._leases = hub, hub.state.takeovers
        self._timer = Timer(hub.steady, self._due)

    def begin(self) -> None:
        """The hub runs: leases that were read from the store go on, or end."""
        self._look_at_next()

    def _look_at_next(self) -> None:
        first = self._leases.next_end()
        if first is not None:
            self._timer.at(first)

    def stop(self) -> None:
        """End nothing more: the next start of the hub does."""
        self._timer.stop()

    def look(self) -> None:
        """Look at the time now: for clocks that are moved by hand."""
        self._timer.look()

    async def take(self, agent: str, person: str, until: float) -> StoredTakeover:
        """Let the person speak for the agent; its turns end, and nothing wakes it.

        Taking again renews the lease. Raises `OperationError` while somebody else speaks for it,
        and `StoreUnavailable`: then all is as before.
        """
        hub, leases = self._hub, self._leases
        async with hub.ending.alone():
            before = leases.get(agent)
            if before is not None and before.by != person:
                raise OperationError(
                    ErrorCode.TAKEN_OVER,
                    f"{before.by} speaks for {agent} at present; it must be handed back first",
                    details={"by": before.by},
                )
            lease = StoredTakeover(agent, person, until)
            leases.put(lease)  # from here on nothing of its own begins
            why = Why.taken_over(agent, person, hub.clock.now())
            try:
                await hub.ending.end([agent], _all, why, [TakeoverSet(*lease)])
            except BaseException:  # whatever it was: nothing has ended
                leases.drop(agent)
                if before is not None:
                    leases.put(before)
                raise
        self._look_at_next()
        hub.news.takeovers_changed()
        return lease

    async def give_back(self, agent: str) -> None:
        """The agent speaks for itself again. Raises `StoreUnavailable`: then it does not."""
        async with self._hub.ending.alone():
            await self._hub.writes.write(lambda head: [TakeoverEnded(agent)])
            self._leases.drop(agent)
        self._hub.news.takeovers_changed()

    def _due(self, now: float) -> float | None:
        if self._leases.expired():
            self._hub.spawn(self._expire())
        return self._leases.next_end()

    async def _expire(self) -> None:
        """End the leases whose time has passed. They count for nothing already."""
        try:
            async with self._hub.ending.alone():
                agents = [lease.agent for lease in self._leases.expired()]
                if not agents:
                    return
                await self._hub.writes.write(lambda head: [TakeoverEnded(a) for a in agents])
                for agent in agents:
                    self._leases.drop(agent)
        except StoreUnavailable:
            log.warning("a take-over that is over stays in the store until the disk works again")
            return
        self._hub.news.takeovers_changed()

    # What reaches the agents --------------------------------------------------------------

    def overhear(self, entry: Entry) -> None:
        """A message is durable: tell it to those who speak for somebody whom it reaches, or who
        have said it on another connection."""
        hub = self._hub
        for lease in self._leases:
            if lease.agent != entry.draft.sender_id and not hub.state.may_read(
                entry.thread, lease.agent
            ):
                continue
            data = {"agent": lease.agent, "message": json.loads(entry.body)}
            frame = Signal(type="overheard", sender="hub", data=data)
            told = frame.model_dump_json(exclude_none=True).encode()
            for session in hub.fanout.of(lease.by):
                if session is not entry.asker:
                    session.whisper(told)


def _all(agent: str, thread_id: str, turn: str) -> bool:
    return True
