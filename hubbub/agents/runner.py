"""Runs one agent: events of its client into the inbox, turns out of it, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from functools import partial
from typing import Protocol

from pydantic import JsonValue

from hubbub.agents.acks import AckWindow
from hubbub.agents.backlog import Backlog, fill_gaps
from hubbub.agents.debounce import Debounce
from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.parking import Parking
from hubbub.agents.running import Ending, Halt, RunningTurns
from hubbub.agents.trials import TurnTrials
from hubbub.agents.turn.journal import Journal
from hubbub.agents.turn.leasing import Experience
from hubbub.agents.turn.steering import Steer, wished
from hubbub.agents.user_code import contained, told
from hubbub.client import Client, Disconnected, Incoming
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message, Wake

__all__ = ["GRACE_S", "AgentRunner", "Brain"]

GRACE_S = 0.5
"""Seconds that running turns have to come to their end when the agent is stopped."""

log = get_logger(__name__)


class Brain(Protocol):
    """What an agent does with its turns."""

    async def ready(self, ready: Ready) -> None:
        """A connection stands; called before the inbox takes it in."""
        ...

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether somebody waits for just this message: then it starts no turn of its own.

        None: no. The verdict may come later; until then nothing happens with the message.
        """
        ...

    def observes(self, message: Message) -> bool:
        """Whether `observe` wants this message, which wakes nobody here."""
        ...

    async def observe(self, message: Message) -> None: ...

    async def start(self) -> None:
        """Called once, when the agent has joined."""
        ...

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        """Run the turn and record its end, or that it waits for a person (`Journal.park`). An
        exception is recorded as `handler_error`.
        """
        ...

    async def dropped(self, turn: str) -> None:
        """A turn that waited for a person will not go on: it was ended by somebody else."""
        ...


