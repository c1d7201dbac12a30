"""Running turns, and how they are ended."""

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
def test_the_reason_of_a_stop_names_who_ended_the_turn_and_why() -> None:
    cases: list[tuple[dict[str, object], str]] = [
        ({"turns": [], "by": "ann", "reason": "enough"}, "stopped by ann: enough"),
        ({"turns": [], "by": "ann"}, "stopped by ann"),
        ({"turns": [], "code": "taken_over", "by": "ann"}, "taken over by ann"),
        ({"turns": []}, "stopped"),
    ]
    for data, text in cases:
        assert StopTurns.model_validate(data).text == text


@pytest.mark.behaviour("H-63")
async def test_the_first_reason_counts_unless_the_hub_ends_the_turn() -> None:
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


async def test_a_turn_that_has_already_ended_is_not_cancelled() -> None:
    turns = TurnTasks()
    task = asyncio.create_task(forever())
    turns.add(ONE, task)
    turns.end("bot-m1", Cancellation("too late"))
    turns.remove("bot-m1")  # before the cancellation is delivered; the turn only flushes its record
    await asyncio.sleep(0)
    assert not task.cancelling()
    assert not turns.end("bot-m1", Cancellation("again"))
    task.cancel()
    assert await cancelled(task)


async def test_the_running_turn_of_a_thread_can_be_looked_up() -> None:
    turns = TurnTasks()
    task = asyncio.create_task(forever())
    turns.add(ONE, task)
    assert turns.in_thread(ONE.thread_id) == "bot-m1"
    assert turns.in_thread("channel.desk") is None
    assert [p.id for p in turns] == ["bot-m1"]
    await turns.stop()
    assert await cancelled(task)
