"""What the record of a turn tells of time and money."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise

import pytest
from pydantic import JsonValue

from hubbub import Agent, Message
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Step, ToolCallRecord, Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Script, Usage
from tests.interaction.agent_rig import finish, rig, says, send
from tests.interaction.peers import Networks, soon

PRICE: JsonValue = {"price": {"input": 0.25, "output": 2.00}}
FIRST = says(send("ann", "x"), usage=Usage(prompt_tokens=1000, completion_tokens=10))
SECOND = says(finish(), usage=Usage(prompt_tokens=2000, completion_tokens=20))


def playing(*answers: AnyAnswer) -> ModelServer:
    return ModelServer(Script(answers=list(answers)))


def in_order(steps: Sequence[Step]) -> bool:
    """Whether each thing begins when that before it has ended, as a page would draw it."""
    ends = [(0.0, 0.0)]
    everything: list[Step | ToolCallRecord] = []
    for step in steps:
        everything += [step, *step.calls]
    for done in everything:
        if done.duration_ms is not None:
            assert done.at_ms is not None
            ends.append((done.at_ms, done.at_ms + done.duration_ms))
    return all(begin >= end - 0.11 for (_, end), (begin, _) in pairwise(ends))


class TestMoney:
    @pytest.mark.behaviour("T-1")
    async def test_each_step_tells_what_it_cost_and_the_turn_the_sum(
        self, networks: Networks
    ) -> None:
        async with playing(FIRST, SECOND) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model, endpoint=PRICE)
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert [step.cost_usd for step in turn.steps] == [0.00027, 0.00054]
            assert turn.cost_usd == 0.00081
            operator = await net.network.join("operator", "service")
            (summary,) = Turns.model_validate(await operator.call("list_turns")).turns
            assert summary.cost_usd == pytest.approx(0.00081)

    async def test_without_a_price_nothing_is_said_of_money(self, in_memory: Networks) -> None:
        async with playing(FIRST, SECOND) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert [step.cost_usd for step in turn.steps] == [None, None]
            assert (turn.cost_usd, turn.tokens_in) == (None, 3000)


class TestTime:
    async def test_a_models_steps_and_calls_tell_when_they_began(self, networks: Networks) -> None:
        async with playing(FIRST, SECOND) as model, rig(networks) as net:
            ann = await net.person()
            await net.llm("bot", model)
            await ann.say("bot", "go")
            steps = (await net.turn("bot-m1")).steps
            assert all(step.at_ms is not None and step.duration_ms is not None for step in steps)
            sent, finished = steps[0].calls[0], steps[1].calls[0]
            assert sent.at_ms is not None
            assert finished.at_ms is None  # there is nothing to run
            assert in_order(steps)

    async def test_after_a_crash_they_go_on_where_the_record_ends(
        self, in_memory: Networks
    ) -> None:
        script = (FIRST, says(finish(), hold="dying"), SECOND)
        async with playing(*script) as model, rig(in_memory) as net:
            ann = await net.person()
            await net.llm("bot", model, endpoint=PRICE)
            await ann.say("bot", "go")
            async with soon():
                await model.held("dying")
            await net.kill("bot")
            await net.llm("bot", model, endpoint=PRICE)
            turn = await net.turn("bot-m1")
            assert turn.attempts == 2
            assert len(turn.steps) == 2
            assert in_order(turn.steps)
            assert turn.cost_usd == 0.00081

    async def test_a_handlers_calls_lie_within_its_run(self, in_memory: Networks) -> None:
        class Talker(Agent):
            async def on_direct(self, message: Message) -> str:
                await self.send("ann", f"hm, {message.text}")
                return "done"

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Talker())
            await ann.say("bot", "go")
            (step,) = (await net.turn("bot-m1")).steps
            self.check_handler(step)
            assert len(step.calls) == 2

    async def test_several_messages_are_dealt_with_one_after_the_other(
        self, in_memory: Networks
    ) -> None:
        gate = asyncio.Event()

        class Talker(Agent):
            async def on_direct(self, message: Message) -> str:
                await gate.wait()
                return message.text

        async with rig(in_memory) as net:
            ann = await net.person()
            await net.python("bot", Talker())
            for text in ("one", "two", "three"):
                await ann.say("bot", text)
            gate.set()
            turn: Turn = await net.turn("bot-m2")
            assert [step.n for step in turn.steps] == [1, 2]
            for step in turn.steps:
                self.check_handler(step)
            first, second = turn.steps
            assert (first.at_ms or 0) + (first.duration_ms or 0) <= (second.at_ms or 0) + 0.11

    def check_handler(self, step: Step) -> None:
        assert step.at_ms is not None
        assert step.duration_ms is not None
        end = step.at_ms + step.duration_ms
        for call in step.calls:
            assert call.at_ms is not None
            assert call.duration_ms is not None
            assert step.at_ms <= call.at_ms
            assert call.at_ms + call.duration_ms <= end + 0.11  # each is rounded to a tenth
