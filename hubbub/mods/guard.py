"""Time limits for hooks: plain functions that run inside the hub's loop and may never come back.

A thread looks at a clock while hooks run. One that is late is interrupted by a signal, whose
handler raises in the main thread: that ends loops and sleeps alike. The same signal comes from a
timer that counts the CPU time of the process, for hooks that let no other thread run, as a search
with a regular expression does. Where the hub does not run in the main thread, or on systems
without such signals, a hook that took too long has failed all the same, but nothing interrupts it.
All hubs of a process share the thread, the timer and the handler.
"""

from __future__ import annotations

import _weakrefset
import atexit
import signal
import threading
import weakref
from collections.abc import Callable, Coroutine, Generator
from time import monotonic
from types import FrameType
from typing import Any, ParamSpec, TypeVar

__all__ = ["LateHook", "Watch"]

P = ParamSpec("P")
T = TypeVar("T")

LOOK_EVERY_S = 0.05
"""Between two looks at the clock: by so much a hook may be later than its limit."""
AGAIN_S = 0.25
"""After which a hook is interrupted once more that has caught the first time and gone on."""
_NEVER = float("inf")


class LateHook(BaseException):
    """The hook took longer than it may.

    No `Exception`, so that a hook which catches those cannot go on.
    """


def _disarm() -> None:
    """A process that ends without `leave` has no handler any more, and the signal would kill it."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


class _Interrupts:
    """The one thread and the one signal handler of the process, for as long as there are users."""

    def __init__(self) -> None:
        self.until = _NEVER
        """When the hook that runs now in the main thread is late."""
        self._users = 0
        self._over = threading.Event()
        self._before: object = None
        self._timer = (0.0, 0.0)
        """What the timer was set to before."""
        self._thread: threading.Thread | None = None

    def enter(self) -> None:
        """One user more. Call it in the main thread."""
        self._users += 1
        if self._users == 1:
            self._before = signal.signal(signal.SIGVTALRM, self._interrupt)
            # An idle process uses no CPU time, and is not woken by this.
            looks = LOOK_EVERY_S, LOOK_EVERY_S
            self._timer = signal.setitimer(signal.ITIMER_VIRTUAL, *looks)
            atexit.register(_disarm)
            self._over = threading.Event()
            args = (self._over, threading.get_ident())
            self._thread = threading.Thread(target=self._look, args=args, name="hooks", daemon=True)
            self._thread.start()

    def leave(self) -> None:
        """One user less; with the last one all is as it was before the first."""
        self._users -= 1
        if self._users == 0 and self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
            if signal.getsignal(signal.SIGVTALRM) == self._interrupt:  # else somebody else's
                before = self._before
                signal.setitimer(signal.ITIMER_VIRTUAL, *self._timer)
                atexit.unregister(_disarm)
                signal.signal(
                    signal.SIGVTALRM,
                    before
                    if callable(before) or isinstance(before, signal.Handlers)
                    else signal.SIG_DFL,
                )

    def _look(self, over: threading.Event, main: int) -> None:
        while not over.wait(LOOK_EVERY_S):
            if monotonic() > self.until:
                signal.pthread_kill(main, signal.SIGVTALRM)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """In the main thread. The hook may have come to its end since the signal was sent; where an
        error would be lost, the next signal finds it elsewhere."""
        if monotonic() > self.until and not _loses_errors(frame):
            self.until = monotonic() + AGAIN_S
            raise LateHook


def _loses_errors(frame: FrameType | None) -> bool:
    """Whether the interpreter has called this by itself, and only reports what is raised in it: the
    end of an object, or what hears of it."""
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code.co_filename in _HEAR_OF_ENDS:
            return True
        frame = frame.f_back
    return False


_HEAR_OF_ENDS = frozenset({weakref.__file__, _weakrefset.__file__})

_interrupts = _Interrupts()


class Watch:
    """Runs hooks within their limits from `start` to `stop`; one may run within another."""

    def __init__(self) -> None:
        self._times = _Interrupts()
        """Of this watch alone while nothing interrupts: then only the time is taken."""
        self._interrupting = False

    def start(self) -> None:
        """Interrupt what is late from now on, where that is possible."""
        possible = threading.current_thread() is threading.main_thread()
        if possible and hasattr(signal, "SIGVTALRM") and not self._interrupting:
            _interrupts.enter()
            self._times, self._interrupting = _interrupts, True

    def stop(self) -> None:
        """No hook is called any more."""
        if self._interrupting:
            self._times, self._interrupting = _Interrupts(), False
            _interrupts.leave()

    def run(self, within: float, hook: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """What the hook answers. Raises what it raises, and `LateHook` after `within` seconds."""
        times = self._times
        outer = times.until
        until = times.until = monotonic() + within
        try:
            answer = hook(*args, **kw)
        finally:
            times.until = outer
        if monotonic() > until:
            raise LateHook
        return answer

    async def steps(self, within: float, work: Coroutine[Any, Any, T]) -> T:
        """What the coroutine answers. It may wait for as long as it likes, but each of its steps,
        in which nothing else runs, must not take longer than `within` seconds."""
        answer: T = await _Steps(self, within, work)
        return answer


class _Steps:
    """An awaitable that runs each step of a coroutine watched."""

    def __init__(self, watch: Watch, within: float, work: Coroutine[Any, Any, Any]):
        self._watch, self._within, self._work = watch, within, work

    def __await__(self) -> Generator[Any, Any, Any]:
        work, run, within = self._work, self._watch.run, self._within
        step: Callable[[Any], Any] = work.send
        given: Any = None
        try:
            while True:
                try:
                    asked = run(within, step, given)
                except StopIteration as done:
                    return done.value
                try:
                    step, given = work.send, (yield asked)
                except GeneratorExit:
                    raise
                except BaseException as error:  # noqa: BLE001  thrown in: a cancellation, mostly
                    step, given = work.throw, error
        finally:
            run(within, work.close)
