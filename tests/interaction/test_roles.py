"""Routers, planners, executors, reflectors and pipelines on a real hub, with scripted models."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub import Agent
from hubbub.config.models import NetworkFile
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Turns
from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import Refusal, Script, ScriptedAnswer, ScriptRule, When
from tests.interaction import trade
from tests.interaction.agent_harness import call, finish, says
from tests.interaction.peers import Networks, soon
from tests.interaction.role_harness import BOTH, judge, plan, roles, route
from tests.interaction.scripted import Config, Scene, ending, scene
from tests.interaction.windows import DESK, chatter, layers, size_of

DIALECTS = pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
LAMP, CLOCK = call("price_of", article="lamp"), call("price_of", article="clock")
TWO: list[JsonValue] = [
    {"id": 1, "goal": "the lamp's price", "executor": "price_of"},
    {"id": 2, "goal": "the clock's price", "executor": "price_of"},
]
"""Steps whose executors fill in the arguments."""


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    return trade.fresh_shop()


def at_work(
    networks: Networks,
    *answers: AnyAnswer,
    kind: str = "pipeline",
    script: Script | None = None,
    file: NetworkFile | None = None,
    started: bool = True,
    **config: Any,
) -> AbstractAsyncContextManager[Scene]:
    """An agent of this kind with the tools of the shop."""
    config = {"kind": kind, "tools": [*trade.TOOLS], **config}
    base = trade.FILE.parent
    return scene(networks, *answers, script=script, file=file, base=base, started=started, **config)


@pytest.mark.behaviour("O-1")
@DIALECTS
async def test_a_plan_is_made_run_concurrently_judged_and_answered(
    in_memory: Networks, shop: trade.Shop, dialect: str
) -> None:
    shop.together = asyncio.Barrier(2)  # in sequence, they would deadlock
    answers = [route("make_plan"), plan(BOTH), judge("accept", answer="It is $step_3_result.")]
    async with at_work(in_memory, *answers, endpoint={"dialect": dialect}) as s:
        turn = await s.turn("what do a lamp and a clock cost?")
        assert await s.heard() == "It is 64.5 euros (lamp 24.5)."
        assert roles(turn) == ["router", "planner", "run", "run", "reflector", "say"]
        assert ending(turn) == ("finished", "answered")
        assert sorted(shop.asked) == ["clock", "lamp"]
        assert s.model.mistakes == []


@pytest.mark.behaviour("O-2")
async def test_a_failed_step_is_retried_and_a_new_plan_sees_the_old_results(
    in_memory: Networks, shop: trade.Shop
) -> None:
    shop.closed = 1
    first: JsonValue = {
        "id": 1, "goal": "price of the lamp", "executor": "price_of",
        "arguments": {"article": "boat"}, "depends_on": [2],
    }  # fmt: skip
    answers = [
        route("make_plan"), plan([first, *BOTH[1:]]),
        judge("retry_step", step=2, why="it may be open now"),
        judge("replan", why="no boats here"),
        plan(BOTH), judge("accept", answer="$step_3_result"),
    ]  # fmt: skip
    async with at_work(in_memory, *answers) as s:
        await s.turn("both, please")
        assert await s.heard() == "64.5 euros (lamp 24.5)"
        assert shop.asked[:3] == ["clock", "clock", "boat"], "only the failed step is repeated"
        judged, judged_again, planned = (request.prompt for request in s.model.requests[2:5])
        assert '<result step="2" outcome="failed: closed">' in judged
        assert '<result step="3" outcome="not run"/>' in judged
        assert "it may be open now" in judged_again
        for text in ("<earlier_plan>", "no boats here", "there is no boat"):
            assert text in planned


@pytest.mark.behaviour("O-3")
async def test_an_escalation_asks_the_person_and_continues_with_the_answer(
    in_memory: Networks, shop: trade.Shop
) -> None:
    asks = judge("escalate", 3, question="With or without tax?", options=["with", "without"])
    answers = [
        route("make_plan"), plan([BOTH[0]]), asks, judge("accept", answer="24.5 with tax"),
    ]  # fmt: skip
    async with at_work(in_memory, *answers) as s:
        first = await s.turn("the lamp?")
        assert await s.heard() == "With or without tax?\n1. with\n2. without"
        assert ending(first) == ("finished", "waits for an answer: With or without tax?")
        second = await s.turn("with")
        assert await s.heard() == "24.5 with tax"
        assert roles(second) == ["reflector", "say"]
        assert second.steps[0].n == first.steps[-1].n + 1
        assert second.start.continues == "bot-m1"
        assert shop.asked == ["lamp"]  # not repeated
        again = s.model.requests[3]
        assert '<result step="1" outcome="succeeded">24.5</result>' in again.prompt
        assert again.incoming == "with"


def script_filling_in(planned: ScriptedAnswer) -> Script:
    """The executors of both steps fill in the arguments, in any order."""
    rules = [
        ScriptRule(when=When(tools=["route"]), answer=route("make_plan")),
        ScriptRule(when=When(tools=["submit_plan"]), answer=planned),
        ScriptRule(when=When.model_validate({"prompt": "step 1: the lamp"}), answer=says(LAMP)),
        ScriptRule(when=When.model_validate({"prompt": "step 2: the clock"}), answer=says(CLOCK)),
        ScriptRule(
            when=When(tools=["judge"]),
            answer=judge("accept", answer="$step_1_result, $step_2_result"),
        ),
    ]
    return Script(rules=rules)


async def test_each_role_can_have_its_model_and_executors_fill_in_arguments(
    in_memory: Networks,
) -> None:
    models: JsonValue = {"router": "small", "planner": "large"}
    async with at_work(in_memory, script=script_filling_in(plan(TWO)), models=models) as s:
        turn = await s.turn("both, please")
        assert await s.heard() == "24.5, 40.0"
        assert roles(turn)[2:5] == ["executor", "executor", "run"]
        assert [step.plan_step for step in turn.steps[2:4]] == [1, 2]
        assert [step.model for step in turn.steps[:3]] == ["small", "large", "m"]
        assert [r.model for r in s.model.requests] == ["small", "large", "m", "m", "m"]
        assert turn.start.model == "small, large, m"


class Librarian(Agent):
    """Answers questions and records them."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def on_direct(self, message: Message) -> str:
        self.asked.append(message.text)
        return f"about {message.text}: it is blue"


