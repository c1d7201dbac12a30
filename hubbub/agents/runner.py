"""Runs one agent: events of its client into the inbox, turns out of it, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Callable, Coroutine, Iterable, Set
from functools import partial
from typing import TYPE_CHECKING

from hubbub.agents.backend import AgentBackend, Overhearing
from hubbub.agents.catching_up import CatchingUp
from hubbub.agents.inbox import Inbox, StillOpen, TurnPlan, Woken, by_person
from hubbub.agents.running import Ending, Parking, RunningTurns, StopTurns
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.agents.turn.reservations import Experience
from hubbub.agents.turn.steering import Steer, wished
from hubbub.client import Client, Disconnected, Incoming
from hubbub.errors import ConnectionLost, OperationError
from hubbub.ids import new_ulid
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.user_code import contained, told
from hubbub.waiting import done_within

if TYPE_CHECKING:
    from pydantic import JsonValue

    from hubbub.agents.trials import TurnTrials

__all__ = [
    "AWAITED",
    "GRACE_S",
    "IGNORED",
    "AckWindow",
    "AgentRunner",
    "Claims",
    "Debounce",
    "settle",
]

# What may be acknowledged: what is done, as far as nothing before it is open. Pure.


class AckWindow:
    """Events are opened in order and become done in any order."""

    def __init__(self) -> None:
        self._open: dict[int, None] = {}  # in order
        self._last = 0

    def opened(self, seq: int) -> None:
        """An event has arrived."""
        self._open[seq] = None
        self._last = max(self._last, seq)

    def open(self, seq: int) -> bool:
        """Whether it has arrived and is not done."""
        return seq in self._open

    def done(self, seq: int) -> int:
        """The event needs nothing more. Returns the position up to which everything is done."""
        self._open.pop(seq, None)
        return next(iter(self._open)) - 1 if self._open else self._last


# Wakes that need no turn: the hub is told so by a turn in which nothing happens.


AWAITED = "a handler was waiting for this message"
IGNORED = "the agent ignores this sender"


async def settle(client: Client, woken: Woken, reason: str) -> None:
    """Record a turn that has finished for this reason."""
    recorder = TurnRecorder(client, TurnPlan.of([woken], None))
    await recorder.end("finished", reason)
    await recorder.settled()


# Wakes that somebody in the agent waits for, and that start no turns of their own.


class Claims:
    """What the backend claims. `settle` is given each wake that is somebody's, with a reason,
    `news` each that proves to be nobody's; `spawn` runs what waits for the verdict.
    """

    def __init__(
        self,
        backend: AgentBackend,
        spawn: Callable[[Coroutine[object, object, None]], object],
        settle: Callable[[Woken, str], None],
        news: Callable[[Woken], None],
    ):
        self._backend, self._spawn = backend, spawn
        self._settle, self._news = settle, news

    def take(self, woken: Woken) -> bool:
        """Whether the wake starts no turn, at least for now."""
        verdict = self._backend.claims(woken.message)
        if verdict is not None:
            self._spawn(self._judge(verdict, woken))
        return verdict is not None

    async def _judge(self, verdict: asyncio.Future[bool], woken: Woken) -> None:
        if await verdict:
            self._settle(woken, AWAITED)
        else:
            self._news(woken)


# Waiting a moment for more: an agent with nothing to do in a thread need not start at once.


class Debounce:
    """The threads that wait. `over` is called when one of them has waited for `seconds`, which
    count from its first wake: who goes on talking is heard no later."""

    def __init__(self, seconds: float, over: Callable[[], object]):
        self._seconds, self._over = seconds, over
        self._timers: dict[str, asyncio.TimerHandle] = {}

    @property
    def held(self) -> Set[str]:
        """Threads in which no turn begins yet."""
        return self._timers.keys()

    def woken(self, message: Message) -> None:
        """This message wakes the agent in a thread where it does nothing so far."""
        thread_id = message.thread_id
        if message.type == "direct" and by_person(message):
            self.release(thread_id)  # a person who talks to the agent waits for it
        elif self._seconds and thread_id not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[thread_id] = loop.call_later(self._seconds, self._due, thread_id)

    def release(self, thread_id: str) -> None:
        """The thread waits no longer."""
        timer = self._timers.pop(thread_id, None)
        if timer is not None:
            timer.cancel()

    def close(self) -> None:
        """Nothing waits any more."""
        for thread_id in list(self._timers):
            self.release(thread_id)

    def _due(self, thread_id: str) -> None:
        self.release(thread_id)
        self._over()


GRACE_S = 0.5
"""Seconds that running turns have to come to their end when the agent is stopped."""

log = get_logger(__name__)


class AgentRunner:
    """Runs the agent that `client` (which records its turns) is connected as.

    A turn that is interrupted by the end of the process stays open at the hub, which offers it
    again; one that `cancel` stops is recorded as cancelled.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        backend: AgentBackend,
        *,
        grace_s: float = GRACE_S,
        trials: TurnTrials | None = None,
        steer: Steer = "queue",
        debounce_s: float = 0.0,
        settled: Callable[[TurnPlan], None] | None = None,
    ):
        """`steer`: what a person says while a turn runs, unless the message has its own `mode`.
        `debounce_s`: how long an idle agent waits for more before a turn begins. `settled` is told
        of each turn that is over, when its record is durable."""
        self._client, self._inbox, self._backend = client, inbox, backend
        self._trials = trials
        self._grace_s, self._settled = grace_s, settled
        self._steer = steer
        self._debounce = Debounce(debounce_s, self._start_turns)
        self._turns = RunningTurns()
        self._parking = Parking(inbox.again)
        self._claims = Claims(backend, self._spawn, self._settle, self._news)
        self._overhearing = Overhearing(backend, self._done, client.written)
        self._catching_up = CatchingUp(client, inbox, self._spawn, self._all_is_here)
        self._life = new_ulid()
        self._had = 0
        """What the hub had when this process first joined: an earlier one may have died of it."""
        self._suspects = asyncio.Lock()
        self._experience = Experience()
        self._acks = AckWindow()
        self._open = False  # turns wait until the backend has started, and end with the agent
        self._group: asyncio.TaskGroup | None = None

    async def run(self) -> None:
        """Until cancelled. Raises `ConnectionLost` when the hub has closed for good."""
        try:
            async with asyncio.TaskGroup() as self._group:
                self._spawn(self._start())
                await self._pump()
        except BaseExceptionGroup as several:
            if len(several.exceptions) == 1:
                raise several.exceptions[0] from None
            raise

    async def _start(self) -> None:
        await self._backend.start()
        self._open = True
        self._start_turns()
        await self._backend.prepare()

    async def _pump(self) -> None:
        try:
            async for item in self._client.events():
                await self._take(item)
        except ConnectionLost:
            await self._turns.stop()
            raise
        except asyncio.CancelledError:
            self._open = False
            await self._turns.finish(self._grace_s)
            await done_within(self._leave(), _LEAVE_S)
            raise  # and the group ends what has not finished
        finally:
            self._catching_up.close()
            self._debounce.close()

    async def _leave(self) -> None:
        """Tell the hub that what runs is cut off in order, and not by a death."""
        left = [
            self._client.post("leave_turn", cid=None, turn=plan.id, life=self._life)
            for plan in self._turns
        ]
        await asyncio.gather(*left, return_exceptions=True)

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._group is not None, "runs only inside run()"
        return self._group.create_task(work)

    # Connections --------------------------------------------------------------------------------

    async def _take(self, item: Incoming) -> None:
        match item:
            case Ready():
                await self._begin(item)
            case Event():
                await self._event(item)
            case Disconnected():
                log.info("connection lost", code=item.code, retry_in_s=round(item.retry_in_s, 1))
            case Signal(type="caught_up", sender="hub"):
                self._catching_up.end()
            case Signal(type="approval", sender="hub"):
                self._decided(item.data)
            case Signal(type="stop_turns", sender="hub"):
                self._end_turns(StopTurns.model_validate(item.data))
            case Signal(type="try_turn", sender="hub"):
                self._spawn(self._try(item.data))
            case Signal():
                pass  # the others are for people

    async def _try(self, data: JsonValue) -> None:
        """Ask a model once more what it was asked in a turn, or say that there is none."""
        from hubbub.agents.trials import TurnTrials  # what asks models, which few are tried again

        self._trials = self._trials or TurnTrials(self._client)
        await self._trials.take(data)

    async def _begin(self, ready: Ready) -> None:
        if not ready.resumed:
            await self._turns.stop()  # they belong to a log that is no more
            self._acks = AckWindow()
            self._parking.clear()
            self._experience.parts = {}
        self._catching_up.begin(ready)
        self._had = self._had or ready.head
        self._experience.limited = True  # the hub may have another config by now
        await self._backend.ready(ready)
        if ready.resumed:  # the hub may have ended turns while there was no connection
            still = StillOpen.at(ready)
            self._turns.keep(still)
            self._inbox.keep(still)
        for ignored in self._inbox.begin(ready, lambda m, wake: self._claimed(Woken(m, wake))):
            self._settle(Woken(ignored.message, ignored.wake), IGNORED)
        self._parking.look_again(self._turns)
        self._catching_up.taken_in(ready)

    def _all_is_here(self, held: Iterable[Woken]) -> None:
        """What has accumulated may start turns, now that nothing is missing."""
        for woken in held:
            if not self._claimed(woken):
                self._put_back(woken)
        self._start_turns()

    # Events -------------------------------------------------------------------------------------

    async def _event(self, event: Event) -> None:
        message = event.message
        if message.amends is not None:  # nobody says anything by it
            self._inbox.receive(event)
            self._catching_up.note(event.seq)
            self._acks.opened(event.seq)
            await self._done(event.seq)
            return
        woken = Woken(message, event.wake) if event.wake is not None else None
        self._acks.opened(event.seq)
        ignored = self._inbox.ignores(message.sender_id)
        claimed = woken is not None and not ignored and self._claimed(woken)
        if woken is None and message.type == "direct":
            self._backend.claims(
                message
            )  # an answer that must not wake anybody is one all the same
        received = self._inbox.receive(event, claimed=claimed)
        self._catching_up.note(event.seq)
        if received == "queued":
            self._interrupt(message)
            if self._turns.in_thread(message.thread_id) is None:
                self._debounce.woken(message)
            if event.seq in self._start_turns():
                return  # acknowledged when the turn's beginning is on its way
        if received == "noted" and woken is None and self._backend.observes(message):
            suspect = event.seq <= self._had
            self._spawn(self._overhearing.hear(message, suspect=suspect))
            return
        if received == "ignored" and woken is not None:
            self._settle(woken, IGNORED)
        # A wake that waits for its thread needs no open event: it is pending at the hub until its
        # turn has ended, and an open event would hold up those of other threads.
        await self._done(event.seq)

    def _claimed(self, woken: Woken) -> bool:
        """Whether it starts no turn, at least for now."""
        if not self._catching_up.done:
            self._catching_up.hold(woken)
            return True
        return self._claims.take(woken)

    def _news(self, woken: Woken) -> None:
        """A wake that somebody seemed to wait for, and does not."""
        self._put_back(woken)
        self._start_turns()

    def _put_back(self, woken: Woken) -> None:
        self._inbox.put_back(*woken)
        self._interrupt(woken.message)

    def _interrupt(self, message: Message) -> None:
        """What wakes the agent may end the turn that runs in its thread."""
        running = self._turns.in_thread(message.thread_id)
        if running is not None and wished(message, self._steer) == "interrupt":
            self.cancel(running, f"interrupted by {message.sender_id}")

    def _settle(self, woken: Woken, reason: str) -> None:
        self._spawn(settle(self._client, woken, reason))

    async def _done(self, *seqs: int) -> None:
        upto = [self._acks.done(seq) for seq in seqs]
        await self._client.ack(max(upto))

    # Turns --------------------------------------------------------------------------------------

    def _start_turns(self) -> set[int]:
        """Start what may start; returns the positions of the messages that those turns answer."""
        if not (self._open and self._catching_up.done):
            return set()
        started: set[int] = set()
        for plan in self._inbox.next_turns(self._debounce.held):
            self._turns.add(plan, self._spawn(self._turn(plan)))
            started.update(m.seq for m in plan.incoming)
        return started

    async def _turn(self, plan: TurnPlan) -> None:
        recorder = TurnRecorder(
            self._client,
            plan,
            partial(self._done, *(m.seq for m in plan.incoming)),
            partial(self.cancel, plan.id),
            life=self._life,
            cautious=any(m.seq <= self._had for m in plan.incoming),
            experience=self._experience,
        )
        try:
            await self._run_turn(plan, recorder)
            if recorder.parked and recorder.end_record is None:
                await self._park(plan, recorder)
        except ConnectionLost:
            return  # nobody is there to hear of it; the hub will offer the turn again
        except OperationError as exc:
            log.warning("the hub refuses a turn", turn=plan.id, error=str(exc))
            await self._backend.dropped(plan.id)
        finally:
            self._turns.remove(plan.id)
            self._inbox.ended(plan.thread_id)
            self._parking.ended(plan.id)
        if never_begun := [m.seq for m in plan.incoming if self._acks.open(m.seq)]:
            await self._done(*never_begun)  # somebody has ended it: it holds up nothing
        self._start_turns()
        with self._turns.settling():
            await recorder.settled()
        if self._settled is not None and recorder.end_record is not None:
            self._settled(plan)

    async def _run_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        """Until its end is recorded; CancelledError: the process ends, the hub offers it again."""
        try:
            with contained():
                async with await self._apart(plan, recorder):
                    await self._backend.take_turn(plan, recorder)
        except asyncio.CancelledError:
            ending = self._turns.caught(plan.id)
            if ending is None:
                raise
            await ending.record(recorder)
            await self._backend.dropped(plan.id)
        except ConnectionLost:
            raise
        except Exception as exc:
            if isinstance(exc, OperationError) and exc.code == ErrorCode.TURN_OVER:
                raise  # somebody has ended it: there is no other end to record
            traceback.print_exception(exc)
            await recorder.end("handler_error", told(exc))

    async def _apart(
        self, plan: TurnPlan, recorder: TurnRecorder
    ) -> contextlib.AbstractAsyncContextManager[None]:
        """Turns that were cut off more than once run one at a time: else those that are beside the
        one that ends the process would be taken for its like."""
        if not plan.resumed or plan.waited or (await recorder.other(plan.id)).attempts < _SUSPECT:
            return contextlib.nullcontext()
        return self._suspects

    async def _park(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        """The turn has stopped to wait, unless somebody has wanted its end in the last moment."""
        ending = self._turns.ending(plan.id)
        if ending is None:
            self._parking.park(plan)
            return
        await ending.record(recorder)
        await self._backend.dropped(plan.id)

    # People -------------------------------------------------------------------------------------

    def cancel(self, turn: str, reason: str) -> bool:
        """Stop a running turn; it is recorded as cancelled. False if it does not run."""
        return self._turns.end(turn, Ending(reason))

    def _end_turns(self, stopped: StopTurns) -> None:
        """The hub has ended turns: what runs for them ends, and what waits for them never begins.
        Nobody waits for a model to answer."""
        over = frozenset(stopped.turns)
        for turn in over:
            self._turns.end(turn, Ending(stopped.told, by_hub=True))
            if self._parking.drop(turn):
                self._spawn(self._backend.dropped(turn))
        self._inbox.drop(over)
        self._catching_up.drop(over)

    def _decided(self, data: JsonValue) -> None:
        """A person has decided about a call of a turn of ours, or the time for it is up."""
        from hubbub.protocol.control import Approval  # with all that people are in charge with

        approval = Approval.model_validate(data)
        if approval.agent == self._client.participant and approval.state in _DECIDED:
            turn = approval.turn
            self._parking.decided(turn, running=self._turns.runs(turn))
            self._start_turns()


_LEAVE_S = 0.3
"""Seconds for telling the hub what is left behind: the launcher kills who takes long to end."""
_SUSPECT = 2
"""Processes that have had a turn from which on it runs apart."""
_DECIDED = ("approved", "denied", "expired", "cancelled")
