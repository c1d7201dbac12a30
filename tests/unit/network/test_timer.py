"""One timer for many moments."""

from __future__ import annotations

import asyncio

import uvloop

from hubbub.clock import SystemClock
from hubbub.network.timer import AGAIN_S, Timer
from tests.interaction.peers import soon
from tests.interaction.stop_harness import HandClock


class Bell:
    """Rings at the given moments and records when it did."""

    def __init__(self, clock: HandClock | SystemClock):
        self.rang: list[float] = []
        self.moments: list[float] = []
        self.event = asyncio.Event()
        self.timer = Timer(clock, self.due)

    def at(self, *moments: float) -> None:
        self.moments += moments
        for moment in moments:
            self.timer.at(moment)

    def due(self, now: float) -> float | None:
        self.rang.append(now)
        self.moments = [moment for moment in self.moments if moment > now]
        self.event.set()
        return min(self.moments, default=None)


async def test_the_timer_fires_at_its_earliest_moment_until_it_is_stopped() -> None:
    clock = HandClock()
    clock.wall = 1000.0
    bell = Bell(clock)
    bell.at(1010, 1005, 1020)
    for now in (1004, 1005, 1006, 1015, 1019, 1030, 1040):
        clock.wall = now
        bell.timer.look()
    assert bell.rang == [1005, 1015, 1030]
    bell.at(1045)
    bell.timer.stop()
    bell.at(1050)
    clock.wall = 2000
    bell.timer.look()
    assert bell.rang == [1005, 1015, 1030], "a stopped timer never fires"


def test_the_timer_fires_in_uvloop() -> None:
    async def ring() -> None:
        bell = Bell(SystemClock())
        bell.at(0.0, SystemClock.now() + 0.01, -5.0)
        async with soon():
            while bell.moments:
                bell.event.clear()
                await bell.event.wait()
        bell.timer.stop()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(ring())


async def test_a_moment_that_stays_due_fires_again_after_a_pause() -> None:
    clock = HandClock()
    clock.wall = 1000.0
    rang = list[float]()

    def refused(now: float) -> float:
        rang.append(now)
        return 1000.0

    timer = Timer(clock, refused)
    timer.at(1000)
    for now in (1000.0, 1000.0, 1000.0 + AGAIN_S / 2, 1000.0 + AGAIN_S):
        clock.wall = now
        timer.look()
    assert rang == [1000.0, 1000.0 + AGAIN_S]
    timer.stop()


async def test_a_moment_can_be_added_by_the_callback() -> None:
    clock, rang = HandClock(), list[float]()
    clock.wall = 1000.0

    def due(now: float) -> None:
        rang.append(now)
        if now < 1003:
            timer.at(now + 1)

    timer = Timer(clock, due)
    timer.at(1001)
    for now in (1001, 1002, 1003, 1004):
        clock.wall = now
        timer.look()
    assert rang == [1001, 1002, 1003]
    timer.stop()
