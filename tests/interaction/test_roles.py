"""Routers, planners, executors, reflectors and pipelines on a real hub, with scripted models."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Turns
from hubbub.testing.model_server import Answer, ModelServer, Script
from tests.interaction import trade
from tests.interaction.agent_rig import call, finish, rig, says
from tests.interaction.peers import Networks, soon
from tests.interaction.role_rig import (
    BOTH,
    fresh_shop,
    judge,
    plan,
    playing,
    roles,
    route,
    start,
    told,
)


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    return fresh_shop()


@pytest.mark.behaviour("O-1")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_plan_is_made_run_side_by_side_judged_and_answered(
    in_memory: Networks, shop: trade.Shop, dialect: str
) -> None:
    shop.together = asyncio.Barrier(2)  # one after the other, they would wait for ever
    answers = [route("make_plan"), plan(BOTH), judge("accept", answer="It is $step_3_result.")]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, dialect=dialect)
        await ann.say("bot", "what do a lamp and a clock cost?")
        assert await told(ann) == "It is 64.5 euros (lamp 24.5)."
        turn = await net.turn("bot-m1")
        assert roles(turn) == [
            "router", "planner", "runs: step 1 (price_of), step 2 (price_of)",
            "runs: step 3 (total_of)", "reflector", "says",
        ]  # fmt: skip
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("finished", "answered")
        assert sorted(shop.asked) == ["clock", "lamp"]
        assert model.mistakes == []


@pytest.mark.behaviour("O-2")
async def test_a_failing_step_is_run_again_and_only_what_needs_it(
    in_memory: Networks, shop: trade.Shop
) -> None:
    shop.closed = 1
    first: JsonValue = {
        "id": 1, "goal": "price of the lamp", "executor": "price_of",
        "arguments": {"article": "lamp"}, "depends_on": [2],
    }  # fmt: skip
    answers = [
        route("make_plan"), plan([first, *BOTH[1:]]),
        judge("retry_step", step=2, reason="it may be open now"),
        judge("accept", answer="$step_3_result"),
    ]  # fmt: skip
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "both, please")
        assert await told(ann) == "64.5 euros (lamp 24.5)"
        assert shop.asked == ["clock", "clock", "lamp"]
        shown = model.requests[2].prompt
        assert '<result step="2" outcome="failed: closed">' in shown
        assert '<result step="3" outcome="not run"/>' in shown
        assert "it may be open now" in model.requests[3].prompt


@pytest.mark.behaviour("O-2")
async def test_another_plan_is_made_knowing_what_came_of_the_first(
    in_memory: Networks, shop: trade.Shop
) -> None:
    wrong: list[JsonValue] = [
        {"id": 1, "goal": "find it", "executor": "price_of", "arguments": {"article": "boat"}}
    ]
    answers = [
        route("make_plan"), plan(wrong), judge("replan", reason="no boats here"),
        plan(BOTH), judge("accept", answer="$step_3_result"),
    ]  # fmt: skip
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "both, please")
        assert (await told(ann)).startswith("64.5")
        again = model.requests[3].prompt
        assert "<earlier_plan>" in again
        assert "no boats here" in again
        assert "there is no boat" in again


@pytest.mark.behaviour("O-3")
async def test_an_escalation_asks_the_person_and_goes_on_with_the_answer(
    in_memory: Networks, shop: trade.Shop
) -> None:
    steps: list[JsonValue] = [BOTH[0]]
    asks = judge("escalate", 3, question="With or without tax?", options=["with", "without"])
    answers = [
        route("make_plan"), plan(steps), asks, judge("accept", answer="24.5 with tax"),
    ]  # fmt: skip
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        assert await told(ann) == "With or without tax?\n1. with\n2. without"
        first = await net.turn("bot-m1")
        assert first.end is not None
        assert first.end.outcome == "finished"
        assert first.end.reason == "waits for an answer: With or without tax?"
        await ann.say("bot", "with")
        assert await told(ann) == "24.5 with tax"
        second = await net.turn("bot-m3")
        assert roles(second) == ["reflector", "says"]
        assert second.steps[0].n == first.steps[-1].n + 1
        assert "goes on with bot-m1" in second.steps[0].notes
        assert shop.asked == ["lamp"]  # not again
        assert '<result step="1" outcome="succeeded">24.5</result>' in model.requests[3].prompt
        assert model.requests[3].incoming == "with"


async def test_when_retries_are_used_up_a_person_is_asked(
    in_memory: Networks, shop: trade.Shop
) -> None:
    shop.closed = 99
    again = judge("retry_step", step=1, reason="still closed")
    answers = [route("make_plan"), plan([BOTH[0]]), again, again]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, roles={"max_retries": 1})
        await ann.say("bot", "the lamp?")
        assert await told(ann) == "I could not get it done: still closed"
        assert shop.asked == ["lamp", "lamp"]


async def test_an_executor_fills_in_arguments_that_the_plan_leaves_out(
    in_memory: Networks, shop: trade.Shop
) -> None:
    steps: list[JsonValue] = [
        {"id": 1, "goal": "the lamp's price", "executor": "price_of"},
        {"id": 2, "goal": "the clock's price", "executor": "price_of"},
    ]
    rules = [
        {"when": {"tools": ["route"]}, "answer": route("make_plan").model_dump()},
        {"when": {"tools": ["submit_plan"]}, "answer": plan(steps).model_dump()},
        {"when": {"prompt": "step 1: the lamp"},
         "answer": says(call("price_of", article="lamp")).model_dump()},
        {"when": {"prompt": "step 2: the clock"},
         "answer": says(call("price_of", article="clock")).model_dump()},
        {"when": {"tools": ["judge"]},
         "answer": judge("accept", answer="$step_1_result, $step_2_result").model_dump()},
    ]  # fmt: skip
    server = ModelServer(Script.model_validate({"rules": rules}))
    async with server as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, models={"router": "small", "planner": "large"})
        await ann.say("bot", "both, please")
        assert await told(ann) == "24.5, 40.0"
        turn = await net.turn("bot-m1")
        assert roles(turn)[2:5] == [
            "executor",
            "executor",
            "runs: step 1 (price_of), step 2 (price_of)",
        ]
        assert [step.notes[1] for step in turn.steps[2:4]] == ["for step 1", "for step 2"]
        assert [r.model for r in model.requests] == ["small", "large", "m", "m", "m"]
        assert turn.start.model == "small, large, m"


class Librarian(Agent):
    """Answers what it is asked, and remembers who asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def on_direct(self, message: Message) -> str:
        self.asked.append(message.text)
        return f"about {message.text}: it is blue"


