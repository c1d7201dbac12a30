"""What a pipeline hears while it works, and what it checks before anything runs."""

from __future__ import annotations

from dataclasses import replace

from pydantic import JsonValue

from hubbub.agents.models.base import Answer
from hubbub.agents.roles.pipeline import Executors
from hubbub.agents.turn.loop import End
from hubbub.protocol.turns import Steering
from tests.unit.agents.roles.driver import TWO, Driver, answer, judge, route

STRICT: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "q": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}

# Steering ----------------------------------------------------------------------------------------


def said(message: str, *, required: bool = True) -> Steering:
    return Steering(message=message, reply="required" if required else "optional", text="…")


def test_who_is_steered_may_finish_only_if_nobody_waits() -> None:
    for required in [True, False]:
        driver = Driver(may_finish=True)
        driver.says(answer("finish", reason="no"), steered=[said("m2", required=required)])
        if not required:
            assert driver.end == End("finished", "no")
            return
        assert driver.steps[-1].calls[0].error == "unknown_tool"
        assert not driver.consult.may_finish


# Arguments, tokens -------------------------------------------------------------------------------


def strict() -> Executors:
    return Executors({"look_up": {}, "add": STRICT}, ["ann"])


def test_arguments_that_the_tool_would_refuse_go_back_to_the_role() -> None:
    driver = Driver("executor", executors=strict())
    driver.says(answer("add", m=1))
    assert driver.asks == ["executor"]
    told = driver.steps[-1].calls[0]
    assert told.error == "invalid_arguments"
    assert "n is missing" in (told.result or "")
    driver.says(answer("add", n="3"))
    assert driver.called == [("add", {"n": "3"})], "what the tool reads as a number is fine"
    steps: list[JsonValue] = [
        {"id": 1, "goal": "a", "executor": "look_up", "arguments": {}},
        {"id": 2, "goal": "b", "executor": "add", "depends_on": [1]},
    ]
    driver = Driver(executors=strict())
    driver.says(route("make_plan"))
    driver.says(answer("submit_plan", steps=steps))
    driver.ran(lambda name: ("7", None))
    driver.says(answer("add", n="$step_1_result"))
    assert driver.called == [("add", {"n": 7})]
    driver = Driver(executors=strict())
    driver.says(route("add", request="1"))
    driver.says(answer("add", n=1))
    driver.ran(lambda name: ("no", "broken"))
    driver.says(judge("retry_step", step=1, arguments={"m": 2}))
    assert driver.asks == ["reflector"]
    driver.says(judge("retry_step", step=1, arguments={"n": 2}))
    assert driver.called == [("add", {"n": 2})]
    driver = Driver("executor", executors=Executors({"add": {"type": 3}}))
    driver.says(answer("add", n=1))
    assert driver.called == [("add", {"n": 1})]


def test_when_the_tokens_are_used_up_no_role_is_asked_any_more() -> None:
    def costing(given: Answer) -> Answer:
        return replace(given, tokens_in=40, tokens_out=20)

    driver = Driver(max_tokens=100)
    driver.says(costing(route("make_plan")))
    assert driver.asks == ["planner"]
    driver.says(costing(answer("submit_plan", steps=TWO)))
    driver.ran()
    driver.ran()
    assert driver.end == End("max_steps", "not finished after 120 tokens (at most 100)")
    second = Driver(earlier=driver.steps, max_tokens=100)
    assert second.asks == ["reflector"], "a turn that goes on has its own"
