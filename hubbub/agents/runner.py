"""Runs one agent: feeds its client's events to the inbox and runs the resulting turns."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Coroutine, Iterable, Set
from functools import partial
from typing import TYPE_CHECKING

from hubbub.agents.backend import AgentBackend, MessageObserver
from hubbub.agents.catch_up import CatchUp
from hubbub.agents.inbox import (
    Inbox,
    SteerMode,
    StillOpenWakes,
    TurnPlan,
    WakingMessage,
    steer_mode,
)
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.reservations import HubState
from hubbub.agents.turn_tasks import Cancellation, ParkedTurns, StopTurns, TurnTasks
from hubbub.client import Client, ConnectionLog, Disconnected, Incoming
from hubbub.errors import ConnectionLost, OperationError
from hubbub.ids import new_ulid
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.user_code import contained, describe_error
from hubbub.waiting import done_within

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hubbub.agents.trials import TurnTrials

__all__ = ["GRACE_S", "AckWindow", "AgentRunner", "Debounce"]

# Acknowledgements: an event can be acknowledged once it and all earlier events are done. Pure.


class AckWindow:
    """Tracks events that arrive in order and complete in any order."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}  # in order
        self._last = 0

    def add(self, seq: int) -> None:
        self._open[seq] = None
        self._last = max(self._last, seq)

    def is_open(self, seq: int) -> bool:
        """Whether the event has arrived but is not done."""
        return seq in self._open

    def mark_done(self, seq: int) -> int:
        """Mark an event as done. Returns the position up to which all events are done."""
        self._open.pop(seq, None)
        return next(iter(self._open)) - 1 if self._open else self._last


# Wakes that need no turn: recording an empty turn makes the hub stop counting them as pending.


AWAITED = "a handler was waiting for this message"
IGNORED = "the agent ignores this sender"


async def record_empty_turn(client: Client, woken: WakingMessage, reason: str) -> None:
    """Record an empty turn, finished with this reason."""
    recorder = TurnRecorder(client, TurnPlan.of([woken], None))
    await recorder.end("finished", reason)
    await recorder.try_flush()


# Debouncing: an idle agent can wait briefly for more messages before it starts a turn.