class AgentRunner:
    """Runs the agent that `client` (which records its turns) is connected as.

    A turn that is interrupted by the end of the process stays open at the hub, which offers it
    again; one that `cancel` stops is recorded as cancelled.
    """

    def __init__(
        self,
        client: Client,
        inbox: Inbox,
        brain: Brain,
        *,
        grace_s: float = GRACE_S,
        trials: TurnTrials | None = None,
        steer: Steer = "queue",
        debounce_s: float = 0.0,
    ):
        """`steer`: what a person says while a turn runs, unless the message has its own `mode`.
        `debounce_s`: how long an idle agent waits for more before a turn begins."""
        self._client, self._inbox, self._brain = client, inbox, brain
        self._trials = trials or TurnTrials(client)
        self._grace_s = grace_s
        self._steer = steer
        self._debounce = Debounce(debounce_s, self._start_turns)
        self._turns = RunningTurns()
        self._parking = Parking()
        self._experience = Experience()
        self._observers: dict[str, asyncio.Lock] = {}
        self._settling: set[asyncio.Task[None]] = set()
        self._acks = AckWindow()
        self._open = False  # turns wait until the brain has started, and end with the agent
        self._ready = False  # and until what had accumulated is here
        self._backlog = Backlog(0, 0, lambda: None)
        self._fresh = True
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

    async def _pump(self) -> None:
        try:
            async for item in self._client.events():
                await self._take(item)
        except ConnectionLost:
            await self._stop_turns()
            raise
        except asyncio.CancelledError:
            await self._let_finish()
            raise  # and the group ends what has not finished
        finally:
            self._backlog.close()
            self._debounce.close()

    async def _start(self) -> None:
        await self._brain.start()
        self._open = True
        self._start_turns()

    def cancel(self, turn: str, reason: str) -> bool:
        """Stop a running turn; it is recorded as cancelled. False if it does not run."""
        return self._turns.end(turn, Ending(reason))

    def _halt(self, halt: Halt) -> None:
        """The hub has ended turns: what runs for them ends, and what waits for them never begins.
        Nobody waits for a model to answer."""
        ending = Ending(halt.told, halted=True)
        for turn in halt.turns:
            self._turns.end(turn, ending)
            if self._parking.drop(turn):
                self._spawn(self._brain.dropped(turn))
        over = frozenset(halt.turns)
        self._inbox.drop(over)
        wakes = self._backlog.wakes
        wakes[:] = [(message, wake) for message, wake in wakes if wake.turn not in over]

    def _meanwhile(self, ready: Ready) -> None:
        """End what the hub has ended while there was no connection: it is pending no more."""
        pending, upto = {p.message.id for p in ready.pending}, ready.cursor
        for plan in self._turns:
            if not any(m.seq > upto or m.id in pending for m in plan.incoming):
                self._turns.end(plan.id, Ending(_MEANWHILE, halted=True))
        self._inbox.keep(pending, upto)

    # Events -------------------------------------------------------------------------------------

    async def _take(self, item: Incoming) -> None:
        match item:
            case Ready():
                await self._begin(item)
            case Event():
                await self._event(item)
            case Disconnected():
                log.info("connection lost", code=item.code, retry_in_s=round(item.retry_in_s, 1))
            case Signal(type="caught_up", sender="hub"):
                self._backlog.end()
            case Signal(type="approval", sender="hub"):
                self._decided(item.data)
            case Signal(type="halt", sender="hub"):
                self._halt(Halt.model_validate(item.data))
            case Signal(type="try_turn", sender="hub"):
                self._spawn(self._trials.take(item.data))
            case Signal():
                pass  # the others are for people

    async def _begin(self, ready: Ready) -> None:
        if not ready.resumed:
            await self._stop_turns()  # they belong to a log that is no more
            self._acks = AckWindow()
            self._parking.clear()
        self._fresh = self._fresh or not ready.resumed
        self._ready = False
        self._experience.limited = True  # the hub may have another config by now
        await self._brain.ready(ready)
        if ready.resumed:
            self._meanwhile(ready)
        earlier = self._backlog.wakes if ready.resumed else []
        self._backlog.close()
        self._backlog = Backlog(ready.cursor, ready.head, self._caught_up)
        self._backlog.wakes += earlier
        for ignored in self._inbox.begin(ready, self._accumulates):
            self._spawn(self._settle(ignored.message, ignored.wake, _IGNORED))
        self._look_again()
        if not self._backlog.active:
            self._let_go()

    def _accumulates(self, message: Message, wake: Wake) -> bool:
        self._backlog.wakes.append((message, wake))
        return True

    async def _event(self, event: Event) -> None:
        message, wake = event.message, event.wake
        self._acks.opened(event.seq)
        ignored = self._inbox.ignores(message.sender_id)
        claimed = wake is not None and not ignored and self._claims(message, wake)
        if wake is None and message.type == "direct":
            self._brain.claims(message)  # an answer that must not wake anybody is one all the same
        received = self._inbox.receive(event, claimed=claimed)
        self._backlog.note(event.seq)
        if received == "queued":
            self._consider(message)
            if event.seq in self._start_turns():
                return  # acknowledged when the turn's beginning is on its way
        if received == "noted" and wake is None and self._brain.observes(message):
            self._spawn(self._observe(message))
            return
        if received == "ignored" and wake is not None:
            self._spawn(self._settle(message, wake, _IGNORED))
        # A wake that waits for its thread needs no open event: it is pending at the hub until its
        # turn has ended, and an open event would hold up those of other threads.
        await self._done(event.seq)

    def _consider(self, message: Message) -> None:
        """A wake has come: it may end the turn of its thread, or wait a moment for more."""
        running = self._turns.in_thread(message.thread_id)
        if running is None:
            self._debounce.woken(message)
        elif wished(message, self._steer) == "interrupt":
            self.cancel(running, f"interrupted by {message.sender_id}")

    def _caught_up(self) -> None:
        self._spawn(self._fill_gaps(self._backlog))

    async def _fill_gaps(self, backlog: Backlog) -> None:
        if self._fresh:
            try:
                await fill_gaps(self._client, self._inbox, backlog.cursor)
            except (OperationError, ConnectionLost) as exc:
                log.warning("own messages could not be read again", error=str(exc))
        if backlog is self._backlog:  # or another connection has brought another one
            self._let_go()

    def _let_go(self) -> None:
        """What has accumulated may start turns, now that nothing is missing."""
        self._fresh, self._ready = False, True
        wakes, self._backlog.wakes = self._backlog.wakes, []
        for message, wake in wakes:
            if not self._claims(message, wake):
                self._inbox.put_back(message, wake)
        self._start_turns()

    async def _done(self, *seqs: int) -> None:
        upto = [self._acks.done(seq) for seq in seqs]
        await self._client.ack(max(upto))

    async def _observe(self, message: Message) -> None:
        lock = self._observers.setdefault(message.thread_id, asyncio.Lock())
        async with lock:
            try:
                with contained():
                    await self._brain.observe(message)
            except ConnectionLost:
                return  # not acknowledged: it is overheard again
            except Exception as exc:  # noqa: BLE001 - a handler may raise anything; it is shown
                traceback.print_exception(exc)
        await self._done(message.seq)

    def _claims(self, message: Message, wake: Wake) -> bool:
        if not self._ready:
            return self._accumulates(message, wake)
        verdict = self._brain.claims(message)
        if verdict is None:
            return False
        self._spawn(self._judge(verdict, message, wake))
        return True

    async def _judge(self, verdict: asyncio.Future[bool], message: Message, wake: Wake) -> None:
        if await verdict:
            await self._settle(message, wake, _AWAITED)
        else:
            self._inbox.put_back(message, wake)
            self._start_turns()

    async def _settle(self, message: Message, wake: Wake, reason: str) -> None:
        """Record a turn for a wake that needs none."""
        plan = TurnPlan(wake.turn, message.thread_id, (message,), (wake.reason,), False)
        journal = Journal(self._client, plan)
        await journal.end("finished", reason)
        await journal.settled()

    # Turns --------------------------------------------------------------------------------------

    def _start_turns(self) -> set[int]:
        """Start what may start; returns the positions of the messages that those turns answer."""
        if not (self._open and self._ready):
            return set()
        started: set[int] = set()
        for plan in self._inbox.next_turns(self._debounce.held):
            self._turns.add(plan, self._spawn(self._turn(plan)))
            started.update(m.seq for m in plan.incoming)
        return started

    async def _turn(self, plan: TurnPlan) -> None:
        halt = partial(self.cancel, plan.id)
        journal = Journal(
            self._client, plan, self._when_begun(plan), halt, experience=self._experience
        )
        try:
            await self._run_turn(plan, journal)
            if journal.parked is not None and journal.end_record is None:
                await self._park(plan, journal)
        except ConnectionLost:
            return  # nobody is there to hear of it; the hub will offer the turn again
        except OperationError as exc:
            log.warning("the hub refuses a turn", turn=plan.id, error=str(exc))
            await self._brain.dropped(plan.id)
        finally:
            self._turns.remove(plan.id)
            self._inbox.ended(plan.thread_id)
            self._go_on(self._parking.ended(plan.id))
        self._start_turns()
        with self._last_words():
            await journal.settled()

    async def _run_turn(self, plan: TurnPlan, journal: Journal) -> None:
        """Until its end is recorded; CancelledError: the process ends, the hub offers it again."""
        try:
            with contained():
                await self._brain.take_turn(plan, journal)
        except asyncio.CancelledError:
            ending = self._turns.ending(plan.id)
            if ending is None:
                raise
            _uncancel()
            if ending.halted:
                await journal.halted(ending.reason)
            else:
                await journal.end("cancelled", ending.reason)
        except ConnectionLost:
            raise
        except Exception as exc:
            if isinstance(exc, OperationError) and exc.code == ErrorCode.TURN_OVER:
                raise  # somebody has ended it: there is no other end to record
            traceback.print_exception(exc)
            await journal.end("handler_error", told(exc))

    @contextlib.contextmanager
    def _last_words(self) -> Iterator[None]:
        """Within, the task makes a turn's record durable: the end of the agent waits for it."""
        task = asyncio.current_task()
        assert task is not None
        self._settling.add(task)
        try:
            yield
        finally:
            self._settling.remove(task)

    async def _park(self, plan: TurnPlan, journal: Journal) -> None:
        """The turn has stopped to wait, unless somebody has wanted its end in the last moment."""
        ending = self._turns.ending(plan.id)
        if ending is None:
            self._parking.park(plan)
            return
        if not ending.halted:
            await journal.end("cancelled", ending.reason)
        await self._brain.dropped(plan.id)

    def _decided(self, data: JsonValue) -> None:
        """A person has decided about a call of a turn of ours, or the time for it is up."""
        approval = Approval.model_validate(data)
        if approval.agent == self._client.participant and approval.state in _DECIDED:
            running = self._turns.runs(approval.turn)
            self._go_on(self._parking.decided(approval.turn, running=running))
            self._start_turns()

    def _look_again(self) -> None:
        """After a lost connection: what was decided meanwhile has not been heard."""
        for plan in self._parking.all():
            self._inbox.again(plan)
        for plan in self._turns:
            self._parking.decided(plan.id, running=True)

    def _go_on(self, plan: TurnPlan | None) -> None:
        """Take up a turn that has stopped to wait, if there is one."""
        if plan is not None:
            self._inbox.again(plan)

    def _when_begun(self, plan: TurnPlan) -> Callable[[], Awaitable[None]]:
        return lambda: self._done(*(m.seq for m in plan.incoming))

    # Ending -------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._group is not None, "runs only inside run()"
        return self._group.create_task(work)

    async def _let_finish(self) -> None:
        self._open = False
        under_way = [*self._turns.tasks, *self._settling]
        if under_way:
            await asyncio.wait(under_way, timeout=self._grace_s)

    async def _stop_turns(self) -> None:
        """Cancel the running turns; the hub will offer them again."""
        tasks = self._turns.tasks
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


_DECIDED = ("approved", "denied", "expired", "cancelled")
_IGNORED = "the agent ignores this sender"
_AWAITED = "a handler was waiting for this message"
_MEANWHILE = "it was ended while there was no connection to the hub"


def _uncancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