@pytest.mark.behaviour("O-4")
async def test_a_step_may_be_a_request_to_another_agent(in_memory: Networks) -> None:
    steps: list[JsonValue] = [
        BOTH[0],
        {"id": 2, "goal": "the sky at $step_1_result", "executor": "librarian"},
    ]
    answers = [route("make_plan"), plan(steps), judge("accept", answer="$step_2_result")]
    librarian = Librarian()
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.python("librarian", librarian, card={"description": "Knows <things>"})
        await start(net, model)
        await ann.say("bot", "the sky?")
        assert await told(ann) == "about the sky at 24.5: it is blue"
        assert librarian.asked == ["the sky at 24.5"]
        assert '<agent id="librarian">Knows &lt;things&gt;</agent>' in model.requests[0].prompt
        turn = await net.turn("bot-m1")
        assert [c.name for c in turn.steps[3].calls] == ["ask_agent"]
        await net.network.quiet()
        listed = Turns.model_validate(await net.clients["bot"].call("list_turns"))
        assert {t.outcome for t in listed.turns} == {"finished"}  # the answer woke nobody


async def test_an_agent_that_does_not_answer_is_a_failed_step(in_memory: Networks) -> None:
    class Silent(Agent):
        pass

    steps: list[JsonValue] = [{"id": 1, "goal": "the sky", "executor": "librarian"}]
    answers = [route("make_plan"), plan(steps), judge("accept", answer="Nobody knows.")]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.python("librarian", Silent())
        await start(net, model, roles={"targets": ["librarian"], "request_timeout": "50ms"})
        await ann.say("bot", "the sky?")
        assert await told(ann) == "Nobody knows."
        assert 'outcome="failed: timeout"' in model.requests[2].prompt


@pytest.mark.behaviour("O-5")
class TestRouter:
    async def test_one_that_is_not_sure_asks(self, in_memory: Networks) -> None:
        unsure = route("price_of", 0.4, question="Lamp or clock?", options=["lamp", "clock"])
        answers = [unsure, route("price_of"), says(call("price_of", article="clock"))]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, "router")
            await ann.say("bot", "how much?")
            assert (await told(ann)).startswith("Lamp or clock?")
            await ann.say("bot", "the clock")
            assert await told(ann) == "40.0"
            assert "Lamp or clock?" in model.requests[1].prompt

    async def test_one_that_knows_an_agent_hands_it_on(self, in_memory: Networks) -> None:
        async with (
            playing(route("librarian", request="the sky")) as model,
            rig(in_memory) as net,
        ):
            ann = await net.person()
            await net.python("librarian", Librarian(), card={"skills": ["colours"]})
            await start(net, model, "router")
            await ann.say("bot", "what colour?")
            assert await told(ann) == "about the sky: it is blue"
            assert "make_plan" not in str(model.requests[0].raw["tools"])

    async def test_a_failure_is_told(self, in_memory: Networks) -> None:
        answers = [route("price_of"), says(call("price_of", article="boat"))]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, "router")
            await ann.say("bot", "a boat?")
            assert "there is no boat" in await told(ann)


