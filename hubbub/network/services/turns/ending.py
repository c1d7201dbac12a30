"""Ends agents' work on their behalf: running turns, and wakes that have no turn yet.

    commit pending begins -> collect the turns in scope -> one commit: the stop, the turn ends,
    the notices -> signal the agents, ahead of anything else queued

The caller first puts the barrier against new turns (a stop or a takeover) into memory, and removes
it if this fails. A failure leaves no trace.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from itertools import groupby
from typing import NamedTuple

from hubbub.errors import StoreUnavailable
from hubbub.logs import get_logger
from hubbub.mods.fields import time_of
from hubbub.network.kernel import Kernel
from hubbub.network.log import Entry
from hubbub.network.queries import (
    LatestTurns,
    PendingWakes,
    PromptsOf,
    TurnById,
    WakeOf,
    WakesAt,
)
from hubbub.network.records import Record, TurnBegun, TurnEnded
from hubbub.network.running_turns import EndedTurn
from hubbub.network.services.turns.notices import EndReason, TurnNotices, unanswered
from hubbub.network.stored import NO_PROMPTS, PendingRow, StoredEvent, StoredPrompts, StoredTurn
from hubbub.network.wakes import Decision
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step, Turn, TurnEnd, TurnStart

__all__ = ["EndReason", "Ending", "Outcome", "TurnFilter", "turn_record"]

log = get_logger(__name__)

TurnFilter = Callable[[str, str, str], bool]
"""Selects the turns to end, by agent, canonical thread id, and turn id."""

RECENT_TURNS = 128
"""Turns of earlier runs that a starting hub searches for those it ended."""


class Outcome(NamedTuple):
    turns: int
    """Running turns that were ended."""
    wakes: int
    """Pending wakes that were dropped."""


class _UnfinishedTurn(NamedTuple):
    """A turn to end. Ending one that has not begun creates its record."""

    turn: str
    agent: str
    thread_id: str
    begun: bool
    stored: StoredTurn | None
    """The record so far of a turn that has begun."""
    messages: tuple[Message, ...]
    """The messages that woke a turn that has not begun."""
    wake_ids: tuple[str, ...]
    """The ids of all its wakes: the agent can know the turn by any of them."""
    waiting: tuple[Message, ...]
    """The messages that are owed an answer."""


class Ending:
    """Ends turns for stops, breakers and takeovers, one at a time."""

    def __init__(self, kernel: Kernel):
        self._kernel, self._state, self._store = kernel, kernel.state, kernel.store
        self._lock = asyncio.Lock()
        self._notices = TurnNotices(kernel)
        self._head_at_start = kernel.log.head
        self.listeners: Sequence[Callable[[Sequence[EndedTurn]], None]] = ()
        """Called with the ended turns and wakes once their ends are durable."""

    # Mutual exclusion ---------------------------------------------------------------------

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Hold off every other stop, resume and takeover."""
        async with self._lock:
            yield

    async def wait_until_idle(self) -> None:
        """Wait until no stop is in progress, so that it is settled which turns continue."""
        while self._lock.locked():
            async with self._lock:
                pass

    # The start of the hub -----------------------------------------------------------------

    async def start(self) -> None:
        """Load the turns that were ended recently, and finish what a crashed hub left undone."""
        turns, stops = self._state.turns, self._state.stops
        for stored in await self._store.read(LatestTurns(None, RECENT_TURNS)):
            end = TurnEnd.model_validate_json(stored.end) if stored.end is not None else None
            if end is not None and end.by is not None:
                turns.end(EndedTurn(stored.id, stored.agent, "stopped", end.by, end.reason))
        if stops.standing:
            await self._enforce_stops(tuple(self._state.agents))

    # Ending -------------------------------------------------------------------------------

    async def end(
        self,
        agents: Iterable[str],
        in_scope: TurnFilter,
        why: EndReason,
        records: Sequence[Record] = (),
    ) -> Outcome:
        """End the turns of these agents that are `in_scope`, in one commit with `records`.

        Call it inside `exclusive`. If it raises `StoreUnavailable`, nothing was ended.
        """
        await self._kernel.log.write()  # so that the store has every turn begun by now
        unfinished = [
            each for agent in agents for each in await self._turns_in_scope(agent, in_scope)
        ]
        now = self._kernel.clock.now()
        ended = [
            EndedTurn(name, each.agent, why.code, why.by, why.record_reason)
            for each in unfinished
            for name in each.wake_ids
        ]
        for each in ended:
            self._state.turns.end(each)
        ends = [record for each in unfinished for record in _records(each, why, now)]
        if unfinished or records:
            waiting = [(each.agent, message) for each in unfinished for message in each.waiting]
            undone = asyncio.Event()
            self._notices.post(why, [each.agent for each in unfinished], waiting, undone.is_set)
            try:
                await self._kernel.log.write(*records, *ends)
            except StoreUnavailable:
                undone.set()
                self._state.turns.spare(each.turn for each in ended)
                raise
        self._after_commit(unfinished, ended, why)
        return Outcome(
            sum(each.begun for each in unfinished),
            sum(len(each.wake_ids) for each in unfinished if not each.begun),
        )

    def _after_commit(
        self, unfinished: Sequence[_UnfinishedTurn], ended: Sequence[EndedTurn], why: EndReason
    ) -> None:
        """Notify agents, mods and listeners of a durable end, ahead of anything else queued."""
        for each in unfinished:
            self._state.turns.ended(each.turn)
            self._kernel.notifications.turn_ended(
                each.turn, each.agent, each.thread_id, "cancelled"
            )
            if each.stored is not None:
                steps = map(Step.model_validate_json, each.stored.steps)
                self._kernel.metrics.turn_ended("cancelled", steps)
        if self._kernel.pipeline.watches_turns:
            begun = [each.turn for each in unfinished if each.begun]
            self._kernel.spawn(self._notify_mods(begun))
        for agent, of_agent in groupby(ended, key=lambda each: each.agent):
            self.send_stop(agent, [each.turn for each in of_agent], why)
        self.notify(ended)

    def notify(self, ended: Sequence[EndedTurn]) -> None:
        """Pass on durable ends. Even a turn that ended by itself can leave something open."""
        for listener in self.listeners:
            listener(ended)

    async def _notify_mods(self, turns: Sequence[str]) -> None:
        try:
            for turn in turns:
                stored = await self._store.read(TurnById(turn))
                if stored is not None:
                    record = turn_record(stored, await self._store.read(PromptsOf(turn)))
                    self._kernel.pipeline.turn_ended(record)
        except StoreUnavailable:
            log.warning("mods missed the end of some turns", turns=list(turns))

    def send_stop(self, agent: str, turns: Sequence[str], why: EndReason | EndedTurn) -> None:
        """Signal an agent to cancel its work on these turns."""
        data = {"turns": list(turns), "code": why.code, "by": why.by, "reason": why.reason}
        frame = Signal(type="stop_turns", sender="hub", data=data).encoded()
        for session in self._kernel.fanout.of(agent):
            session.write(frame)

    def resend_stops(self, agent: str) -> None:
        """Repeat the stop signals to an agent that reconnected, as it may have missed them."""
        ended = self._state.turns.ended_of(agent)[-RECENT_TURNS:]
        for why, of_why in groupby(ended, key=lambda each: each[2:]):
            turns = [each.turn for each in of_why]
            self.send_stop(agent, turns, EndedTurn("", agent, *why))

    async def without_ended_wake(self, participant: str, event: StoredEvent) -> StoredEvent:
        """The event for a participant that reads the log forward, without its wake if that turn has
        ended, perhaps before it began."""
        if event.reply is None or event.turn is None:
            return event
        over = self._state.turns.hub_end(event.turn) is not None
        if not over and event.seq <= self._head_at_start:
            wake = await self._store.read(WakeOf(participant, event.seq))
            over = wake is not None and wake.state == "ended"
        return event._replace(reply=None, turn=None) if over else event

    # Turns to end -------------------------------------------------------------------------

    async def _turns_in_scope(self, agent: str, in_scope: TurnFilter) -> list[_UnfinishedTurn]:
        """The agent's turns to end; the pending wakes of a thread count as one turn."""
        rows = await self._store.read(PendingWakes(agent, self._kernel.log.head))
        messages = {row.seq: Message.model_validate_json(row.body) for row in rows}
        begun = {row.started: messages[row.seq].thread_id for row in reversed(rows) if row.started}
        for turn, running in self._state.turns:
            if running.agent == agent:
                begun[turn] = running.thread_id
        unfinished = [
            await self._running_turn(turn, agent, thread_id, rows)
            for turn, thread_id in begun.items()
            if in_scope(agent, thread_id, turn)
        ]
        waiting: dict[str, list[PendingRow]] = {}
        for row in rows:
            thread_id = messages[row.seq].thread_id
            if not row.started and in_scope(agent, thread_id, row.turn):
                waiting.setdefault(thread_id, []).append(row)
        for thread_id, dropped in waiting.items():
            unfinished.append(_pending_turn(agent, thread_id, dropped, messages))
        return unfinished

    async def _running_turn(
        self, turn: str, agent: str, thread_id: str, rows: Sequence[PendingRow]
    ) -> _UnfinishedTurn:
        stored = await self._store.read(TurnById(turn))
        waiting = await unanswered(self._store, stored) if stored is not None else []
        wake_ids = dict.fromkeys([turn, *(row.turn for row in rows if row.started == turn)])
        return _UnfinishedTurn(
            turn, agent, thread_id, True, stored, (), tuple(wake_ids), tuple(waiting)
        )

    # Late wakes ---------------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """Suppress the wakes of messages that were in flight when a stop was set."""
        for entry in entries if self._state.stops.standing else ():
            self._suppress_wakes(entry)

    def _suppress_wakes(self, entry: Entry) -> None:
        stops, thread_id = self._state.stops, entry.thread.id
        agents = list[str]()
        for n, (agent, _, reply) in enumerate(entry.decisions):
            reason = stops.of(agent, thread_id) if reply is not None else None
            if reason is not None:
                entry.decisions[n] = Decision(agent, reason, None)
                agents.append(agent)
        if agents:
            self._kernel.spawn(self._drop_late_wakes(agents, thread_id, entry.seq))

    async def _drop_late_wakes(self, agents: Sequence[str], thread_id: str, seq: int) -> None:
        """Drop the wakes of the message at `seq` for these agents, which never received them."""
        try:
            async with self.exclusive():
                await self._enforce_stops(agents)
                wakes = await self._store.read(WakesAt([seq]))
        except StoreUnavailable:
            log.warning("late wakes stay until the hub restarts", agents=agents)
            return
        for agent in agents:
            wake = wakes.get((seq, agent))
            if wake is not None and wake.state == "pending":
                # The disk refused the stop, so the wake stands: agents receive it on reconnect.
                for session in list(self._kernel.fanout.of(agent)):
                    session.close(CloseCode.STATE_LOST, "a wake was not delivered; reconnect")

    async def _enforce_stops(self, agents: Collection[str]) -> None:
        """End everything that a standing stop or takeover forbids, however it got past them."""
        for stop in self._state.stops:
            why = EndReason.of(stop, again=True)
            await self.end(agents, self._state.stops.stopper(stop), why)
        for takeover in self._state.takeovers:
            if takeover.agent in agents:
                why = EndReason.taken_over(takeover.agent, takeover.by)
                await self.end([takeover.agent], lambda *_: True, why)


