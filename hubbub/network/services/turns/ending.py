"""Ending what agents do, in their place: turns that run, and wakes that wait for one.

    what was begun is committed -> what is in the scope is found -> one commit: the stop, the ends
    of the turns, the notices -> the agents are told, whatever else waits

Whoever ends something has put what keeps new turns from beginning (a stop, a take-over) into memory
before, and takes it back if this fails: then nothing has happened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import groupby
from typing import NamedTuple

from hubbub.errors import StoreUnavailable
from hubbub.logs import get_logger
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

__all__ = ["EndReason", "Ending", "Outcome", "Within", "turn_record"]

log = get_logger(__name__)

Within = Callable[[str, str, str], bool]
"""Whether a turn is to end: its agent, its thread (canonical), its id."""

LATELY = 128
"""Turns of earlier runs of the hub that are looked through at its start for those that it ended."""


class Outcome(NamedTuple):
    turns: int
    """That ran, and were ended."""
    wakes: int
    """That waited, and were dropped."""


class _UnfinishedTurn(NamedTuple):
    """A turn to be ended. One that had not begun gets its record by this."""

    turn: str
    agent: str
    thread_id: str
    begun: bool
    stored: StoredTurn | None
    """Of a turn that had begun: its record so far."""
    messages: tuple[Message, ...]
    """Of a turn that had not begun: what woke it."""
    named: tuple[str, ...]
    """The ids of all its wakes: what its agent may know it by."""
    waiting: tuple[Message, ...]
    """What should have been answered."""


class Ending:
    """Ends turns for stops, breakers and take-overs, one after the other."""

    def __init__(self, kernel: Kernel):
        self._kernel, self._state, self._store = kernel, kernel.state, kernel.store
        self._lock = asyncio.Lock()
        self._notices = TurnNotices(kernel)
        self._head_at_start = kernel.log.head
        self.heard: Sequence[Callable[[Sequence[EndedTurn]], None]] = ()
        """Who is told which turns are over, and which wakes, when that is durable."""

    # Taking turns -------------------------------------------------------------------------

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Within, nothing else is stopped, resumed or taken over."""
        async with self._lock:
            yield

    async def quiet(self) -> None:
        """Wait until nothing is being stopped: then it is known which turns go on."""
        while self._lock.locked():
            async with self._lock:
                pass

    # The start of the hub -----------------------------------------------------------------

    async def start(self) -> None:
        """Learn what was ended lately, and end what a hub that died had left."""
        turns, stops = self._state.turns, self._state.stops
        for stored in await self._store.read(LatestTurns(None, LATELY)):
            end = TurnEnd.model_validate_json(stored.end) if stored.end is not None else None
            if end is not None and end.by is not None:
                turns.end(EndedTurn(stored.id, stored.agent, "stopped", end.by, end.reason))
        if stops.standing:
            await self._sweep(tuple(self._state.agents))

    # Ending -------------------------------------------------------------------------------

    async def end(
        self,
        agents: Iterable[str],
        within: Within,
        why: EndReason,
        records: Sequence[Record] = (),
    ) -> Outcome:
        """End the turns of these agents that are `within`, in one commit with `records`.

        Call it `alone`. Raises `StoreUnavailable`: then nothing was ended.
        """
        await self._kernel.log.write()  # what had begun by now is in the store
        found = [each for agent in agents for each in await self._find(agent, within)]
        now = self._kernel.clock.now()
        ended = [
            EndedTurn(name, each.agent, why.code, why.by, why.told)
            for each in found
            for name in each.named
        ]
        for each in ended:
            self._state.turns.end(each)
        ends = [record for each in found for record in _records(each, why, now)]
        if found or records:
            waiting = [(each.agent, message) for each in found for message in each.waiting]
            undone = asyncio.Event()
            self._notices.post(why, [each.agent for each in found], waiting, undone.is_set)
            try:
                await self._kernel.log.write(*records, *ends)
            except StoreUnavailable:
                undone.set()
                self._state.turns.spare(each.turn for each in ended)
                raise
        self._over(found, ended, why)
        return Outcome(
            sum(each.begun for each in found),
            sum(len(each.named) for each in found if not each.begun),
        )

    def _over(
        self, found: Sequence[_UnfinishedTurn], ended: Sequence[EndedTurn], why: EndReason
    ) -> None:
        """It is durable: tell those whom it concerns, before anything else that waits."""
        for each in found:
            self._state.turns.ended(each.turn)
            self._kernel.notifications.turn_ended(
                each.turn, each.agent, each.thread_id, "cancelled"
            )
            if each.stored is not None:
                steps = map(Step.model_validate_json, each.stored.steps)
                self._kernel.metrics.turn_ended("cancelled", steps)
        if self._kernel.pipeline.watches_turns:
            begun = [each.turn for each in found if each.begun]
            self._kernel.spawn(self._tell_mods(begun))
        for agent, of_agent in groupby(ended, key=lambda each: each.agent):
            self.tell(agent, [each.turn for each in of_agent], why)
        self.hear(ended)

    def hear(self, ended: Sequence[EndedTurn]) -> None:
        """These are over, and that is durable. One that had ended by itself may have left something
        open."""
        for hear in self.heard:
            hear(ended)

    async def _tell_mods(self, turns: Sequence[str]) -> None:
        try:
            for turn in turns:
                stored = await self._store.read(TurnById(turn))
                if stored is not None:
                    record = turn_record(stored, await self._store.read(PromptsOf(turn)))
                    self._kernel.pipeline.turn_ended(record)
        except StoreUnavailable:
            log.warning("mods are not told of turns that were ended", turns=list(turns))

    def tell(self, agent: str, turns: Sequence[str], why: EndReason | EndedTurn) -> None:
        """Tell an agent to cancel what runs for these turns."""
        data = {"turns": list(turns), "code": why.code, "by": why.by, "reason": why.reason}
        frame = Signal(type="stop_turns", sender="hub", data=data).encoded()
        for session in self._kernel.fanout.of(agent):
            session.write(frame)

    def remind(self, agent: str) -> None:
        """Tell an agent that has come back what was ended; it may have been away by then."""
        ended = self._state.turns.ended_of(agent)[-LATELY:]
        for why, of_why in groupby(ended, key=lambda each: each[2:]):
            turns = [each.turn for each in of_why]
            self.tell(agent, turns, EndedTurn("", agent, *why))

    async def without_ended_wake(self, participant: str, event: StoredEvent) -> StoredEvent:
        """The event as somebody is told it who reads the log forward: a wake whose turn has ended,
        perhaps before it began, wakes no more."""
        if event.reply is None or event.turn is None:
            return event
        over = self._state.turns.why_over(event.turn) is not None
        if not over and event.seq <= self._head_at_start:
            wake = await self._store.read(WakeOf(participant, event.seq))
            over = wake is not None and wake.state == "ended"
        return event._replace(reply=None, turn=None) if over else event

    # Finding ------------------------------------------------------------------------------

    async def _find(self, agent: str, within: Within) -> list[_UnfinishedTurn]:
        """The turns of the agent to be ended, the wakes of a thread that wait as one of them."""
        rows = await self._store.read(PendingWakes(agent, self._kernel.log.head))
        messages = {row.seq: Message.model_validate_json(row.body) for row in rows}
        begun = {row.started: messages[row.seq].thread_id for row in reversed(rows) if row.started}
        for turn, running in self._state.turns:
            if running.agent == agent:
                begun[turn] = running.thread_id
        found = [
            await self._running(turn, agent, thread_id, rows)
            for turn, thread_id in begun.items()
            if within(agent, thread_id, turn)
        ]
        waiting: dict[str, list[PendingRow]] = {}
        for row in rows:
            thread_id = messages[row.seq].thread_id
            if not row.started and within(agent, thread_id, row.turn):
                waiting.setdefault(thread_id, []).append(row)
        for thread_id, dropped in waiting.items():
            found.append(_never_begun(agent, thread_id, dropped, messages))
        return found

    async def _running(
        self, turn: str, agent: str, thread_id: str, rows: Sequence[PendingRow]
    ) -> _UnfinishedTurn:
        stored = await self._store.read(TurnById(turn))
        waiting = await unanswered(self._store, stored) if stored is not None else []
        named = dict.fromkeys([turn, *(row.turn for row in rows if row.started == turn)])
        return _UnfinishedTurn(
            turn, agent, thread_id, True, stored, (), tuple(named), tuple(waiting)
        )

    # What comes too late ------------------------------------------------------------------

    def committed(self, entries: Sequence[Entry]) -> None:
        """What was on its way when something was stopped wakes nobody."""
        for entry in entries if self._state.stops.standing else ():
            self._silence(entry)

    def _silence(self, entry: Entry) -> None:
        stops, thread_id = self._state.stops, entry.thread.id
        agents = list[str]()
        for n, (agent, _, reply) in enumerate(entry.decisions):
            reason = stops.of(agent, thread_id) if reply is not None else None
            if reason is not None:
                entry.decisions[n] = Decision(agent, reason, None)
                agents.append(agent)
        if agents:
            self._kernel.spawn(self._drop_late(agents, thread_id, entry.seq))

    async def _drop_late(self, agents: Sequence[str], thread_id: str, seq: int) -> None:
        """Drop the wakes of these agents by the message at `seq`: they have not heard of them."""
        try:
            async with self.alone():
                await self._sweep(agents)
                wakes = await self._store.read(WakesAt([seq]))
        except StoreUnavailable:
            log.warning("wakes that came too late stay until the hub starts again", agents=agents)
            return
        for agent in agents:
            wake = wakes.get((seq, agent))
            if wake is not None and wake.state == "pending":
                # The disk has refused the stop, and the wake holds: they hear of it on return.
                for session in list(self._kernel.fanout.of(agent)):
                    session.close(CloseCode.STATE_LOST, "a wake was not told; come back")

    async def _sweep(self, agents: Collection[str]) -> None:
        """End what should not go on by what is stopped, whichever way it got through."""
        for stop in self._state.stops:
            why = EndReason.of(stop, again=True)
            await self.end(agents, self._state.stops.stopper(stop), why)
        for takeover in self._state.takeovers:
            if takeover.agent in agents:
                why = EndReason.taken_over(takeover.agent, takeover.by)
                await self.end([takeover.agent], lambda *_: True, why)


