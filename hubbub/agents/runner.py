"""Runs one agent: events of its client into the inbox, turns out of it, until it is cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Protocol

from hubbub.agents.acks import AckWindow
from hubbub.agents.backlog import Backlog, fill_gaps
from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.agents.trials import TurnTrials
from hubbub.agents.turn.journal import Journal
from hubbub.agents.user_code import contained, told
from hubbub.client import Client, Disconnected, Incoming
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
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
        """Run the turn and record its end. An exception is recorded as `handler_error`."""
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
    ):
        self._client, self._inbox, self._brain = client, inbox, brain
        self._trials = trials or TurnTrials(client)
        self._grace_s = grace_s
        self._turns: dict[str, asyncio.Task[None]] = {}
        self._observers: dict[str, asyncio.Lock] = {}
        self._cancelled: dict[str, str] = {}
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

    async def _start(self) -> None:
        await self._brain.start()
        self._open = True
        self._start_turns()

    def cancel(self, turn: str, reason: str) -> bool:
        """Stop a running turn; it is recorded as cancelled. False if it does not run."""
        task = self._turns.get(turn)
        if task is None:
            return False
        if turn not in self._cancelled:
            self._cancelled[turn] = reason
            # Not at once: a task that is cancelled before it has begun never comes to record it.
            asyncio.get_running_loop().call_soon(self._interrupt, turn, task)
        return True

    def _interrupt(self, turn: str, task: asyncio.Task[None]) -> None:
        if self._turns.get(turn) is task:  # else it has ended, and only makes that durable
            task.cancel()

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
            case Signal(type="try_turn", sender="hub"):
                self._spawn(self._trials.take(item.data))
            case Signal():
                pass  # the others are for people

    async def _begin(self, ready: Ready) -> None:
        if not ready.resumed:
            await self._stop_turns()  # they belong to a log that is no more
            self._acks = AckWindow()
        self._fresh = self._fresh or not ready.resumed
        self._ready = False
        await self._brain.ready(ready)
        earlier = self._backlog.wakes if ready.resumed else []
        self._backlog.close()
        self._backlog = Backlog(ready.cursor, ready.head, self._caught_up)
        self._backlog.wakes += earlier
        for ignored in self._inbox.begin(ready, self._accumulates):
            self._spawn(self._settle(ignored.message, ignored.wake, _IGNORED))
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
        received = self._inbox.receive(event, claimed=claimed)
        self._backlog.note(event.seq)
        if received == "queued" and event.seq in self._start_turns():
            return  # acknowledged when the turn's beginning is on its way
        if received == "noted" and wake is None and self._brain.observes(message):
            self._spawn(self._observe(message))
            return
        if received == "ignored" and wake is not None:
            self._spawn(self._settle(message, wake, _IGNORED))
        # A wake that waits for its thread needs no open event: it is pending at the hub until its
        # turn has ended, and an open event would hold up those of other threads.
        await self._done(event.seq)

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
        for plan in self._inbox.next_turns():
            task = self._spawn(self._turn(plan))
            self._turns[plan.id] = task
            started.update(m.seq for m in plan.incoming)
        return started

    async def _turn(self, plan: TurnPlan) -> None:
        journal = Journal(self._client, plan, self._when_begun(plan))
        try:
            await self._run_turn(plan, journal)
        except ConnectionLost:
            return  # nobody is there to hear of it; the hub will offer the turn again
        except OperationError as exc:
            log.warning("the hub refuses a turn", turn=plan.id, error=str(exc))
        finally:
            self._cancelled.pop(plan.id, None)
            del self._turns[plan.id]
            self._inbox.ended(plan.thread_id)
        self._start_turns()
        with self._last_words():
            await journal.settled()

    async def _run_turn(self, plan: TurnPlan, journal: Journal) -> None:
        """Until its end is recorded; CancelledError: the process ends, the hub offers it again."""
        try:
            with contained():
                await self._brain.take_turn(plan, journal)
        except asyncio.CancelledError:
            if plan.id not in self._cancelled:
                raise
            _uncancel()
            await journal.end("cancelled", self._cancelled[plan.id])
        except ConnectionLost:
            raise
        except Exception as exc:  # noqa: BLE001 - one turn's failure must not end the others
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

    def _when_begun(self, plan: TurnPlan) -> Callable[[], Awaitable[None]]:
        return lambda: self._done(*(m.seq for m in plan.incoming))

    # Ending -------------------------------------------------------------------------------------

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        assert self._group is not None, "runs only inside run()"
        return self._group.create_task(work)

    async def _let_finish(self) -> None:
        self._open = False
        under_way = [*self._turns.values(), *self._settling]
        if under_way:
            await asyncio.wait(under_way, timeout=self._grace_s)

    async def _stop_turns(self) -> None:
        """Cancel the running turns; the hub will offer them again."""
        tasks = list(self._turns.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


_IGNORED = "the agent ignores this sender"
_AWAITED = "a handler was waiting for this message"


def _uncancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.uncancel()