class Debounce:
    """Delays the first turn of a thread. `on_elapsed` is called `seconds` after the thread's first
    wake; further messages do not extend the delay.
    """

    def __init__(self, seconds: float, on_elapsed: Callable[[], object]):
        self._seconds, self._on_elapsed = seconds, on_elapsed
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def held(self) -> Set[str]:
        """Threads in which no turn can start yet."""
        return self._timers.keys()

    def on_wake(self, message: Message) -> None:
        """Handle a wake in a thread without a running turn."""
        thread_id = message.thread_id
        if message.type == "direct" and message.by_person:
            self.release(thread_id)  # a person in a direct thread is waiting for the agent
        elif self._seconds and thread_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[thread_id] = loop.call_later(self._seconds, self._elapsed, thread_id)

    def release(self, thread_id: str) -> None:
        """Stop delaying turns in this thread."""
        timer = self._timers.pop(thread_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Stop all timers."""
        for thread_id in list(self._timers):
            self.release(thread_id)

    def _elapsed(self, thread_id: str) -> None:
        self.release(thread_id)
        self._on_elapsed()


GRACE_S = 0.5
"""Seconds that running turns get to finish when the agent stops."""

log = get_logger(__name__)


class AgentRunner:
    """Runs the agent that `client` is connected as; the client must record turns.

    A turn interrupted by the end of the process stays open at the hub, which offers it again. A
    turn stopped by `cancel` is recorded as cancelled.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        backend: AgentBackend,
        *,
        grace_s: float = GRACE_S,
        trials: TurnTrials | None = None,
        steer: SteerMode = "queue",
        debounce_s: float = 0.0,
        on_settled: Callable[[TurnPlan], None] | None = None,
    ):
        """`steer`: how a person's message during a turn is treated, unless it has its own `mode`.
        `debounce_s`: seconds that an idle agent waits for more messages before it starts a turn.
        `on_settled` is called for each finished turn once its record is durable.
        """
        self._client, self._inbox, self._backend = client, inbox, backend
        self._trials = trials
        self._grace_s, self._on_settled = grace_s, on_settled
        self._steer = steer
        self._debounce = Debounce(debounce_s, self._start_turns)
        self._turns = TurnTasks()
        self._parked = ParkedTurns(inbox.resume)
        self._observer = MessageObserver(backend, self._mark_done, client.written)
        self._catch_up = CatchUp(client, inbox, self._spawn, self._caught_up)
        self._life = new_ulid()
        self._initial_head = 0
        """The hub's position when this process first joined. An earlier process may have crashed on
        any event up to it."""
        self._suspect_lock = asyncio.Lock()
        self._hub_state = HubState()
        self._acks = AckWindow()
        self._connection_log = ConnectionLog(client.participant)
        self._open = False  # turns wait until the backend has started
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Run until cancelled. Raises `ConnectionLost` when the hub closes for good."""
        try:
            async with asyncio.TaskGroup() as self._group:
                self._spawn(self._start())
                await self._pump()
        except BaseExceptionGroup as group:
            if len(group.exceptions) == 1:
                raise group.exceptions[0] from None
            raise

    async def _start(self) -> None:
        await self._backend.start()
        self._open = True
        self._start_turns()
        await self._backend.prepare()

    async def _pump(self) -> None:
        try:
            async for item in self._client.events():
                await self._dispatch(item)
        except ConnectionLost:
            await self._turns.stop()
            raise
        except asyncio.CancelledError:
            self._open = False
            await self._turns.finish(self._grace_s)
            await done_within(self._leave_turns(), _LEAVE_S)
            raise  # the task group cancels the remaining tasks
        finally:
            self._catch_up.close()
            self._debounce.close()

    async def _leave_turns(self) -> None:
        """Report to the hub that a shutdown, not a crash, interrupted the running turns."""
        posts = [
            self._client.post("leave_turn", cid=None, turn=plan.id, life=self._life)
            for plan in self._turns
        ]
        await asyncio.gather(*posts, return_exceptions=True)

    def _spawn(self, coroutine: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._group is not None, "only inside run()"
        return self._group.create_task(coroutine)

    # Connections --------------------------------------------------------------------------------

    async def _dispatch(self, item: Incoming) -> None:
        match item:
            case Ready():
                self._connection_log.note(item)
                await self._connected(item)
            case Event():
                await self._handle_event(item)
            case Disconnected():
                self._connection_log.note(item)
            case Signal(type="caught_up", sender="hub"):
                self._catch_up.end()
            case Signal(type="approval", sender="hub"):
                self._approval_decided(item.data)
            case Signal(type="stop_turns", sender="hub"):
                self._stop_turns(StopTurns.model_validate(item.data))
            case Signal(type="try_turn", sender="hub"):
                self._spawn(self._run_trial(item.data))
            case Signal():
                pass  # the other signals are for people

    async def _run_trial(self, data: JsonValue) -> None:
        """Query a model again as in a recorded turn (see `TurnTrials`)."""
        from hubbub.agents.trials import TurnTrials  # imported late: few agents need it

        self._trials = self._trials or TurnTrials(self._client)
        await self._trials.take(data)

    async def _connected(self, ready: Ready) -> None:
        if not ready.resumed:
            await self._turns.stop()  # their log no longer exists
            self._acks = AckWindow()
            self._parked.clear()
            self._hub_state.parts = {}
        self._catch_up.begin(ready)
        self._initial_head = self._initial_head or ready.head
        self._hub_state.limited = True  # the hub's config may have changed
        await self._backend.ready(ready)
        if ready.resumed:  # the hub may have ended turns while disconnected
            still_open = StillOpenWakes.at(ready)
            self._turns.retain(still_open)
            self._inbox.retain(still_open)
        for ignored in self._inbox.begin(
            ready, lambda m, wake: self._claimed(WakingMessage(m, wake))
        ):
            self._record_empty_turn(WakingMessage(ignored.message, ignored.wake), IGNORED)
        self._parked.recheck(self._turns)
        self._catch_up.expect_events(ready)

    def _caught_up(self, held: Iterable[WakingMessage]) -> None:
        """The backlog is complete: start turns for the wakes held back."""
        for woken in held:
            if not self._claimed(woken):
                self._requeue(woken)
        self._start_turns()

    # Events -------------------------------------------------------------------------------------

    async def _handle_event(self, event: Event) -> None:
        message = event.message
        if message.amends is not None:  # an edit or deletion starts nothing
            self._inbox.receive(event)
            self._catch_up.note(event.seq)
            self._acks.add(event.seq)
            await self._mark_done(event.seq)
            return
        woken = WakingMessage(message, event.wake) if event.wake is not None else None
        self._acks.add(event.seq)
        ignored = self._inbox.ignores(message.sender_id)
        claimed = woken is not None and not ignored and self._claimed(woken)
        if woken is None and message.type == "direct":
            self._backend.claims(message)  # no wake, but possibly the answer to a question
        received = self._inbox.receive(event, claimed=claimed)
        self._catch_up.note(event.seq)
        if received == "queued":
            self._interrupt(message)
            if self._turns.in_thread(message.thread_id) is None:
                self._debounce.on_wake(message)
            if event.seq in self._start_turns():
                return  # acknowledged once the turn's start is sent
        if received == "noted" and woken is None and self._backend.observes(message):
            suspect = event.seq <= self._initial_head
            self._spawn(self._observer.observe(message, suspect=suspect))
            return
        if received == "ignored" and woken is not None:
            self._record_empty_turn(woken, IGNORED)
        # A queued wake needs no open event: it stays pending at the hub until its turn ends, and an
        # open event would hold up the acknowledgements of other threads.
        await self._mark_done(event.seq)

    def _claimed(self, woken: WakingMessage) -> bool:
        """Whether the wake starts no turn for now: it is held back, or the agent's code may be
        waiting for its message.
        """
        if not self._catch_up.done:
            self._catch_up.hold(woken)
            return True
        verdict = self._backend.claims(woken.message)
        if verdict is not None:
            self._spawn(self._await_verdict(verdict, woken))
        return verdict is not None

    async def _await_verdict(self, verdict: asyncio.Future[bool], woken: WakingMessage) -> None:
        if await verdict:
            self._record_empty_turn(woken, AWAITED)
        else:  # it only looked like an awaited answer
            self._requeue(woken)
            self._start_turns()

    def _requeue(self, woken: WakingMessage) -> None:
        self._inbox.requeue(*woken)
        self._interrupt(woken.message)

    def _interrupt(self, message: Message) -> None:
        running = self._turns.in_thread(message.thread_id)
        if running is not None and steer_mode(message, self._steer) == "interrupt":
            self.cancel(running, f"interrupted by {message.sender_id}")

    def _record_empty_turn(self, woken: WakingMessage, reason: str) -> None:
        self._spawn(record_empty_turn(self._client, woken, reason))

    async def _mark_done(self, *seqs: int) -> None:
        positions = [self._acks.mark_done(seq) for seq in seqs]
        await self._client.ack(max(positions))

    # Turns --------------------------------------------------------------------------------------

    def _start_turns(self) -> set[int]:
        """Start all turns that can start. Returns the positions of their messages."""
        if not (self._open and self._catch_up.done):
            return set()
        started: set[int] = set()
        for plan in self._inbox.next_turns(self._is_held):
            self._turns.add(plan, self._spawn(self._turn(plan)))
            started.update(m.seq for m in plan.incoming)
        return started

    def _is_held(self, thread_id: str) -> bool:
        """Whether no turn starts in the thread for now."""
        return thread_id in self._debounce.held or (
            any(self._backend.shares(thread_id, parked) for parked in self._parked.threads)
        )

    async def _turn(self, plan: TurnPlan) -> None:
        recorder = TurnRecorder(
            self._client,
            plan,
            partial(self._mark_done, *(m.seq for m in plan.incoming)),
            partial(self.cancel, plan.id),
            life=self._life,
            cautious=any(m.seq <= self._initial_head for m in plan.incoming),
            hub_state=self._hub_state,
        )
        try:
            await self._run_turn(plan, recorder)
            if recorder.parked and recorder.end_record is None:
                await self._park(plan, recorder)
        except ConnectionLost:
            return  # nothing can be recorded; the hub will offer the turn again
        except OperationError as exc:
            log.warning("the hub refuses a turn", turn=plan.id, error=str(exc))
            await self._backend.dropped(plan.id)
        finally:
            self._turns.remove(plan.id)
            self._inbox.ended(plan.thread_id)
            self._parked.ended(plan.id)
        if unacknowledged := [m.seq for m in plan.incoming if self._acks.is_open(m.seq)]:
            await self._mark_done(*unacknowledged)  # the turn ended before it began
        self._start_turns()
        with self._turns.settling():
            await recorder.try_flush()
        if self._on_settled is not None and recorder.end_record is not None:
            self._on_settled(plan)

    async def _run_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        """Run the turn until its end is recorded. Raises CancelledError if the process is shutting
        down; the hub offers the turn again.
        """
        try:
            with contained():
                async with await self._isolation(plan, recorder):
                    await self._backend.take_turn(plan, recorder)
        except asyncio.CancelledError:
            ending = self._turns.cancellation_of(plan.id)
            if ending is None:
                raise
            await ending.record(recorder)
            await self._backend.dropped(plan.id)
        except ConnectionLost:
            raise
        except Exception as exc:
            if isinstance(exc, OperationError) and exc.code == ErrorCode.TURN_OVER:
                raise  # already ended: there is no other end to record
            traceback.print_exception(exc)
            await recorder.end("handler_error", describe_error(exc))

    async def _isolation(
        self, plan: TurnPlan, recorder: TurnRecorder
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Run turns that were interrupted more than once one at a time. Otherwise, turns running
        beside the one that crashes the process would be suspected too.
        """
        if (
            not plan.resumed
            or plan.was_parked
            or (await recorder.other(plan.id)).attempts < _SUSPECT_ATTEMPTS
        ):
            return contextlib.nullcontext()
        return self._suspect_lock

    async def _park(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        ending = self._turns.ending(plan.id)
        if ending is None:
            self._parked.park(plan)
            return
        await ending.record(recorder)
        await self._backend.dropped(plan.id)

    # Stops and approvals ------------------------------------------------------------------------

    def cancel(self, turn: str, reason: str) -> bool:
        """Stop a running turn and record it as cancelled. False if it is not running."""
        return self._turns.end(turn, Cancellation(reason))

    def _stop_turns(self, signal: StopTurns) -> None:
        """Cancel the running and drop the waiting turns that the hub ended."""
        turns = frozenset(signal.turns)
        for turn in turns:
            self._turns.end(turn, Cancellation(signal.text, by_hub=True))
            if self._parked.drop(turn):
                self._spawn(self._backend.dropped(turn))
        self._inbox.drop(turns)
        self._catch_up.drop(turns)
        self._start_turns()

    def _approval_decided(self, data: JsonValue) -> None:
        """An approval for a call of the agent was decided or expired."""
        from hubbub.protocol.control import Approval  # imported late: large

        approval = Approval.model_validate(data)
        if approval.agent == self._client.participant and approval.state in _DECIDED:
            turn = approval.turn
            self._parked.decided(turn, running=self._turns.runs(turn))
            self._start_turns()


_LEAVE_S = 0.3
"""Seconds for reporting interrupted turns to the hub; the launcher kills processes that take too
long to end."""
_SUSPECT_ATTEMPTS = 2
"""Number of processes that attempted a turn before it runs in isolation."""
_DECIDED = ("approved", "denied", "expired", "cancelled")
