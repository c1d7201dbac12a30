"""Times and costs in the record of a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Step, ToolCallRecord
from hubbub.testing.model_server import ScriptedUsage
from tests.interaction.agent_harness import finish, one_person, says, send
from tests.interaction.peers import Networks
from tests.interaction.scripted import scene

PRICE: JsonValue = {"price": {"input": 0.25, "output": 2.00}}
FIRST = says(send("ann", "x"), usage=ScriptedUsage(prompt_tokens=1000, completion_tokens=10))
SECOND = says(finish(), usage=ScriptedUsage(prompt_tokens=2000, completion_tokens=20))
ROUNDED_MS = 0.11
"""Times are rounded to a tenth of a millisecond."""


def in_order(steps: Sequence[Step]) -> bool:
    """Whether each step and call begins after the end of the one before."""
    records: list[Step | ToolCallRecord] = []
    for step in steps:
        records += [step, *step.calls]
    spans = [(0.0, 0.0), *(span(each) for each in records if each.duration_ms is not None)]
    return all(begin >= end - ROUNDED_MS for (_, end), (begin, _) in pairwise(spans))


def span(record: Step | ToolCallRecord) -> tuple[float, float]:
    """The times of its begin and its end."""
    assert record.at_ms is not None
    assert record.duration_ms is not None
    return record.at_ms, record.at_ms + record.duration_ms


@pytest.mark.behaviour("T-1")
async def test_each_step_records_its_time_and_cost_and_the_turn_their_sum(
    in_memory: Networks,
) -> None:
    async with scene(in_memory, FIRST, SECOND, FIRST, SECOND, endpoint=PRICE) as s:
        turn = await s.turn()
        assert [step.cost_usd for step in turn.steps] == [0.00027, 0.00054]
        assert turn.cost_usd == 0.00081
        watcher = await s.net.network.join("watcher", "service")
        (summary,) = Turns.model_validate(await watcher.call("list_turns")).turns
        assert summary.cost_usd == pytest.approx(0.00081)
        assert all(step.at_ms is not None and step.duration_ms is not None for step in turn.steps)
        sent, finished = turn.steps[0].calls[0], turn.steps[1].calls[0]
        assert (sent.at_ms is None, finished.at_ms is None) == (False, True), "finish does not run"
        assert in_order(turn.steps)
        await s.restart(endpoint={})
        free = await s.turn()
        assert [step.cost_usd for step in free.steps] == [None, None]
        assert (free.cost_usd, free.tokens_in) == (None, 3000)


async def test_times_and_costs_continue_after_a_crash(in_memory: Networks) -> None:
    answers = (FIRST, says(finish(), hold="dying"), SECOND)
    async with scene(in_memory, *answers, endpoint=PRICE) as s:
        id = await s.say()
        await s.held("dying")
        await s.restart()
        turn = await s.net.turn(id)
        assert (turn.attempts, len(turn.steps), turn.cost_usd) == (2, 2, 0.00081)
        assert in_order(turn.steps)


async def test_the_calls_of_a_handler_lie_within_its_step_and_steps_do_not_overlap(
    in_memory: Networks,
) -> None:
    gate = asyncio.Event()

    class Talker(Agent):
        async def on_direct(self, message: Message) -> str:
            await gate.wait()
            await self.send("ann", f"hm, {message.text}")
            return "done"

    async with one_person(in_memory) as (net, ann):
        await net.python("bot", Talker())
        for text in ("one", "two", "three"):
            await ann.say("bot", text)
        gate.set()
        steps = (await net.turn("bot-m2")).steps
    assert [step.n for step in steps] == [1, 2]
    for step in steps:
        begin, end = span(step)
        assert len(step.calls) == 2
        for call in map(span, step.calls):
            assert begin <= call[0]
            assert call[1] <= end + ROUNDED_MS
    assert span(steps[0])[1] <= span(steps[1])[0] + ROUNDED_MS
