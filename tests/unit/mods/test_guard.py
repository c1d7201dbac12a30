from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from weakref import WeakSet

import pytest

from hubbub.mods import guard
from hubbub.mods.guard import LateHook, Watch
from tests.interaction.stop_rig import HandClock


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    watch.start()
    yield watch
    watch.stop()


def forever() -> None:
    while True:
        pass


def search() -> None:
    """Lets no other thread run."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def stubborn() -> str:
    """Catches what it can, and goes on."""
    while True:
        try:
            time.sleep(60)
        except Exception:  # noqa: BLE001  what a careless hook would do
            continue


def forgetful() -> None:
    """Spends its time in what the interpreter calls by itself, where nothing can be raised."""

    class Thing:
        def __del__(self) -> None:
            for _ in range(10):
                pass

    known: WeakSet[Thing] = WeakSet()
    while True:
        known.add(Thing())


def test_a_late_hook_is_not_interrupted_where_an_error_would_be_lost(watch: Watch) -> None:
    for _ in range(5):
        with pytest.raises(LateHook):  # and with no warning about one that nobody could raise
            watch.run(0.01, forgetful)


@pytest.mark.behaviour("M-69")
def test_a_hook_answers_as_if_nobody_watched_unless_it_never_comes_back(watch: Watch) -> None:
    assert watch.run(5, sorted, [2, 1], reverse=True) == [2, 1]
    with pytest.raises(ZeroDivisionError):
        watch.run(5, lambda: 1 // 0)
    for hook in (forever, stubborn, search, forever):
        with pytest.raises(LateHook):
            watch.run(0.01, hook)
    assert watch.run(5, int, "7") == 7  # each has its own time


def test_in_another_thread_a_late_hook_has_failed_when_it_comes_back() -> None:
    found: list[type[BaseException]] = []

    def elsewhere() -> None:
        watch = Watch()
        try:
            watch.run(0.0, time.sleep, 0.01)
        except LateHook as late:
            found.append(type(late))
        finally:
            watch.stop()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert found == [LateHook]


UNDER_UVLOOP = """
import asyncio, signal, time
import uvloop
from hubbub.mods.guard import LateHook, Watch

async def main():
    before = signal.getsignal(signal.SIGVTALRM)
    watch = Watch()
    watch.start()
    for _ in range(2):
        try:
            watch.run(0.01, time.sleep, 600)
        except LateHook:
            print("late")
    await asyncio.sleep(0)
    watch.stop()
    print(signal.getsignal(signal.SIGVTALRM) == before)

with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
    runner.run(main())
"""


@pytest.mark.slow
def test_under_uvloop_a_late_hook_is_interrupted_too() -> None:
    pytest.importorskip("uvloop")
    command = [sys.executable, "-c", UNDER_UVLOOP]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split() == ["late", "late", "True"]


@pytest.mark.behaviour("M-69")
async def test_each_step_of_a_coroutine_has_the_time_and_waiting_takes_none(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(steps: int) -> str:
        for _ in range(steps):
            clock.time += 4
            await asyncio.sleep(0)
            clock.time += 4
        return "done"

    clock = HandClock()
    with monkeypatch.context() as patched:
        patched.setattr(guard, "monotonic", clock.monotonic)
        assert await watch.steps(10, work(5)) == "done"
        with pytest.raises(LateHook):
            await watch.steps(7, work(5))

    async def breaking(hook: Callable[[], object]) -> None:
        try:
            await asyncio.sleep(0)
            hook()
        finally:  # it does not even end when it is closed
            hook()

    for hook in (forever, search):
        with pytest.raises(LateHook):
            await watch.steps(0.01, breaking(hook))


@pytest.mark.behaviour("M-69")
async def test_a_coroutine_is_cancelled_and_told_of_failures_as_if_nobody_watched(
    watch: Watch,
) -> None:
    ready, seen = asyncio.Event(), list[str]()

    async def work(waiting: asyncio.Future[None]) -> None:
        try:
            ready.set()
            await waiting
        except BaseException as error:
            seen.append(type(error).__name__)
            raise

    loop = asyncio.get_running_loop()
    failing, never = loop.create_future(), loop.create_future()
    failing.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        await watch.steps(5, work(failing))
    ready.clear()
    task = asyncio.create_task(watch.steps(5, work(never)))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["KeyError", "CancelledError"]


NEVER_STOPPED = """
from hubbub.mods.guard import Watch
Watch().start()
sum(n * n for n in range(5_000_000))  # longer than the timer's time
"""


@pytest.mark.slow
@pytest.mark.behaviour("M-69")
def test_a_process_that_never_ends_its_watch_ends_as_it_would() -> None:
    end = "\nimport atexit; atexit._run_exitfuncs(); sum(n * n for n in range(5_000_000))"
    for source in (NEVER_STOPPED, NEVER_STOPPED + end):
        subprocess.run([sys.executable, "-c", source], timeout=60, check=True)