def _pending_turn(
    agent: str, thread_id: str, rows: Sequence[PendingRow], messages: dict[int, Message]
) -> _UnfinishedTurn:
    woken_by = tuple(messages[row.seq] for row in rows)
    waiting = tuple(messages[row.seq] for row in rows if row.reply == "required")
    wake_ids = tuple(row.turn for row in rows)
    return _UnfinishedTurn(wake_ids[0], agent, thread_id, False, None, woken_by, wake_ids, waiting)


def _records(unfinished: _UnfinishedTurn, why: EndReason, now: float) -> list[Record]:
    """The records of a turn's end, and of its start if it never began."""
    end = TurnEnd(id=unfinished.turn, outcome="cancelled", reason=why.record_reason, by=why.by)
    ended = TurnEnded(unfinished.turn, now, end.model_dump_json())
    if unfinished.begun:
        return [ended]
    ids = tuple(message.id for message in unfinished.messages)
    start = TurnStart(id=unfinished.turn, thread_id=unfinished.thread_id, messages=ids)
    seqs = tuple(message.seq for message in unfinished.messages)
    return [TurnBegun(unfinished.turn, unfinished.agent, now, start.model_dump_json(), seqs), ended]


def turn_record(stored: StoredTurn, prompts: StoredPrompts = NO_PROMPTS) -> Turn:
    """A stored turn as the protocol shows it."""
    return Turn(
        start=TurnStart.model_validate_json(stored.start),
        agent=stored.agent,
        started_at=time_of(stored.started_at),
        attempts=stored.attempts,
        system_prompt=prompts.system,
        prompt=prompts.user,
        steps=tuple(Step.model_validate_json(step) for step in stored.steps),
        end=TurnEnd.model_validate_json(stored.end) if stored.end is not None else None,
        ended_at=time_of(stored.ended_at),
        sent=tuple(f"m{seq}" for seq in stored.sent),
    )
