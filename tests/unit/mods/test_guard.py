from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from hubbub.mods import guard as guards
from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.guard import MOST_LATE, WITHIN_S, Guard, HookTimeout
from tests.interaction.stop_harness import HandClock

pytestmark = pytest.mark.behaviour("M-69")

LIMIT = 10.0


class Slow(Mod):
    name = "slow"


class Measured:
    """A guard on a manual clock, with its reports."""

    def __init__(self, clock: HandClock):
        self.clock, self.mod = clock, Slow(ModConfig())
        self.reports: list[tuple[str, bool]] = []
        self.guard = Guard(lambda mod, hook, late: self.reports.append((hook, late.off)))

    def run(self, hook: str, seconds: float, code: Callable[[], object] = lambda: None) -> object:
        def hooked() -> object:
            self.clock.wall += seconds
            return code()

        return self.guard.run(LIMIT, self.mod, hook, hooked)


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measured:
    clock = HandClock()
    monkeypatch.setattr(guards, "monotonic", clock.monotonic)
    return Measured(clock)


def test_a_slow_hook_returns_its_result_and_is_disabled_the_third_time(
    measured: Measured,
) -> None:
    assert measured.run("on_join", 1, lambda: 7) == 7
    assert measured.reports == []
    assert measured.run("on_join", 11, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        measured.run("on_join", 11, lambda: 1 // 0)
    assert (measured.reports, measured.guard.off) == ([("on_join", False)] * 2, set())
    measured.run("on_join", 11)
    assert (measured.reports[2:], measured.guard.off) == (
        [("on_join", True)],
        {(measured.mod, "on_join")},
    )
    measured.guard.forgive(measured.mod)
    assert not measured.guard.off
    measured.run("on_join", 11)
    assert (measured.reports[3:], measured.guard.off) == ([("on_join", False)], set())


def test_a_rarely_slow_hook_and_the_hook_that_hides_deletions_stay_enabled(
    measured: Measured,
) -> None:
    for _ in range(2 * MOST_LATE):
        measured.run("on_turn", 11)
        measured.run("shown", 11)
        measured.clock.wall += WITHIN_S / 2
    assert measured.reports == [("on_turn", False), ("shown", False)] * 2 * MOST_LATE
    assert not measured.guard.off


def test_time_in_a_nested_hook_does_not_count_for_the_outer_hook(measured: Measured) -> None:
    def inner() -> None:
        measured.run("on_message", 60)

    measured.run("on_timer", 1, inner)
    assert measured.reports == [("on_message", False)]
    measured.run("on_timer", 11, inner)
    assert [hook for hook, _ in measured.reports[1:]] == ["on_message", "on_timer"]


async def test_a_coroutine_is_timed_per_step_and_not_while_it_waits(
    measured: Measured,
) -> None:
    async def work() -> str:
        for _ in range(5):
            measured.clock.wall += 6
            await asyncio.sleep(0)
            measured.clock.wall += 6
        return "done"

    assert await measured.guard.steps(measured.mod, "wide", work(), 13) == "done"
    assert measured.reports == []
    assert await measured.guard.steps(measured.mod, "narrow", work(), 11) == "done"
    assert measured.reports == [("narrow", False)]


async def test_a_timed_coroutine_still_receives_failures_and_cancellation() -> None:
    ready, raised = asyncio.Event(), list[str]()
    guard, mod = Guard(lambda mod, hook, late: None), Slow(ModConfig())

    async def work(waiting: asyncio.Future[None]) -> None:
        try:
            ready.set()
            await waiting
        except BaseException as error:
            raised.append(type(error).__name__)
            raise

    loop = asyncio.get_running_loop()
    failing, never = loop.create_future(), loop.create_future()
    failing.set_exception(KeyError("x"))
    with pytest.raises(KeyError):
        await guard.steps(mod, "work", work(failing))
    ready.clear()
    task = asyncio.create_task(guard.steps(mod, "work", work(never)))
    await ready.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert raised == ["KeyError", "CancelledError"]


def test_the_log_names_the_function_in_which_a_hook_blocks_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records, reported = list[dict[str, object]](), threading.Event()

    class Log:
        def error(self, text: str, **fields: object) -> None:
            records.append({"text": text, **fields})
            reported.set()

    def blocking() -> bool:
        return reported.wait(60)

    monkeypatch.setattr(guards, "log", Log())
    monkeypatch.setattr(guards, "CHECK_INTERVAL_S", 0.001)
    guard, mod = Guard(lambda mod, hook, late: None), Slow(ModConfig())
    guard.start()
    try:
        assert guard.run(0.001, mod, "on_join", blocking)
    finally:
        guard.stop()
    [line] = records
    assert (line["text"], line["mod"], line["hook"]) == (
        "a mod blocks the hub",
        "slow",
        "on_join",
    )
    assert "in blocking" in str(line["stack"])


def test_a_timeout_reports_its_duration_and_consequence() -> None:
    assert str(HookTimeout(2.345, 1.0, off=False)) == "took 2.3 s, longer than 1 s"
    assert str(HookTimeout(12.0, 1.0, off=True)) == (
        "took 12 s, longer than 1 s, for the third time; it is disabled until the mod gets new "
        "settings"
    )
