"""Virtual time: an event loop that runs several processes, one step at a time, driven by a seed.

Within a process callbacks run in the order in which they were scheduled, as asyncio guarantees. The
next process and the time that a thread or disk takes are random. Time passes when nothing can run.
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
"""The time of one callback."""


class Weather(NamedTuple):
    """The maxima of random delays, in seconds."""

    network: float = 0.0
    thread: float = 0.0
    disk: float = 0.0
    model: float = 0.0
    """Between two chunks of an answer."""


class Process:
    """A process, which runs and is killed as a whole."""

    def __init__(self, name: str):
        self.name, self.alive = name, True
        self.context = Context()
        self.context.run(PROCESS.set, self)
        self.ready = deque[asyncio.Handle]()
        self.stalled_until = 0.0
        self.steps_to_live: int | None = None
        self.frames_to_live: int | None = None
        self.on_death: list[Callable[[], None]] = []

    def count_frame(self) -> None:
        """Counts a sent frame, and ends the process after its last one."""
        if self.frames_to_live is not None:
            self.frames_to_live -= 1
            if self.frames_to_live <= 0:
                self.steps_to_live = 1


PROCESS: ContextVar[Process] = ContextVar("PROCESS")
"""The running process."""
Timer = tuple[float, int, Process, asyncio.Handle]


class _Task(asyncio.Task[Any]):
    """Has the same position in a set whenever a history is repeated."""

    def __init__(self, number: int, *args: Any, **kw: Any):
        self._number = number  # asyncio hashes the task during its construction
        super().__init__(*args, **kw)

    def __hash__(self) -> int:
        return self._number


# Without sockets, signals and subprocesses, which the simulation does not use.
class VirtualLoop(asyncio.AbstractEventLoop):
    """Runs in no real time. An uncaught exception ends `run`."""

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

    # The interface of asyncio -------------------------------------------------------------------

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
        """A cancelled timer is skipped when its time comes."""

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
        """A thread: `work` runs as one step, after a delay."""
        done: asyncio.Future[T] = self.create_future()

        def run() -> None:
            try:
                answer = work(*args)
            except Exception as error:  # noqa: BLE001  passed on to the caller
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
        """Runs a coroutine in a process."""
        if process not in self._processes:
            self._processes.append(process)
        return process.context.run(self.create_task, work, context=process.context.copy())

    def deliver(
        self, process: Process, when: float, work: Callable[[*Ts], None], *args: *Ts
    ) -> None:
        """Calls a function in a process, not necessarily the current one."""
        self.call_at(when, work, *args, context=process.context.copy())

    def kill(self, process: Process) -> None:
        """Ends a process at once, without running any `finally`."""
        if process.alive:
            process.alive = False
            process.ready.clear()
            self._processes.remove(process)
            for callback in process.on_death:
                callback()

    # Running ------------------------------------------------------------------------------------

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """The result of `main`, which runs in its own process; then ends all others."""
        asyncio._set_running_loop(self)
        try:
            task = self.start(Process("world"), main)
            while not task.done():
                self._step()
                if self._uncaught is not None:
                    raise self._uncaught
            return task.result()
        finally:
            self._discard()
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

    def _discard(self) -> None:
        """Closes all unfinished tasks silently and without effect."""
        for process in self._processes:
            process.alive = False
        unraisable, sys.unraisablehook = sys.unraisablehook, lambda args: None
        try:
            with warnings.catch_warnings(action="ignore"):
                for task in self._tasks:  # which grows meanwhile
                    if not task.done():
                        task._log_destroy_pending = False  # type: ignore[attr-defined]
                        _close(task.get_coro())
                    elif not task.cancelled():
                        task.exception()
                self._tasks.clear()
                self._timers.clear()
                gc.collect()  # unfinished generators warn
        finally:
            sys.unraisablehook = unraisable


def _close(coro: Any) -> None:  # a coroutine or a generator, as asyncio has it
    for _ in range(100):  # each time it can wait for something else in a `finally`
        try:
            coro.close()
        except BaseException:  # noqa: BLE001  of any kind
            continue
        return
