"""Waiting with an end."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.waiting import done_within

LONG_S = 3600.0
SHORT_S = 0.001


async def test_what_ends_in_time_is_done_and_a_failure_is_raised() -> None:
    async def fails() -> None:
        raise ZeroDivisionError

    assert await done_within(asyncio.sleep(0), LONG_S)
    assert await done_within(asyncio.Queue[int]().join(), 0), "what is done at once needs no time"
    with pytest.raises(ZeroDivisionError):
        await done_within(fails(), LONG_S)


async def test_what_does_not_end_in_time_is_cancelled_and_has_ended_by_then() -> None:
    ended = asyncio.Event()

    async def hangs() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.set()

    assert not await done_within(hangs(), SHORT_S)
    assert ended.is_set()


async def test_what_ends_although_it_is_cancelled_is_done() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return

    assert await done_within(stubborn(), SHORT_S)


async def test_a_task_that_is_being_cancelled_comes_to_what_follows_the_deadline() -> None:
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


async def test_who_is_cancelled_while_waiting_waits_no_longer_and_nothing_is_left() -> None:
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
