"""Time limits for the code of mods in the hub's event loop: measures, reports and disables hooks.

Nothing is interrupted, because an exception in the middle of third-party code would leave it in an
inconsistent state. A call that exceeds its mod's `time_limit` is reported, and its result is used.
A hook that does so repeatedly is disabled. While the loop is blocked, a thread logs the mod, the
hook and the stack.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import traceback
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine, Generator
from math import inf
from time import monotonic
from typing import Any, TypeVar, TypeVarTuple

from hubbub.logs import get_logger
from hubbub.mods.api import Mod

__all__ = ["MOST_LATE", "WITHIN_S", "Guard", "HookTimeout"]

log = get_logger(__name__)

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_LATE, WITHIN_S = 3, 600.0
"""A hook that is late this many times within this many seconds is disabled."""
CHECK_INTERVAL_S = 0.5
"""Seconds between two checks of the event loop."""
_NEVER_OFF = frozenset({"shown", "start", "stop", "reconfigure", "spawn", "applied", "released"})
"""Hooks that complete work already started, and `shown`, without which deleted messages would be
visible."""


class HookTimeout(Exception):
    """A hook exceeded its time limit."""

    def __init__(self, took: float, limit: float, *, off: bool):
        more = ", for the third time; it is disabled until the mod gets new settings"
        super().__init__(f"took {took:.2g} s, longer than {limit:g} s{more if off else ''}")
        self.off = off
        """Whether the hook was disabled because of this."""


class Guard:
    """Runs the code of the mods of one hub. Calls can be nested."""

    def __init__(self, late: Callable[[Mod, str, HookTimeout], None]):
        self._late = late
        self.off: set[tuple[Mod, str]] = set()
        """Disabled hooks and operations."""
        self._times: defaultdict[tuple[Mod, str], deque[float]] = defaultdict(
            lambda: deque(maxlen=MOST_LATE)
        )
        self._running: tuple[Mod, str, float, float] | None = None
        """The current call: mod, hook, start time and limit."""
        self.lateness = 0.0
        """Total seconds of late calls, which are not counted against their callers."""
        self._waiting: set[asyncio.Task[Any] | None] = set()
        """The tasks that run a coroutine of a mod."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    # Measuring --------------------------------------------------------------------------------

    def run(self, limit: float, mod: Mod, hook: str, code: Callable[[*Ts], T], *args: *Ts) -> T:
        """Call the code, and report it if it takes more than `limit` seconds."""
        outer, before = self._running, self.lateness
        began = monotonic()
        self._running = mod, hook, began, limit
        try:
            return code(*args)
        finally:
            self._running = outer
            took = monotonic() - began
            if took > limit and (took := took - self.lateness + before) > limit:
                self.lateness += took
                self.count(mod, hook, took, limit)

    async def steps(
        self, mod: Mod, hook: str, work: Coroutine[Any, Any, T], limit: float | None = None
    ) -> T:
        """Await a coroutine. It can wait for any time, but each of its steps, which block the event
        loop, is measured."""
        task = asyncio.current_task()
        nested = task in self._waiting
        self._waiting.add(task)
        try:
            result: T = await _Steps(self, mod, hook, work, limit or mod.config.time_limit)
        finally:
            if not nested:
                self._waiting.discard(task)
        return result

    async def finish(self, within_s: float) -> None:
        """Wait for the coroutines of mods, and cancel those that do not end in time."""
        await asyncio.sleep(0)  # those just spawned begin
        tasks = [task for task in self._waiting if task is not None]
        if tasks:
            await asyncio.wait(tasks, timeout=within_s)
        for task in tasks:
            if task in self._waiting:
                task.cancel()

    def count(self, mod: Mod, hook: str, took: float, limit: float) -> HookTimeout:
        """Report a late call, and disable its hook if that happened too often."""
        times, now = self._times[mod, hook], monotonic()
        times.append(now)
        often = len(times) == MOST_LATE and now - times[0] <= WITHIN_S and hook not in _NEVER_OFF
        late = HookTimeout(took, limit, off=often and (mod, hook) not in self.off)
        if often:
            self.off.add((mod, hook))
        self._late(mod, hook, late)
        return late

    def forgive(self, mod: Mod) -> None:
        """Enable all disabled hooks of the mod."""
        for each in [each for each in self._times if each[0] is mod]:
            del self._times[each]
            self.off.discard(each)

    # Watching ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Start logging where the calling thread is blocked."""
        self._stopping = threading.Event()
        args = self._stopping, threading.get_ident()
        self._thread = threading.Thread(target=self._watch, args=args, name="mods", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, which returns quickly because it is only waiting."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _watch(self, stopping: threading.Event, loop: int) -> None:
        reported = None
        while not stopping.wait(CHECK_INTERVAL_S):
            running = self._running
            if running is None or running is reported:
                continue
            mod, hook, began, limit = running
            seconds, frame = monotonic() - began, sys._current_frames().get(loop)
            if seconds > limit and frame is not None and self._running is running:
                reported = running
                where = "".join(traceback.format_stack(frame)[-8:])
                log.error(
                    "a mod blocks the hub",
                    mod=mod.name,
                    hook=hook,
                    seconds=round(seconds, 1),
                    stack=where,
                )


class _Steps:
    """An awaitable that measures each step of a coroutine. It is reported as late at most once."""

    def __init__(
        self, guard: Guard, mod: Mod, hook: str, work: Coroutine[Any, Any, Any], limit: float
    ):
        self._guard, self._work = guard, work
        self._mod, self._hook, self._limit = mod, hook, limit

    def __await__(self) -> Generator[Any, Any, Any]:
        work = self._work
        step: Callable[[Any], Any] = work.send
        value: Any = None
        try:
            while True:
                try:
                    awaited = self._run(step, value)
                except StopIteration as done:
                    return done.value
                try:
                    step, value = work.send, (yield awaited)
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in, usually a cancellation
                    step, value = work.throw, error
        finally:
            self._run(work.close)

    def _run(self, step: Callable[[*Ts], T], *given: *Ts) -> T:
        guard, before = self._guard, self._guard.lateness
        try:
            return guard.run(self._limit, self._mod, self._hook, step, *given)
        finally:
            if guard.lateness != before:
                self._limit = inf