@pytest.mark.behaviour("O-4")
async def test_a_step_can_be_a_request_to_another_agent(in_memory: Networks) -> None:
    steps: list[JsonValue] = [
        BOTH[0],
        {"id": 2, "goal": "the sky at $step_1_result", "executor": "librarian"},
    ]
    answers = [route("make_plan"), plan(steps), judge("accept", answer="$step_2_result")]
    librarian = Librarian()
    async with at_work(in_memory, *answers, started=False) as s:
        await s.net.python("librarian", librarian, card={"description": "Knows <things>"})
        await s.start()
        turn = await s.turn("the sky?")
        assert await s.heard() == "about the sky at 24.5: it is blue"
        assert librarian.asked == ["the sky at 24.5"]
        assert '<agent id="librarian">Knows &lt;things&gt;</agent>' in s.model.requests[0].prompt
        assert [c.name for c in turn.steps[3].calls] == ["ask_agent"]
        await s.net.network.quiet()
        listed = Turns.model_validate(await s.net.clients["bot"].call("list_turns"))
        assert {t.outcome for t in listed.turns} == {"finished"}  # the answer woke no agent


async def test_a_step_fails_if_its_agent_does_not_answer(in_memory: Networks) -> None:
    steps: list[JsonValue] = [{"id": 1, "goal": "the sky", "executor": "librarian"}]
    answers = [route("make_plan"), plan(steps), judge("accept", answer="Nobody knows.")]
    rules: JsonValue = {"targets": ["librarian"], "request_timeout": "50ms"}
    async with at_work(in_memory, *answers, roles=rules, started=False) as s:
        await s.net.python("librarian", Agent())
        await s.start()
        await s.turn("the sky?")
        assert await s.heard() == "Nobody knows."
        assert 'outcome="failed: timeout"' in s.model.requests[2].prompt


@pytest.mark.behaviour("O-5")
class TestRouter:
    async def test_an_unsure_router_asks_and_reports_a_failure(self, in_memory: Networks) -> None:
        unsure = route("price_of", 0.4, question="Lamp or boat?", options=["lamp", "boat"])
        boat = says(call("price_of", article="boat"))
        async with at_work(in_memory, unsure, route("price_of"), boat, kind="router") as s:
            await s.turn("how much?")
            assert (await s.heard()).startswith("Lamp or boat?")
            await s.turn("the boat")
            assert "there is no boat" in await s.heard()
            assert "Lamp or boat?" in s.model.requests[1].prompt

    async def test_a_router_can_forward_to_another_agent(self, in_memory: Networks) -> None:
        answer = route("librarian", request="the sky")
        async with at_work(in_memory, answer, kind="router", started=False) as s:
            await s.net.python("librarian", Librarian(), card={"skills": ["colours"]})
            await s.start()
            await s.turn("what colour?")
            assert await s.heard() == "about the sky: it is blue"
            assert "make_plan" not in str(s.model.requests[0].raw["tools"])


