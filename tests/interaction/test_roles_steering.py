"""People who say something while roles are at work, and the role that hears it."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer, Rule, When
from hubbub.testing.model_server import Answer, ModelServer, Refusal, Script
from tests.interaction import trade
from tests.interaction.agent_rig import Rig, call, finish, rig, says
from tests.interaction.peers import Networks, Peer, eventually, soon
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


def holding(answer: Answer, name: str) -> Answer:
    """The answer, when the test lets it go."""
    return answer.model_copy(update={"hold": name})


async def held(model: ModelServer, name: str) -> None:
    async with soon():
        await model.held(name)


async def steer(net: Rig, ann: Peer, text: str) -> None:
    """Ann says it, and the agent has it in its hands."""
    seq = (await ann.say("bot", text))["seq"]
    client = net.clients["bot"]
    await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)


def heard_in(turn: Turn) -> list[tuple[str, list[str]]]:
    """The roles that heard something for the first time, and what: the ids of the messages."""
    return [
        (role, [told.message for told in step.steered])
        for role, step in zip(roles(turn), turn.steps, strict=True)
        if step.steered
    ]


@pytest.mark.behaviour("Y-4", "O-12")
@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_a_message_that_comes_while_roles_work_is_heard_by_the_next_and_all_after_it(
    in_memory: Networks, dialect: str
) -> None:
    answers = [
        route("make_plan"),
        holding(plan([BOTH[0]]), "planning"),
        judge("replan", reason="the clock is wanted, too"),
        plan(BOTH),
        judge("accept", answer="$step_3_result"),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, dialect=dialect)
        await ann.say("bot", "the lamp?")
        await held(model, "planning")
        await steer(net, ann, "and the <clock>")
        model.release("planning")
        assert await told(ann) == "64.5 euros (lamp 24.5)"
        turn = await net.turn("bot-m1")
        assert heard_in(turn) == [("reflector", ["m2"])]
        for request in model.requests[2:]:
            assert request.incoming == "and the <clock>"
            before, element, after = request.prompt.partition("and the &lt;clock&gt;</content>")
            assert element
            assert before.rpartition("<incoming_message ")[2].startswith('sender="ann"')
            assert "This has come in while you were at work." in after
            assert "Judge the work." in after or "What is to be done" in after
        assert "clock" not in str(model.requests[1].raw["messages"])
        assert len(model.requests) == 5, "it starts no turn of its own"
        receipts = await ann.call("read_receipts", id="m2")
        (bot,) = [r for r in receipts["receipts"] if r["participant"] == "bot"]
        assert (bot["turn"], bot["state"]) == ("bot-m1", "ended")


async def test_executors_side_by_side_hear_the_same_and_it_is_recorded_once(
    in_memory: Networks, shop: trade.Shop
) -> None:
    steps: list[JsonValue] = [
        {"id": 1, "goal": "the lamp's price", "executor": "price_of"},
        {"id": 2, "goal": "the clock's price", "executor": "price_of"},
    ]
    rules = [
        Rule(when=When(tools=["route"]), answer=route("make_plan")),
        Rule(when=When(tools=["submit_plan"]), answer=holding(plan(steps), "planning")),
        Rule(when=When(prompt="step 1: the lamp"), answer=says(call("price_of", article="lamp"))),
        Rule(when=When(prompt="step 2: the clock"), answer=says(call("price_of", article="clock"))),
        Rule(when=When(tools=["judge"]), answer=judge("accept", answer="done")),
    ]
    async with ModelServer(Script(rules=rules)) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "both?")
        await held(model, "planning")
        await steer(net, ann, "hurry")
        model.release("planning")
        assert await told(ann) == "done"
        turn = await net.turn("bot-m1")
        assert heard_in(turn) == [("executor", ["m2"])]
        for request in model.requests[2:]:
            assert str(request.raw["messages"]).count("hurry") == 1


async def test_a_role_that_is_corrected_is_shown_it_once(
    in_memory: Networks,
) -> None:
    answers = [
        holding(route("make_plan"), "routing"),
        plan([]),
        plan([BOTH[0]]),
        judge("accept", answer="$step_1_result"),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        await held(model, "routing")
        await steer(net, ann, "hurry")
        model.release("routing")
        assert await told(ann) == "24.5"
        corrected = model.requests[2]
        assert [m.role for m in corrected.body.messages] == ["system", "user", "assistant", "tool"]
        assert corrected.prompt == model.requests[1].prompt
        assert corrected.prompt.count("hurry") == 1


@pytest.mark.behaviour("Y-5")
async def test_who_is_steered_by_a_person_may_not_stay_silent(in_memory: Networks) -> None:
    class Talker(Agent):
        pass

    answers = [
        holding(says(call("route", target="nobody", confidence=1)), "routing"),
        says(finish("just news")),
        route("answer", request="Here I am."),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await net.python("talker", Talker())
        await start(net, model)
        await net.clients["talker"].call("send_text_message", to=["bot", "ann"], text="fyi")
        await ann.event()
        await held(model, "routing")
        seq = (await ann.say(["bot", "talker"], "are you there?"))["seq"]
        client = net.clients["bot"]
        await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)
        model.release("routing")
        turn = await net.turn("bot-m1")
        assert turn.end is not None
        assert turn.end.outcome == "no_action"
        assert [r.tools for r in model.requests[:2]] == [["route", "finish"], ["route"]]


async def test_an_agent_that_queues_hears_it_in_the_next_turn(in_memory: Networks) -> None:
    answers = [
        holding(route("make_plan"), "routing"),
        plan([BOTH[0]]),
        judge("accept", answer="$step_1_result"),
        route("answer", request="Welcome."),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model, steer="queue")
        await ann.say("bot", "the lamp?")
        await held(model, "routing")
        await steer(net, ann, "thanks")
        model.release("routing")
        assert [await told(ann), await told(ann)] == ["24.5", "Welcome."]
        assert heard_in(await net.turn("bot-m1")) == []
        assert (await net.turn("bot-m2")).start.messages == ("m2",)


async def test_a_turn_whose_model_fails_leaves_it_to_the_next(in_memory: Networks) -> None:
    answers: list[AnyAnswer] = [
        holding(route("make_plan"), "routing"),
        Refusal(status=400, message="no"),
        route("answer", request="Here I am."),
    ]
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        await held(model, "routing")
        await steer(net, ann, "hello?")
        model.release("routing")
        first, second = await net.turn("bot-m1"), await net.turn("bot-m2")
        assert first.end is not None
        assert first.end.outcome == "model_error"
        assert heard_in(first) == []
        assert second.start.messages == ("m2",)


@pytest.mark.behaviour("Y-6", "O-8")
async def test_a_pipeline_that_is_taken_up_again_shows_it_in_the_same_place(
    networks: Networks, shop: trade.Shop
) -> None:
    last = judge("accept", answer="$step_1_result")
    answers = [
        holding(route("make_plan"), "routing"),
        plan([BOTH[0]]),
        holding(last, "dying"),
        last,
    ]
    async with playing(*answers) as model, rig(networks) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        await held(model, "routing")
        await steer(net, ann, "hurry")
        model.release("routing")
        await held(model, "dying")
        await net.kill("bot")
        await net.network.gone("bot")
        await start(net, model)
        assert await told(ann) == "24.5"
        turn = await net.turn("bot-m1")
        assert turn.start.messages == ("m1",)
        assert heard_in(turn) == [("planner", ["m2"])]
        before, after = (request.body.messages for request in model.requests[2:])
        assert [m.text for m in after] == [m.text for m in before]
        assert shop.asked == ["lamp"]


async def test_what_comes_after_the_question_to_the_person_answers_it(
    in_memory: Networks, shop: trade.Shop
) -> None:
    """What came before it does not: it was said without having seen the question."""
    shop.together = asyncio.Barrier(2)
    asks = judge("escalate", 3, question="With or without tax?")
    answers = [
        route("make_plan"), plan([BOTH[0]]), holding(asks, "judging"),
        route("answer", request="Yes."),
    ]  # fmt: skip
    async with playing(*answers) as model, rig(in_memory) as net:
        ann = await net.person()
        await start(net, model)
        await ann.say("bot", "the lamp?")
        async with soon():
            await shop.together.wait()
        await held(model, "judging")
        await steer(net, ann, "still there?")
        model.release("judging")
        assert [await told(ann), await told(ann)] == ["With or without tax?", "Yes."]
        assert roles(await net.turn("bot-m2")) == ["router", "says"]
