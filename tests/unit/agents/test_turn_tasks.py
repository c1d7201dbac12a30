"""Turns that run, and how they are brought to an end."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.agents.turn_tasks import Cancellation, StopTurns, TurnTasks
from tests.interaction.peers import soon
from tests.unit.agents.builders import message, plan

ONE = plan(message(1))


async def forever() -> None:
    await asyncio.Event().wait()


async def cancelled(task: asyncio.Task[None]) -> bool:
    async with soon():
        await asyncio.wait({task})
    return task.cancelled()


@pytest.mark.behaviour("H-63")
async def test_the_first_reason_counts_but_that_the_hub_has_ended_it_counts_more() -> None:
    turns = TurnTasks()
    task = asyncio.create_task(forever())
    turns.add(ONE, task)
    assert turns.ending("bot-m1") is None
    assert turns.end("bot-m1", Cancellation("first"))
    assert turns.end("bot-m1", Cancellation("second"))
    assert turns.ending("bot-m1") == Cancellation("first")
    assert turns.end("bot-m1", Cancellation("stopped", by_hub=True))
    assert turns.ending("bot-m1") == Cancellation("stopped", by_hub=True)
    assert await cancelled(task)
    cases: list[tuple[dict[str, object], str]] = [
        ({"turns": [], "by": "ann", "reason": "enough"}, "stopped by ann: enough"),
        ({"turns": [], "by": "ann"}, "stopped by ann"),
        ({"turns": [], "code": "taken_over", "by": "ann"}, "taken over by ann"),
        ({"turns": []}, "stopped"),
    ]
    for data, told in cases:
        assert StopTurns.model_validate(data).text == told


async def test_one_that_has_come_to_its_end_is_left_alone() -> None:
    turns = TurnTasks()
    task = asyncio.create_task(forever())
    turns.add(ONE, task)
    turns.end("bot-m1", Cancellation("too late"))
    turns.remove("bot-m1")  # before the loop has gone round: it only makes its record durable
    await asyncio.sleep(0)
    assert not task.cancelling()
    assert not turns.end("bot-m1", Cancellation("again"))
    task.cancel()
    assert await cancelled(task)


async def test_a_thread_has_the_turn_that_runs_in_it() -> None:
    turns = TurnTasks()
    task = asyncio.create_task(forever())
    turns.add(ONE, task)
    assert turns.in_thread(ONE.thread_id) == "bot-m1"
    assert turns.in_thread("channel.desk") is None
    assert [p.id for p in turns] == ["bot-m1"]
    await turns.stop()
    assert await cancelled(task)