@pytest.mark.behaviour("O-6")
class TestOneRole:
    async def test_planner_and_reflector_post_their_results(self, in_memory: Networks) -> None:
        posts = {
            "planner": "1. price of the lamp (price_of)\n"
            "2. price of the clock (price_of)\n"
            "3. add them (total_of, after 1, 2)",
            "reflector": "5 of 5, accept: it is complete",
        }
        answers = (plan(BOTH), judge("accept", 5, "it is complete"))
        async with at_work(in_memory, *answers, kind="planner") as s:
            for kind, text in posts.items():
                await s.restart(kind=kind)
                await s.turn("both?")
                assert await s.heard() == text

    async def test_an_executor_makes_exactly_one_call(
        self, in_memory: Networks, shop: trade.Shop
    ) -> None:
        async with at_work(in_memory, says(LAMP, CLOCK), says(LAMP), kind="executor") as s:
            await s.turn("the lamp")
            assert await s.heard() == "24.5"
            assert shop.asked == ["lamp"]
            assert "make exactly one" in s.told(1)


async def test_a_judge_weighs_its_criteria_for_a_simple_route_if_configured(
    in_memory: Networks, shop: trade.Shop
) -> None:
    roles: JsonValue = {"criteria": {"truth": 3, "tone": 1}, "min_score": 4, "judge_simple": True}

    def judged(truth: int, tone: int) -> ScriptedAnswer:
        scores: JsonValue = {"truth": truth, "tone": tone}
        return says(
            call("judge", verdict="accept", scores=scores, reasoning="so", answer="$step_1_result")
        )

    first = route("price_of", request="the lamp", reasoning="a price is wanted")
    async with at_work(in_memory, first, says(LAMP), judged(3, 5), judged(4, 4), roles=roles) as s:
        turn = await s.turn("the lamp?")
        assert await s.heard() == "24.5"
        assert "3.5 together is not good enough to accept, which takes 4" in s.told()
    assert [step.reasoning for step in turn.steps if step.role != "executor" and step.role] == [
        "a price is wanted", "so", "so",
    ]  # fmt: skip
    function = s.model.requests[-1].body.tools[0].function
    assert "truth 3, tone 1" in function.description
    parameters: Any = function.parameters
    assert list(parameters["properties"]["scores"]["properties"]) == ["truth", "tone"]


async def test_a_message_that_needs_no_answer_can_stay_unanswered(in_memory: Networks) -> None:
    async with at_work(in_memory, says(finish("just news"))) as s:
        talker = await s.net.network.join("talker", "agent")
        await talker.say("bot", "fyi")
        assert ending(await s.net.turn("bot-m1")) == ("finished", "just news")
        assert [r.tools for r in s.model.requests] == [["route", "finish"]]


@pytest.mark.behaviour("O-8")
async def test_a_killed_pipeline_asks_and_sends_nothing_twice(in_memory: Networks) -> None:
    class Slow(Librarian):
        async def on_direct(self, message: Message) -> str:
            self.asked.append(message.text)
            waits.set()
            await go.wait()
            return "forty"

    slow, waits, go = Slow(), asyncio.Event(), asyncio.Event()
    steps: list[JsonValue] = [
        {"id": 1, "goal": "how many?", "executor": "slow"},
        {"id": 2, "goal": "add", "executor": "total_of", "arguments": {"prices": [2]},
         "depends_on": [1]},
    ]  # fmt: skip
    answers = [route("make_plan"), plan(steps), judge("accept", answer="$step_1_result")]
    async with at_work(in_memory, *answers, started=False) as s:
        await s.net.python("slow", slow, card={"skills": ["numbers"]})
        await s.start()
        id = await s.say("how many?")
        async with soon():
            await waits.wait()
        await s.net.kill("bot")
        go.set()
        await s.start()
        assert await s.heard() == "forty"
        turn = await s.net.turn(id)
        assert (turn.attempts, len(slow.asked), len(s.model.requests)) == (2, 1, 3)
        await s.silence()