def _never_begun(
    agent: str, thread_id: str, rows: Sequence[PendingRow], messages: dict[int, Message]
) -> _UnfinishedTurn:
    woken_by = tuple(messages[row.seq] for row in rows)
    waiting = tuple(messages[row.seq] for row in rows if row.reply == "required")
    named = tuple(row.turn for row in rows)
    return _UnfinishedTurn(named[0], agent, thread_id, False, None, woken_by, named, waiting)


def _records(found: _UnfinishedTurn, why: EndReason, now: float) -> list[Record]:
    """How the end of a turn is kept; one that had not begun begins by that."""
    end = TurnEnd(id=found.turn, outcome="cancelled", reason=why.told, by=why.by)
    ended = TurnEnded(found.turn, now, end.model_dump_json())
    if found.begun:
        return [ended]
    ids = tuple(message.id for message in found.messages)
    start = TurnStart(id=found.turn, thread_id=found.thread_id, messages=ids)
    seqs = tuple(message.seq for message in found.messages)
    return [TurnBegun(found.turn, found.agent, now, start.model_dump_json(), seqs), ended]


# The record of a turn, as it is told.


def turn_record(stored: StoredTurn, prompts: StoredPrompts = NO_PROMPTS) -> Turn:
    """What the store has of it."""
    return Turn(
        start=TurnStart.model_validate_json(stored.start),
        agent=stored.agent,
        started_at=_time(stored.started_at),
        attempts=stored.attempts,
        system_prompt=prompts.system,
        prompt=prompts.user,
        steps=tuple(Step.model_validate_json(step) for step in stored.steps),
        end=TurnEnd.model_validate_json(stored.end) if stored.end is not None else None,
        ended_at=_time(stored.ended_at) if stored.ended_at is not None else None,
        sent=tuple(f"m{seq}" for seq in stored.sent),
    )


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
