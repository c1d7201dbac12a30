"""Takeovers: a person speaks for an agent for a while, and receives the agent's messages."""

from __future__ import annotations

import json
from collections.abc import Sequence

from hubbub.errors import OperationError, StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.fields import time_of
from hubbub.mods.operation import forbidden, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.records import TakeoverEnded
from hubbub.network.service import Service
from hubbub.network.services.turns.ending import Ending
from hubbub.network.services.turns.notices import EndReason
from hubbub.network.session import Session
from hubbub.network.stored import StoredTakeover
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import HandBack, ListTakeovers, TakeOver, Takeover, Takeovers
from hubbub.protocol.frames import Signal
from hubbub.protocol.operations import Done

__all__ = ["TakeoverService"]

log = get_logger(__name__)


class TakeoverService(Service):
    """Begins takeovers, and ends them when they expire. No model can call any of it."""

    def __init__(self, kernel: Kernel, ending: Ending):
        super().__init__(kernel)
        self._ending, self._takeovers = ending, kernel.state.takeovers

    def begin(self) -> None:
        """Resume the stored takeovers, or end them if they expired."""
        self._set_timer()

    def _set_timer(self) -> None:
        first = self._takeovers.next_end()
        if first is not None:
            self.timer.at(first)

    # Operations ---------------------------------------------------------------------------

    @operation(permission="admin", tool=False, idempotent=True)
    async def take_over(self, call: Caller, args: TakeOver) -> Takeover:
        """Speak for an agent for a while: its turns end, nothing wakes it, and you receive its
        messages. Messages you send with `on_behalf_of` are marked. Taking over again renews the
        takeover."""
        if call.kind != "human":
            raise forbidden("only a person can speak for an agent")
        self._check_known(args.agent)
        until = self.kernel.clock.now() + 60 * args.minutes
        return _described(await self._take(args.agent, call.participant, until))

    @operation(permission="write", tool=False, idempotent=True)
    async def hand_back(self, call: Caller, args: HandBack) -> Done:
        """Let an agent that was taken over speak for itself again. Its next prompt has the messages
        sent meanwhile. For the person who took it over, and for owners."""
        holder = self.state.takeovers.holder(args.agent)
        if call.participant != holder:
            call.require_owner()
        if holder is not None:
            await self._end(args.agent)
        else:
            self._check_known(args.agent)
        return Done()

    @operation(tool=False)
    async def list_takeovers(self, call: Caller, args: ListTakeovers) -> Takeovers:
        """List the agents that people have taken over, and until when."""
        return self._all()

    # Takeovers -------------------------------------------------------------------------------

    def _check_known(self, agent: str) -> None:
        if agent not in self.state.agents:
            text = f"agent: no agent is named {agent!r}"
            raise OperationError(ErrorCode.UNKNOWN_PARTICIPANT, text)

    async def _take(self, agent: str, person: str, until: float) -> StoredTakeover:
        """Let the person speak for the agent; its turns end, and nothing wakes it.

        Taking over again renews the takeover. Raises `OperationError` while another person speaks
        for it. On `StoreUnavailable` nothing has changed.
        """
        takeovers = self._takeovers
        async with self._ending.exclusive():
            before = takeovers.get(agent)
            if before is not None and before.by != person:
                raise OperationError(
                    ErrorCode.TAKEN_OVER,
                    f"{before.by} has taken over {agent}; it must be handed back first",
                    details={"by": before.by},
                )
            takeover = StoredTakeover(agent, person, until)
            takeovers.put(takeover)  # from here on it begins no turn
            why = EndReason.taken_over(agent, person, self.kernel.clock.now())
            try:
                await self._ending.end([agent], lambda *_: True, why, [takeover])
            except BaseException:  # nothing has ended, whatever the error
                takeovers.drop(agent)
                if before is not None:
                    takeovers.put(before)
                raise
        self._set_timer()
        self._changed()
        return takeover

    async def _end(self, agent: str) -> None:
        """End the takeover. On `StoreUnavailable` it stands."""
        async with self._ending.exclusive():
            await self.kernel.log.write(TakeoverEnded(agent))
            self._takeovers.drop(agent)
        self._changed()

    def due(self, now: float) -> float | None:
        if self._takeovers.expired():
            self.kernel.spawn(self._expire())
        return self._takeovers.next_end()

    async def _expire(self) -> None:
        """Remove the expired takeovers, which already have no effect."""
        try:
            async with self._ending.exclusive():
                agents = [takeover.agent for takeover in self._takeovers.expired()]
                if not agents:
                    return
                await self.kernel.log.write(*(TakeoverEnded(a) for a in agents))
                for agent in agents:
                    self._takeovers.drop(agent)
        except StoreUnavailable:
            log.warning("an expired takeover stays in the store until the disk works again")
            return
        self._changed()

    # Signals to people --------------------------------------------------------------------

    def joined(self, session: Session) -> None:
        if session.is_person and any(self._takeovers):
            session.write(self._signal())

    def _changed(self) -> None:
        signal = self._signal()
        for session in self.kernel.fanout.sessions_of_people():
            session.write(signal)

    def _signal(self) -> bytes:
        data = self._all().model_dump(mode="json")
        return Signal(type="takeovers", sender="hub", data=data).encoded()

    def _all(self) -> Takeovers:
        return Takeovers(takeovers=tuple(map(_described, self._takeovers)))

    def committed(self, entries: Sequence[Entry]) -> None:
        """Forward an agent's messages to the person who took it over, including what that person
        sent on another connection."""
        for entry in entries if self._takeovers else ():
            self._forward(entry)

    def _forward(self, entry: Entry) -> None:
        for takeover in self._takeovers:
            if takeover.agent != entry.draft.sender_id and not self.state.may_read(
                entry.thread, takeover.agent
            ):
                continue
            data = {"agent": takeover.agent, "message": json.loads(entry.body)}
            frame = Signal(type="overheard", sender="hub", data=data).encoded()
            for session in self.kernel.fanout.of(takeover.by):
                if session is not entry.waiter:
                    session.send_ephemeral(frame)


def _described(takeover: StoredTakeover) -> Takeover:
    return Takeover(agent=takeover.agent, by=takeover.by, until=time_of(takeover.until))