class TestPrompts:
    """The prompts of roles: they contain the agent's own and fit the window."""

    @pytest.mark.behaviour("A-21", "O-13")
    @DIALECTS
    async def test_every_role_fits_its_window_and_the_record_shows_the_cuts(
        self, in_memory: Networks, dialect: str
    ) -> None:
        answers = [route("make_plan"), plan(BOTH), judge("accept", answer="$step_3_result")]
        endpoint: JsonValue = {"dialect": dialect, "context_window": "6k"}
        async with at_work(in_memory, *answers, file=DESK, endpoint=endpoint) as s:
            await chatter(s.net, 10)
            turn = await s.turn("what do a lamp and a clock cost?")
            assert ending(turn) == ("finished", "answered")
            steps = [step for step in turn.steps if step.window is not None]
            assert len(steps) == len(s.model.requests) == 3
            for step, request in zip(steps, s.model.requests, strict=True):
                assert size_of(request) <= 6144 - 1536
                assert layers(step)["history"][1] > 500
                assert "what do a lamp and a clock cost?" in request.prompt
            first = s.model.requests[0]
            assert (turn.prompt, turn.system_prompt) == (first.prompt, first.system)
            assert 'id="m1"' not in first.prompt

    @pytest.mark.behaviour("A-21")
    async def test_a_window_too_small_for_a_role_ends_the_turn_without_a_request(
        self, in_memory: Networks
    ) -> None:
        config: Config = {"models": {"router": "small"}}
        async with at_work(in_memory, endpoint={"context_window": 600}, **config) as s:
            turn = await s.turn("hello")
            outcome, reason = ending(turn)
            assert outcome == "model_error"
            assert "the context window of 600 tokens is too small" in reason
            assert "raise models.small.context_window if the model has more" in reason
            assert s.model.requests == []
            assert "hello" in (turn.prompt or "")

    @pytest.mark.behaviour("O-14")
    async def test_the_agents_prompt_applies_to_all_its_roles(
        self, in_memory: Networks, tmp_path: Path
    ) -> None:
        (tmp_path / "buyer").mkdir()
        (tmp_path / "buyer" / "1.0.j2").write_text(
            "You buy for {{ shop }} in {{ threads | join }} with {{ model }}."
        )
        config: Config = {
            "prompt": {
                "name": "buyer",
                "folder": str(tmp_path),
                "variables": {"shop": "Acme"},
                "components": {"add": {"style": {"text": "Be brief.", "priority": 97}}},
                "reminder": ["Never guess a price."],
                "scratchpad": True,
            },
            "permission_mode": "ask",
            "card": {"skills": ["prices"]},
        }
        verdict = judge("accept", answer="<scratchpad>she is polite</scratchpad>$step_1_result")
        verdict = verdict.model_copy(update={"text": "<scratchpad>a greeting</scratchpad>"})
        answers = [route("make_plan"), plan([BOTH[0]]), verdict]
        async with at_work(in_memory, *answers, **config) as s:
            turn = await s.turn("the lamp?")
            assert await s.heard() == "24.5", "the scratchpad is not sent"
            assert "a greeting" in (turn.steps[3].reasoning or "")
            for request in s.model.requests:
                for text in (
                    "You buy for Acme in direct_ann with m.",
                    "Be brief.",
                    "that you can do this: prices",
                    "<scratchpad>",
                    "approve",  # the permission mode
                ):
                    assert text in request.system
                assert request.system.endswith("Above all:\n- Never guess a price.")
                assert "call `finish` when you are done" not in request.system
            assert (turn.start.prompt_id or "").startswith("buyer@1.0#")
            assert turn.start.components[:3] == ("role:router", "identity", "style")


def held(answer: ScriptedAnswer, name: str) -> ScriptedAnswer:
    """The answer, which the model holds back until the test releases it."""
    return answer.model_copy(update={"hold": name})


def steered_in(turn: Turn) -> list[tuple[str, list[str]]]:
    """The roles that first received messages during the turn, with the ids of these."""
    return [
        (role, [message.message for message in step.steered])
        for role, step in zip(roles(turn), turn.steps, strict=True)
        if step.steered
    ]


async def steer_while_held(s: Scene, at: str, text: str = "hurry", **more: Any) -> str:
    """Ann asks, and writes again while the model holds an answer; the id of the turn."""
    id = await s.say("the lamp?")
    await s.held(at)
    await s.steer(text, **more)
    s.model.release(at)
    return id


