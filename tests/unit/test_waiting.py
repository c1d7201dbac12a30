"""Waiting with a deadline."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.waiting import done_within

LONG_S = 3600.0
SHORT_S = 0.001


async def test_work_that_ends_in_time_is_done_and_its_failure_is_raised() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    assert await done_within(asyncio.sleep(0), LONG_S)
    assert await done_within(asyncio.Queue[int]().join(), 0), "immediate work needs no time"
    with pytest.raises(ZeroDivisionError):
        await done_within(fails(), LONG_S)


async def test_work_past_its_deadline_is_cancelled_and_awaited() -> None:
    ended = asyncio.Event()

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    assert not await done_within(hangs(), SHORT_S)
    assert ended.is_set()


async def test_work_that_returns_when_cancelled_counts_as_done() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    assert await done_within(stubborn(), SHORT_S)


async def test_a_deadline_still_applies_in_a_task_being_cancelled() -> None:
    begun, verdicts = asyncio.Event(), list[bool]()

    async def tidies_up() -> None:
        try:
            begun.set()
            await asyncio.Event().wait()
        finally:
            verdicts.append(await done_within(asyncio.Event().wait(), SHORT_S))

    task = asyncio.create_task(tidies_up())
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert verdicts == [False]


async def test_cancelling_the_waiting_task_leaves_no_task_behind() -> None:
    begun = asyncio.Event()
    before = asyncio.all_tasks()

    async def hangs() -> None:
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(done_within(hangs(), LONG_S))
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    await asyncio.wait(asyncio.all_tasks() - before or {task})
    assert task.cancelled()
