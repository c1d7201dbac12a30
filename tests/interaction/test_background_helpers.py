"""Helpers that run in the background while their parent works."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest

from hubbub.protocol.turns import Turn
from hubbub.testing.model_script import Script, ScriptRule, When
from hubbub.testing.model_server import ScriptedAnswer, ScriptedUsage
from tests.interaction import trade
from tests.interaction.agent_harness import call, finish, says
from tests.interaction.peers import Networks
from tests.interaction.scripted import Scene, ending, scene

pytestmark = pytest.mark.behaviour("O-16")
BEGIN = says(call("fork", goal="the lamp", background=True))
LAMP = says(call("price_of", article="lamp"))
CLOCK = says(call("price_of", article="clock"))
WAIT = says(call("wait_for", helper=1))


@pytest.fixture(autouse=True)
def shop() -> trade.Shop:
    return trade.fresh_shop()


def rules_for(goal: str, *answers: ScriptedAnswer) -> list[ScriptRule]:
    """The answers to a helper with this goal, step by step."""
    return [
        ScriptRule(when=When.model_validate({"prompt": f"<goal>{goal}", "step": n}), answer=answer)
        for n, answer in enumerate(answers, 1)
    ]


def shop_scene(
    networks: Networks, helper: list[ScriptedAnswer], *answers: ScriptedAnswer, **config: Any
) -> AbstractAsyncContextManager[Scene]:
    """An agent whose model plays `answers`; a helper for the lamp plays `helper`, step by step."""
    script = Script(rules=rules_for("the lamp", *helper), answers=list(answers))
    config.setdefault("fork", {})
    return scene(networks, script=script, base=trade.FILE.parent, tools=trade.TOOLS, **config)


def finish_with(text: str) -> ScriptedAnswer:
    return says(call("finish", message=text))


def hold(answer: ScriptedAnswer, name: str) -> ScriptedAnswer:
    return answer.model_copy(update={"hold": name})


def own_steps(turn: Turn) -> list[tuple[str | None, list[tuple[str, str | None]]]]:
    """The turn's own steps: who created each, and its calls with their errors."""
    steps = [step for step in turn.steps if step.n < 10_000]
    return [(step.made, [(c.name, c.error) for c in step.calls]) for step in steps]


def wait_results(turn: Turn) -> list[str | None]:
    return [c.result for step in turn.steps for c in step.calls if c.name == "wait_for"]


@pytest.mark.parametrize("dialect", ["native", "tool_call", "final_output"])
async def test_the_parent_keeps_working_and_gets_the_result_as_a_join_step(
    in_memory: Networks, dialect: str
) -> None:
    helper = [LAMP, hold(says(finish("24.5 for it")), "helper")]
    check = says(call("check", helper=1))
    answers = [BEGIN, hold(check, "checks"), hold(CLOCK, "parent"), finish_with("64.5")]
    async with shop_scene(in_memory, helper, *answers, endpoint={"dialect": dialect}) as s:
        id = await s.say("both?")
        await s.held("helper")
        s.model.release("checks")
        await s.held("parent")
        s.model.release("helper")
        assert "goal" in await s.heard()
        assert "24.5 for it" in await s.heard()
        s.model.release("parent")
        assert await s.heard() == "64.5"
        turn = await s.net.turn(id)
        assert own_steps(turn) == [
            (None, [("fork", None)]), (None, [("check", None)]), (None, [("price_of", None)]),
            ("join", [("wait_for", None)]), (None, [("finish", None)]),
        ]  # fmt: skip
        assert "helper 1 is at work" in (turn.steps[0].calls[0].result or "")
        assert "helper 1 is at work: " in (turn.steps[1].calls[0].result or "")
        assert turn.steps[3].calls[0].result == "24.5 for it"
        assert "24.5 for it" in s.told()


async def test_a_turn_can_only_finish_after_a_warning_about_running_helpers(
    in_memory: Networks,
) -> None:
    helper = [hold(says(finish("24.5")), "helper")]
    early = finish_with("never sent")
    answers = [BEGIN, early, hold(WAIT, "parent"), finish_with("24.5")]
    async with shop_scene(in_memory, helper, *answers) as s:
        id = await s.say()
        await s.held("helper")
        await s.held("parent")
        s.model.release("parent")
        s.model.release("helper")
        turn = await s.net.turn(id)
        assert own_steps(turn)[1] == (None, [("finish", "helpers_at_work")])
        assert wait_results(turn) == ["24.5"]
        assert [await s.heard() for _ in range(3)][2] == "24.5"
    answers = [BEGIN, hold(early, "parent"), finish_with("no")]
    async with shop_scene(in_memory, helper, *answers) as s:
        id = await s.say()
        await s.held("helper")
        s.model.release("parent")
        turn = await s.net.turn(id)
        assert ending(turn) == ("finished", "no")
        assert [step.n for step in turn.steps] == [1, 2, 3]
        assert ["goal" in await s.heard(), await s.heard()] == [True, "no"]
        await s.silence()  # the helper ended with its turn