class TestSteering:
    """Messages that people send while roles are at work, and the role that receives them."""

    @pytest.mark.behaviour("Y-4", "O-12")
    @DIALECTS
    async def test_a_message_during_the_work_reaches_the_next_role_and_all_later_ones(
        self, in_memory: Networks, dialect: str
    ) -> None:
        answers = [
            route("make_plan"),
            held(plan([BOTH[0]]), "planning"),
            judge("replan", why="the clock is wanted, too"),
            plan(BOTH),
            judge("accept", answer="$step_3_result"),
        ]
        async with at_work(in_memory, *answers, endpoint={"dialect": dialect}) as s:
            turn = await s.net.turn(await steer_while_held(s, "planning", "and the <clock>"))
            assert await s.heard() == "64.5 euros (lamp 24.5)"
            assert steered_in(turn) == [("reflector", ["m2"])]
            for request in s.model.requests[2:]:
                assert request.incoming == "and the <clock>"
                before, element, after = request.prompt.partition("and the &lt;clock&gt;</content>")
                assert element
                assert before.rpartition("<incoming_message ")[2].startswith('sender="ann"')
                assert "This has come in while you were at work." in after
                assert "Judge the work." in after or "What is to be done" in after
            assert "clock" not in str(s.model.requests[1].raw["messages"])
            assert len(s.model.requests) == 5, "it starts no turn"
            receipts = await s.ann.call("read_receipts", id="m2")
            (bot,) = [r for r in receipts["receipts"] if r["participant"] == "bot"]
            assert (bot["turn"], bot["state"]) == ("bot-m1", "ended")

    async def test_concurrent_executors_share_a_message_that_is_recorded_once(
        self, in_memory: Networks
    ) -> None:
        async with at_work(in_memory, script=script_filling_in(held(plan(TWO), "planning"))) as s:
            turn = await s.net.turn(await steer_while_held(s, "planning"))
            assert steered_in(turn) == [("executor", ["m2"])]
            for request in s.model.requests[2:]:
                assert str(request.raw["messages"]).count("hurry") == 1

    @pytest.mark.behaviour("Y-5")
    async def test_a_turn_steered_by_a_person_must_answer(self, in_memory: Networks) -> None:
        answers = [
            held(says(call("route", target="nobody", confidence=1)), "routing"),
            says(finish("just news")),
            route("answer", request="Here I am."),
        ]
        async with at_work(in_memory, *answers) as s:
            talker = await s.net.network.join("talker", "agent")
            await talker.say(["bot", "ann"], "fyi")
            await s.held("routing")
            await s.steer("are you there?", to=["bot", "talker"])
            s.model.release("routing")
            assert ending(await s.net.turn("bot-m1"))[0] == "no_action"
            assert [r.tools for r in s.model.requests[:2]] == [["route", "finish"], ["route"]]

    async def test_a_message_that_misses_a_turn_starts_the_next(self, in_memory: Networks) -> None:
        routed = held(route("make_plan"), "routing")
        welcome = route("answer", request="Welcome.")
        done = [plan([BOTH[0]]), judge("accept", answer="$step_1_result")]
        refused = Refusal(status=400, message="no")
        cases: list[tuple[str, list[AnyAnswer], str]] = [
            ("queue", [routed, *done, welcome], "finished"),
            ("turn", [routed, refused, welcome], "model_error"),
        ]
        for steer, answers, outcome in cases:
            config: Config = {"steer": steer} if steer == "queue" else {}
            async with at_work(in_memory, *answers, **config) as s:
                first = await s.net.turn(await steer_while_held(s, "routing"))
                assert (ending(first)[0], steered_in(first)) == (outcome, []), steer
                assert (await s.net.turn("bot-m2")).start.messages == ("m2",), steer

    @pytest.mark.behaviour("Y-6", "O-8")
    async def test_a_resumed_pipeline_shows_a_message_in_the_same_place(
        self, on_sockets: Networks, shop: trade.Shop
    ) -> None:
        last = judge("accept", answer="$step_1_result")
        answers = [
            held(route("make_plan"), "routing"), plan([BOTH[0]]), held(last, "dying"), last,
        ]  # fmt: skip
        async with at_work(on_sockets, *answers) as s:
            id = await steer_while_held(s, "routing")
            await s.held("dying")
            await s.restart()
            turn = await s.net.turn(id)
            assert await s.heard() == "24.5"
            assert turn.start.messages == ("m1",)
            assert steered_in(turn) == [("planner", ["m2"])]
            before, after = (request.body.messages for request in s.model.requests[2:])
            assert [m.text for m in after] == [m.text for m in before]
            assert shop.asked == ["lamp"]

    async def test_a_message_before_a_question_does_not_answer_it(
        self, in_memory: Networks
    ) -> None:
        """The person had not seen the question, so the message starts a turn after it."""
        asks = judge("escalate", 3, question="With or without tax?")
        answers = [
            route("make_plan"), plan([BOTH[0]]), held(asks, "judging"),
            route("answer", request="Yes."),
        ]  # fmt: skip
        async with at_work(in_memory, *answers) as s:
            await steer_while_held(s, "judging", "still there?")
            assert [await s.heard(), await s.heard()] == ["With or without tax?", "Yes."]
            assert roles(await s.net.turn("bot-m2")) == ["router", "say"]