@pytest.mark.behaviour("O-6")
class TestOneRole:
    async def test_a_planner_says_its_plan(self, in_memory: Networks) -> None:
        async with playing(plan(BOTH)) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, "planner")
            await ann.say("bot", "both?")
            assert await told(ann) == (
                "1. price of the lamp (price_of)\n"
                "2. price of the clock (price_of)\n"
                "3. add them (total_of, after 1, 2)"
            )

    async def test_an_executor_makes_exactly_one_call(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        two = says(call("price_of", article="lamp"), call("price_of", article="clock"))
        answers = [two, says(call("price_of", article="lamp"))]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, "executor")
            await ann.say("bot", "the lamp")
            assert await told(ann) == "24.5"
            assert shop.asked == ["lamp"]
            assert "make exactly one" in model.requests[1].messages[-1].text

    async def test_a_reflector_says_its_judgement(self, in_memory: Networks) -> None:
        async with playing(judge("accept", 5, "it is complete")) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, "reflector")
            await ann.say("bot", "is this good?")
            assert await told(ann) == "5 of 5, accept: it is complete"


@pytest.mark.behaviour("O-7")
class TestInvalidAnswers:
    @pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
    async def test_one_is_corrected_and_a_second_ends_the_turn(
        self, in_memory: Networks, dialect: str
    ) -> None:
        circle: list[JsonValue] = [
            {"id": 1, "goal": "a", "executor": "price_of", "depends_on": [2]},
            {"id": 2, "goal": "b", "executor": "price_of", "depends_on": [1]},
        ]
        answers = [route("make_plan"), plan(circle), plan(circle)]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model, dialect=dialect)
            await ann.say("bot", "go")
            turn = await net.turn("bot-m1")
            assert turn.end is not None
            assert turn.end.outcome == "no_action"
            assert "the planner gave no answer" in turn.end.reason
            assert "wait for each other" in model.requests[2].messages[-1].text
            assert "gave no usable answer" in await told(ann)

    async def test_words_instead_of_a_call_are_corrected(self, in_memory: Networks) -> None:
        talk = Answer(text="I would plan.", ignore_tool_choice=True)
        answers = [talk, route("answer", request="Hello!")]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model)
            await ann.say("bot", "hi")
            assert await told(ann) == "Hello!"

    async def test_a_target_that_does_not_exist_is_told_with_the_nearest(
        self, in_memory: Networks
    ) -> None:
        answers = [route("price_off"), route("answer", request="Sorry.")]
        async with playing(*answers) as model, rig(in_memory) as net:
            ann = await net.person()
            await start(net, model)
            await ann.say("bot", "hi")
            assert await told(ann) == "Sorry."
            assert "did you mean 'price_of'" in model.requests[1].messages[-1].text


async def test_who_needs_no_answer_may_get_none(in_memory: Networks) -> None:
    class Talker(Agent):
        pass

    async with playing(says(finish("just news"))) as model, rig(in_memory) as net:
        await net.python("talker", Talker())
        await start(net, model)
        await net.clients["talker"].call("send_text_message", to="bot", text="fyi")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert (turn.end.outcome, turn.end.reason) == ("finished", "just news")
        assert [r.tools for r in model.requests] == [["route", "finish"]]


@pytest.mark.behaviour("O-8")
async def test_a_pipeline_that_was_killed_asks_and_sends_nothing_twice(
    in_memory: Networks, shop: trade.Shop
) -> None:
    waits = asyncio.Event()

    class Slow(Agent):
        asked = 0

        async def on_direct(self, message: Message) -> str:
            type(self).asked += 1
            waits.set()
            await go.wait()
            return "forty"

    go = asyncio.Event()
    steps: list[JsonValue] = [
        {"id": 1, "goal": "how many?", "executor": "slow"},
        {"id": 2, "goal": "add", "executor": "total_of", "arguments": {"prices": [2]},
         "depends_on": [1]},
    ]  # fmt: skip
    answers = [route("make_plan"), plan(steps), judge("accept", answer="$step_1_result")]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.python("slow", Slow(), card={"skills": ["numbers"]})
        await start(net, model)
        await ann.say("bot", "how many?")
        async with soon():
            await waits.wait()
        await net.kill("bot")
        go.set()
        await start(net, model)
        assert await told(ann) == "forty"
        turn = await net.turn("bot-m1")
        assert (turn.attempts, Slow.asked, len(model.requests)) == (2, 1, 3)
        await net.network.quiet()
        assert await ann.sync() == []
