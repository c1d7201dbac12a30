"""Virtual time: an event loop that runs several processes, one step at a time, as a seed says.

Within a process callbacks run in the order in which they were scheduled, as asyncio promises; which
process runs next, and what a thread or a disk takes, is chance. Time passes when nothing can run.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import sys
import warnings
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from itertools import count
from random import Random
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

__all__ = ["PROCESS", "Process", "VirtualLoop", "Weather"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

STEP_S = 2e-5
"""What one callback takes."""


class Weather(NamedTuple):
    """How rough it is: seconds that things take at most, each as chance has it."""

    network: float = 0.0
    thread: float = 0.0
    disk: float = 0.0
    model: float = 0.0
    """From one piece of an answer to the next."""


class Process:
    """What runs and dies as a whole."""

    def __init__(self, name: str):
        self.name, self.alive = name, True
        self.context = Context()
        self.context.run(PROCESS.set, self)
        self.ready = deque[asyncio.Handle]()
        self.stalled_until = 0.0
        self.steps_to_live: int | None = None
        self.frames_to_live: int | None = None
        self.on_death: list[Callable[[], None]] = []

    def has_sent(self) -> None:
        """A frame has left it: of its last one it dies."""
        if self.frames_to_live is not None:
            self.frames_to_live -= 1
            if self.frames_to_live <= 0:
                self.steps_to_live = 1


PROCESS: ContextVar[Process] = ContextVar("PROCESS")
"""Who runs."""
Timer = tuple[float, int, Process, asyncio.Handle]


class _Task(asyncio.Task[Any]):
    """Has the same place in a set whenever a history is repeated."""

    def __init__(self, number: int, *args: Any, **kw: Any):
        self._number = number  # asyncio looks at it before the task is made
        super().__init__(*args, **kw)

    def __hash__(self) -> int:
        return self._number


# What a server's loop has besides (sockets, signals, subprocesses) nobody may use here.
class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs in no real time. An exception that nobody catches ends `run`."""

    def __init__(self, seed: object, weather: Weather):
        self.random, self.weather = Random(f"{seed} loop"), weather
        self.steps = 0
        self.trace: Callable[[Process, asyncio.Handle], None] | None = None
        self._now = 0.0
        self._timers: list[Timer] = []
        self._count = count()
        self._processes: list[Process] = []
        self._tasks: list[asyncio.Task[Any]] = []
        self._uncaught: BaseException | None = None

    # What asyncio asks for ----------------------------------------------------------------------

    def time(self) -> float:
        return self._now

    def get_debug(self) -> bool:
        return False

    def is_running(self) -> bool:
        return True

    def is_closed(self) -> bool:
        return False

    def call_soon(  # type: ignore[override]  # typeshed has it with a TypeVarTuple
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        process = PROCESS.get() if context is None else context[PROCESS]
        if process.alive:
            process.ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]  # there are no threads

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:  # fmt: skip
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        process = PROCESS.get() if context is None else context[PROCESS]
        heapq.heappush(self._timers, (when, next(self._count), process, handle))
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., object], *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:  # fmt: skip
        return self.call_at(self._now + delay, callback, *args, context=context)

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """It is passed over when its time comes."""

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(  # type: ignore[override]
        self, coro: Coroutine[Any, Any, T], *, name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:  # fmt: skip
        task = _Task(len(self._tasks), coro, loop=self, name=name, context=context)
        self._tasks.append(task)
        return task

    def run_in_executor(  # type: ignore[override]
        self, executor: object, work: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        """A thread: `work` is done at once, some time later."""
        done: asyncio.Future[T] = self.create_future()

        def run() -> None:
            try:
                answer = work(*args)
            except Exception as error:  # noqa: BLE001  it is who waits that gets it
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(answer)

        self.call_later(self.random.uniform(0, self.weather.thread), run)
        return done

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception") or RuntimeError(context["message"])
        self._uncaught = self._uncaught or error

    # Processes ----------------------------------------------------------------------------------

    def start(self, process: Process, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run something in a process."""
        if process not in self._processes:
            self._processes.append(process)
        return process.context.run(self.create_task, work, context=process.context.copy())

    def deliver(
        self, process: Process, when: float, work: Callable[[*Ts], None], *args: *Ts
    ) -> None:
        """Call something in a process, which may be another one than this."""
        self.call_at(when, work, *args, context=process.context.copy())

    def kill(self, process: Process) -> None:
        """Nothing of it runs any more, no `finally` either."""
        if process.alive:
            process.alive = False
            process.ready.clear()
            self._processes.remove(process)
            for heard in process.on_death:
                heard()

    # Running ------------------------------------------------------------------------------------

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """The answer of `main`, which runs in a process of its own. Then everything is over."""
        asyncio._set_running_loop(self)
        try:
            task = self.start(Process("world"), main)
            while not task.done():
                self._step()
                if self._uncaught is not None:
                    raise self._uncaught
            return task.result()
        finally:
            self._bury()
            asyncio._set_running_loop(None)

    def _step(self) -> None:
        self._now += STEP_S
        while self._timers and self._timers[0][0] <= self._now:
            _, _, process, handle = heapq.heappop(self._timers)
            if process.alive and not handle.cancelled():
                process.ready.append(handle)
        able = [p for p in self._processes if p.ready and p.stalled_until <= self._now]
        if not able:
            moments = [p.stalled_until for p in self._processes if p.ready]
            self._now = min([*moments, *(timer[0] for timer in self._timers[:1])])
            return
        process = able[0] if len(able) == 1 else self.random.choice(able)
        handle = process.ready.popleft()
        if handle.cancelled():
            return
        self.steps += 1
        if self.trace is not None:
            self.trace(process, handle)
        handle._run()
        if process.steps_to_live is not None:
            process.steps_to_live -= 1
            if process.steps_to_live <= 0:
                self.kill(process)

    def _bury(self) -> None:
        """End what has not ended, without a word from it. What it does now reaches nobody."""
        for process in self._processes:
            process.alive = False
        unraisable, sys.unraisablehook = sys.unraisablehook, lambda args: None
        try:
            with warnings.catch_warnings(action="ignore"):
                for task in self._tasks:  # more are made meanwhile
                    if not task.done():
                        task._log_destroy_pending = False  # type: ignore[attr-defined]
                        _close(task.get_coro())
                    elif not task.cancelled():
                        task.exception()
                self._tasks.clear()
                self._timers.clear()
                gc.collect()  # generators that nobody has ended complain of that
        finally:
            sys.unraisablehook = unraisable


def _close(coro: Any) -> None:  # a coroutine or a generator, as asyncio has it
    for _ in range(100):  # each time it may wait for something else in a `finally`
        try:
            coro.close()
        except BaseException:  # noqa: BLE001  whatever it says now
            continue
        return
