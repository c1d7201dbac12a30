"""Time limits for the code of mods that runs in the hub's loop: measured, reported, switched off.

Nothing is interrupted: an exception that is raised in the middle of other people's code leaves it
half done. What took longer than its mod's `time_limit` keeps its answer and is reported; what does
so again and again is not called any more. While the loop is held up, a thread writes into the
hub's log where it hangs: mod, hook and stack.
"""

from __future__ import annotations

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
"""A hook that was late so often within so many seconds is switched off."""
LOOK_EVERY_S = 0.5
"""Between two looks at what the loop is doing."""
_NEVER_OFF = frozenset({"shown", "start", "stop", "reconfigure", "spawn", "applied", "released"})
"""What completes what has begun; and without `shown`, what was deleted would be seen."""


class HookTimeout(Exception):
    """A hook took longer than it may."""

    def __init__(self, took: float, limit: float, *, off: bool):
        more = ", for the third time: it is not called any more until the mod gets new settings"
        super().__init__(f"took {took:.2g} s, longer than {limit:g} s{more if off else ''}")
        self.off = off
        """Whether that is why it is switched off now."""


class Guard:
    """Runs the code of the mods of one hub. What it calls may call it again."""

    def __init__(self, late: Callable[[Mod, str, HookTimeout], None]):
        self._late = late
        self.off: set[tuple[Mod, str]] = set()
        """Hooks and operations that are not called any more."""
        self._times: defaultdict[tuple[Mod, str], deque[float]] = defaultdict(
            lambda: deque(maxlen=MOST_LATE)
        )
        self._running: tuple[Mod, str, float, float] | None = None
        """What runs now: mod, hook, since when, and for how long it may."""
        self.lateness = 0.0
        """Seconds of late calls, which are not those of their callers."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    # Measuring --------------------------------------------------------------------------------

    def run(self, limit: float, mod: Mod, hook: str, code: Callable[[*Ts], T], *args: *Ts) -> T:
        """What the code answers or raises; it should within `limit` seconds."""
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
        """What the coroutine answers. It may wait for as long as it likes; each of its steps, in
        which nothing else runs, is measured."""
        answer: T = await _Steps(self, mod, hook, work, limit or mod.config.time_limit)
        return answer

    def count(self, mod: Mod, hook: str, took: float, limit: float) -> HookTimeout:
        """Report a late call, and switch its hook off if that has been too often."""
        times, now = self._times[mod, hook], monotonic()
        times.append(now)
        often = len(times) == MOST_LATE and now - times[0] <= WITHIN_S and hook not in _NEVER_OFF
        late = HookTimeout(took, limit, off=often and (mod, hook) not in self.off)
        if often:
            self.off.add((mod, hook))
        self._late(mod, hook, late)
        return late

    def forgive(self, mod: Mod) -> None:
        """Whatever of the mod was switched off is called again."""
        for each in [each for each in self._times if each[0] is mod]:
            del self._times[each]
            self.off.discard(each)

    # Watching ---------------------------------------------------------------------------------

    def start(self) -> None:
        """From now on write into the log where the thread that calls this hangs."""
        self._over = threading.Event()
        args = self._over, threading.get_ident()
        self._thread = threading.Thread(target=self._look, args=args, name="mods", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The thread ends, which takes it no time: it only waits."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def _look(self, over: threading.Event, loop: int) -> None:
        told = None
        while not over.wait(LOOK_EVERY_S):
            running = self._running
            if running is None or running is told:
                continue
            mod, hook, began, limit = running
            seconds, frame = monotonic() - began, sys._current_frames().get(loop)
            if seconds > limit and frame is not None and self._running is running:
                told = running
                where = "".join(traceback.format_stack(frame)[-8:])
                log.error(
                    "a mod holds up the hub",
                    mod=mod.name,
                    hook=hook,
                    seconds=round(seconds, 1),
                    stack=where,
                )


class _Steps:
    """An awaitable that measures each step of a coroutine; it is late once at most."""

    def __init__(
        self, guard: Guard, mod: Mod, hook: str, work: Coroutine[Any, Any, Any], limit: float
    ):
        self._guard, self._work = guard, work
        self._mod, self._hook, self._limit = mod, hook, limit

    def __await__(self) -> Generator[Any, Any, Any]:
        work = self._work
        step: Callable[[Any], Any] = work.send
        given: Any = None
        try:
            while True:
                try:
                    asked = self._run(step, given)
                except StopIteration as done:
                    return done.value
                try:
                    step, given = work.send, (yield asked)
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in: a cancellation, mostly
                    step, given = work.throw, error
        finally:
            self._run(work.close)

    def _run(self, step: Callable[[*Ts], T], *given: *Ts) -> T:
        guard, before = self._guard, self._guard.lateness
        try:
            return guard.run(self._limit, self._mod, self._hook, step, *given)
        finally:
            if guard.lateness != before:
                self._limit = inf