async def test_a_helper_resumes_from_its_record_after_the_process_dies(
    in_memory: Networks, shop: trade.Shop
) -> None:
    helper = [LAMP, hold(says(finish("24.5")), "helper")]
    answers = [BEGIN, hold(CLOCK, "parent"), CLOCK, WAIT, finish_with("64.5")]
    async with shop_scene(in_memory, helper, *answers) as s:
        id = await s.say()
        await s.held("helper")
        await s.held("parent")
        await s.restart()
        s.model.release("helper")
        s.model.release("parent")
        turn = await s.net.turn(id)
        assert turn.attempts == 2
        assert [await s.heard() for _ in range(3)][1:] == [
            "helper 1, result:\n```\n24.5\n```", "64.5",
        ]  # fmt: skip
        assert sorted(shop.asked) == ["clock", "lamp"]
        await s.silence()


async def test_background_helpers_have_the_limits_and_errors_of_other_helpers(
    in_memory: Networks,
) -> None:
    helper = [hold(says(finish("never")), "helper")]
    late = says(call("fork", goal="the lamp", background=True, timeout=0.05))
    wrong = says(call("wait_for", helper=7))
    more = says(call("fork", goal="more", background=True))
    async with shop_scene(
        in_memory, helper, late, more, wrong, WAIT, finish_with("no"), fork={"most": 1}
    ) as s:
        turn = await s.turn()
        calls = {(c.name, c.error) for step in turn.steps for c in step.calls}
        assert calls >= {
            ("fork", "too_many_helpers"), ("wait_for", "not_joined"), ("wait_for", "timeout"),
        }  # fmt: skip
    dear = ScriptedUsage(prompt_tokens=900, completion_tokens=100)
    spent = [a.model_copy(update={"usage": dear}) for a in (BEGIN, WAIT, LAMP)]
    async with shop_scene(in_memory, [spent[2]], *spent[:2], max_tokens=2000) as s:
        assert ending(await s.turn())[0] == "max_steps"


async def test_stopping_a_turn_ends_its_background_helper(in_memory: Networks) -> None:
    helper = [hold(says(finish("never sent")), "helper")]
    async with shop_scene(in_memory, helper, BEGIN, WAIT) as s:
        id = await s.say()
        await s.held("helper")
        await s.ann.call("stop", scope="turn", target=id)
        assert ending(await s.net.turn(id))[0] == "cancelled"
        s.model.release("helper")
        assert "goal" in await s.heard()
        assert "ann stopped" in await s.heard()
        await s.silence()


async def test_a_helper_can_have_background_helpers_of_its_own(in_memory: Networks) -> None:
    inner = rules_for("the lamp", says(finish("24.5")))
    outer = rules_for("all", BEGIN, WAIT, says(finish("24.5 in all")))
    begin = says(call("fork", goal="all", background=True))
    script = Script(rules=[*inner, *outer], answers=[begin, WAIT, finish_with("so")])
    async with scene(in_memory, script=script, fork={"depth": 2}) as s:
        turn = await s.turn()
        assert set(wait_results(turn)) >= {"24.5 in all", "24.5"}
        assert ending(turn)[0] == "finished"


async def test_wait_tools_are_offered_only_while_a_helper_runs(in_memory: Networks) -> None:
    helper = [says(finish("24.5"))]
    async with shop_scene(in_memory, helper, BEGIN, WAIT, finish_with("24.5")) as s:
        await s.turn()
        first, *later = [r for r in s.model.requests if "<goal>" not in r.prompt]
        assert not {"wait_for", "check"} <= set(first.tools)
        assert all({"wait_for", "check"} <= set(request.tools) for request in later)
    async with shop_scene(in_memory, [], finish_with("hi"), mode="interactive") as s:
        await s.turn()
        tools = str(s.model.requests[0].raw["tools"])
        assert ("'fork'" in tools, "'background'" in tools) == (True, False)
