"""The pipeline as a state machine: its commands for every event, also after a crash."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.roles.pipeline import (
    AskRole,
    Executors,
    Kind,
    PipelineRules,
    RolePipeline,
)
from hubbub.agents.turn.continuation import awaits_answer
from hubbub.agents.turn.loop import CallResult, Command, End, Record, RunTools, TimedCompletion
from hubbub.config.agents import RolesConfig
from hubbub.protocol.turns import Steering, Step
from tests.examples import examples

EXECUTORS = Executors({"look_up": {}, "add": {}}, ["ann"])
TWO: list[JsonValue] = [
    {"id": 1, "goal": "a", "executor": "look_up", "arguments": {"q": "x"}},
    {"id": 2, "goal": "b", "executor": "ann"},
    {"id": 3, "goal": "c", "executor": "add", "arguments": {"n": "$step_1_result"},
     "depends_on": [2]},
]  # fmt: skip


def answer(name: str, **arguments: JsonValue) -> Completion:
    return Completion(calls=(CallRequest("", name, json.dumps(arguments)),))


def route(target: str, confidence: float = 1.0, **more: JsonValue) -> Completion:
    return answer("route", target=target, confidence=confidence, **more)


SCORES: dict[str, JsonValue] = {"completeness": 3, "correctness": 3, "format": 3}


def accept(*scores: int) -> Completion:
    given: dict[str, JsonValue] = dict(zip(SCORES, scores, strict=True))
    return answer("judge", verdict="accept", scores=given, reasoning="so", answer="ok")


def judge(verdict: str, **more: JsonValue) -> Completion:
    return answer("judge", verdict=verdict, scores=SCORES, reasoning="so", **more)


class Driver:
    """A pipeline and its latest commands."""

    def __init__(
        self,
        kind: Kind = "pipeline",
        steps: Sequence[Step] = (),
        earlier: Sequence[Step] = (),
        config: RolesConfig | None = None,
        *,
        may_finish: bool = False,
        max_tokens: int | None = None,
        executors: Executors = EXECUTORS,
    ):
        rules = PipelineRules(kind, config or RolesConfig(), may_finish, max_tokens)
        self.pipeline = RolePipeline(rules, executors, steps, earlier)
        self.recorded: dict[int, Step] = {step.n: step for step in steps}
        self.commands: list[Command] = []
        self._take(self.pipeline.start())

    def _take(self, commands: list[Command]) -> None:
        self.recorded |= {c.step.n: c.step for c in commands if isinstance(c, Record)}
        self.commands = [c for c in commands if not isinstance(c, Record)]

    @property
    def steps(self) -> list[Step]:
        return [self.recorded[n] for n in sorted(self.recorded)]

    @property
    def asks(self) -> list[str]:
        return [c.role for c in self.commands if isinstance(c, AskRole)]

    @property
    def consult(self) -> AskRole:
        (consult,) = self.commands
        assert isinstance(consult, AskRole)
        return consult

    def give(self, *answers: Completion, steered: Sequence[Steering] = ()) -> None:
        """Answer every role that the pipeline asks."""
        asked = [c for c in self.commands if isinstance(c, AskRole)]
        pairs = zip([c.with_steering(steered) for c in asked], answers, strict=True)
        self._take(self.pipeline.answered([TimedCompletion(c, a) for c, a in pairs]))

    @property
    def runs(self) -> RunTools:
        (run,) = self.commands
        assert isinstance(run, RunTools)
        return run

    @property
    def called(self) -> list[tuple[str, JsonValue]]:
        return [(call.name, call.arguments) for call in self.runs.calls]

    def ran(self, result: Callable[[str], tuple[str, str | None]] = lambda n: ("ok", None)) -> None:
        results = [CallResult(c.id, *result(c.name)) for c in self.runs.calls]
        self._take(self.pipeline.ran(results))

    def run_plan(self) -> None:
        """Run all steps of `TWO`, which takes two rounds."""
        self.ran()
        self.ran()

    @property
    def end(self) -> End:
        (end,) = self.commands
        assert isinstance(end, End)
        return end


def planned(config: RolesConfig | None = None) -> Driver:
    """A pipeline about to run the first steps of `TWO`."""
    driver = Driver(config=config)
    driver.give(route("make_plan"))
    driver.give(answer("submit_plan", steps=TWO))
    return driver


def executed() -> Driver:
    """A pipeline that has run all steps of `TWO`."""
    driver = planned()
    driver.run_plan()
    return driver


def test_a_retried_step_and_its_dependents_run_again() -> None:
    driver = executed()
    driver.give(judge("retry_step", step=1, arguments={"q": "y"}))
    assert driver.called == [("look_up", {"q": "y"})]
    driver.ran(lambda name: ("8", None))
    assert driver.called == [("add", {"n": 8})]


@pytest.mark.parametrize("verdict", ["retry_step", "replan"])
def test_a_person_is_asked_once_the_retries_are_used_up(verdict: str) -> None:
    driver = planned(RolesConfig(max_retries=2))
    for _ in range(2):
        driver.run_plan()
        driver.give(judge(verdict, step=1))
        if verdict == "replan":
            assert driver.asks == ["planner"]
            driver.give(answer("submit_plan", steps=TWO))
    driver.run_plan()
    driver.give(judge(verdict, step=1))
    question: dict[str, JsonValue] = {"question": "I could not get it done: so", "options": []}
    assert driver.called == [("ask_human", question)]
    driver.ran()
    assert awaits_answer(driver.pipeline.steps)


def test_an_answered_question_resumes_at_the_reflector_with_fresh_retries() -> None:
    first = executed()
    first.give(judge("escalate", question="which?", options=["a", "b"]))
    first.ran()
    assert first.end == End("finished", "waits for an answer: which?")
    second = Driver(earlier=first.steps)
    assert second.asks == ["reflector"]
    assert second.consult.n == first.steps[-1].n + 1
    assert second.consult.work.retries == 0
    second.give(judge("retry_step", step=1))
    assert second.called == [("look_up", {"q": "x"})]


def test_results_are_filled_into_a_question_to_a_person() -> None:
    driver = planned()
    driver.ran(lambda name: (f"{name} says 7", None))
    driver.ran()
    driver.give(judge("escalate", question="$step_1_result?", options=["$step_2_result"]))
    asked: dict[str, JsonValue] = {"question": "look_up says 7?", "options": ["ask_agent says 7"]}
    assert driver.called == [("ask_human", asked)]


@pytest.mark.behaviour("O-7")
class TestInvalid:
    def corrections(self, driver: Driver, role: str, invalid: Completion) -> list[str]:
        """The corrections of an invalid answer, which ends the turn when it is repeated."""
        driver.give(invalid)
        assert driver.asks == [role]
        errors = [c.result or "" for c in driver.steps[-1].calls]
        driver.give(invalid)
        assert driver.end.outcome == "no_action"
        assert f"the {role} gave no valid answer" in driver.end.reason
        return errors

    def test_an_invalid_route_is_corrected_once_and_then_ends_the_turn(self) -> None:
        cases: list[tuple[Completion, str]] = [
            (route("nobody"), "there is no 'nobody'"),
            (route("add", 1.5), "confidence"),
            (route("answer"), "needs the answer"),
            (route("answer", request="It is $step_1_result."), "stands for no result"),
            (answer("finish", reason="no"), "there is no tool 'finish'"),
            (answer("add"), "there is no tool 'add'"),
            (Completion(calls=(CallRequest("", "route", "{"),)), "not a JSON object"),
            (Completion(calls=(CallRequest("", "route", "{}"),) * 2), "make exactly one"),
        ]
        for invalid, reason in cases:
            errors = self.corrections(Driver(), "router", invalid)
            assert all(reason in error for error in errors)

    @pytest.mark.behaviour("O-15")
    def test_an_invalid_judgement_is_corrected_once_and_then_ends_the_turn(self) -> None:
        cases: list[tuple[Completion, str]] = [
            (judge("retry_step"), "needs `step`"),
            (judge("retry_step", step=9), "there is no step 9"),
            (judge("accept"), "needs `answer`"),
            (judge("escalate"), "needs `question`"),
            (judge("give_up"), "verdict"),
            (judge("accept", answer="$step_4_result"), "those of the steps 1, 2, 3"),
            (judge("accept", answer="It is ${step_1_result}."), "`${step_1_result` stands for no"),
            (judge("escalate", question="$step_1_output?"), "`$step_1_output` stands for no"),
            (judge("retry_step", step=1, arguments={"q": "$step_9_result"}), "`$step_9_result`"),
            (accept(1, 1, 1), "scores: 1 together is not good"),
            (accept(3, 3, 1), "scores: 2.6 together"),
            (
                answer("judge", verdict="accept", scores={"tone": 5}, reasoning="so", answer="ok"),
                "one for each criterion: completeness, correctness, format",
            ),
        ]
        for invalid, reason in cases:
            (error,) = self.corrections(executed(), "reflector", invalid)
            assert reason in error

    def test_an_executors_reference_to_a_missing_result_is_corrected(self) -> None:
        invalid = answer("add", text="It is $step_3_result.")
        (error,) = self.corrections(Driver("executor"), "executor", invalid)
        assert "`$step_3_result` stands for no result: there is none yet" in error

    def test_each_role_gets_a_correction_of_its_own(self) -> None:
        driver = Driver()
        driver.give(Completion(text="hm"))
        driver.give(route("make_plan"))
        driver.give(Completion(text="hm"))
        assert driver.asks == ["planner"]

    def test_only_the_executor_with_an_invalid_answer_is_asked_again(self) -> None:
        driver = Driver()
        driver.give(route("make_plan"))
        bare: list[JsonValue] = [
            {"id": 1, "goal": "a", "executor": "add"},
            {"id": 2, "goal": "b", "executor": "look_up"},
        ]
        driver.give(answer("submit_plan", steps=bare))
        assert driver.asks == ["executor", "executor"]
        driver.give(answer("look_up"), answer("look_up", q=1))
        assert driver.asks == ["executor"]
        driver.give(answer("add", a=1))
        assert driver.called == [("add", {"a": 1}), ("look_up", {"q": 1})]


# Random answers and crashes ----------------------------------------------------------------------

ANSWERS = st.one_of(
    st.builds(route, st.sampled_from(["add", "ann", "make_plan", "answer", "x"]),
              st.sampled_from([0.1, 0.9]), request=st.just("r")),
    st.just(answer("submit_plan", steps=TWO)),
    st.builds(judge, st.sampled_from(["accept", "replan", "retry_step", "escalate"]),
              answer=st.just("a"), step=st.integers(1, 4), question=st.just("q")),
    st.just(answer("add", a=1)),
    st.just(Completion(text="words")),
)  # fmt: skip
FITTING = {
    "router": [route("make_plan"), route("add"), route("ann", request="r"), route("add", 0.1)],
    "planner": [answer("submit_plan", steps=TWO)],
    "reflector": [judge("accept", answer="a"), judge("replan"), judge("retry_step", step=1),
                  judge("escalate", question="q")],
    "executor": [answer("add", a=1)],
}  # fmt: skip


@settings(max_examples=examples(100))
@given(st.data(), st.sampled_from(["router", "planner", "executor", "reflector", "pipeline"]))
def test_every_turn_ends_and_resumes_where_its_record_ends(data: st.DataObject, kind: Kind) -> None:
    driver = Driver(kind)
    for _ in range(200):
        if isinstance(driver.commands[0], End):
            break
        # A process that resumes the turn issues the same commands.
        again = Driver(kind, driver.steps)
        assert [type(c) for c in again.commands] == [type(c) for c in driver.commands]
        assert again.asks == driver.asks
        if driver.asks:
            chosen = [
                data.draw(st.sampled_from(FITTING[role]) if data.draw(st.booleans()) else ANSWERS)
                for role in driver.asks
            ]
            driver.give(*chosen)
        else:
            assert again.called == driver.called
            fails = data.draw(st.booleans())
            driver.ran(lambda name, fails=fails: ("r", "broken" if fails else None))  # type: ignore[misc]
    assert isinstance(driver.commands[0], End)
    numbers = [step.n for step in driver.steps]
    assert numbers == list(range(1, len(numbers) + 1))
    ran = [c for s in driver.steps for c in s.calls if s.made == "run"]
    assert all(call.result is not None for call in ran)
    assert {call.name for call in ran} <= {"look_up", "add", "ask_agent"}


# Steering, arguments, tokens ---------------------------------------------------------------------


def test_a_steered_router_can_finish_only_if_no_reply_is_required() -> None:
    finish = answer("finish", reason="no")
    driver = Driver(may_finish=True)
    driver.give(finish, steered=[Steering(message="m2", reply="optional", text="…")])
    assert driver.end == End("finished", "no")
    driver = Driver(may_finish=True)
    driver.give(finish, steered=[Steering(message="m2", reply="required", text="…")])
    assert driver.steps[-1].calls[0].error == "unknown_tool"
    assert not driver.consult.may_finish


ADD: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "q": {"type": "string"}},
    "required": ["n"],
    "additionalProperties": False,
}
STRICT = Executors({"look_up": {}, "add": ADD}, ["ann"])


def test_arguments_that_do_not_fit_the_tool_go_back_to_the_role() -> None:
    driver = Driver("executor", executors=STRICT)
    driver.give(answer("add", m=1))
    assert driver.asks == ["executor"]
    call = driver.steps[-1].calls[0]
    assert call.error == "invalid_arguments"
    assert "n is missing" in (call.result or "")
    driver.give(answer("add", n="3"))
    assert driver.called == [("add", {"n": "3"})], "the tool reads it as a number"
    steps: list[JsonValue] = [
        {"id": 1, "goal": "a", "executor": "look_up", "arguments": {}},
        {"id": 2, "goal": "b", "executor": "add", "depends_on": [1]},
    ]
    driver = Driver(executors=STRICT)
    driver.give(route("make_plan"))
    driver.give(answer("submit_plan", steps=steps))
    driver.ran(lambda name: ("7", None))
    driver.give(answer("add", n="$step_1_result"))
    assert driver.called == [("add", {"n": 7})]
    driver = Driver(executors=STRICT)
    driver.give(route("add", request="1"))
    driver.give(answer("add", n=1))
    driver.ran(lambda name: ("no", "broken"))
    driver.give(judge("retry_step", step=1, arguments={"m": 2}))
    assert driver.asks == ["reflector"]
    driver.give(judge("retry_step", step=1, arguments={"n": 2}))
    assert driver.called == [("add", {"n": 2})]
    driver = Driver("executor", executors=Executors({"add": {"type": 3}}))
    driver.give(answer("add", n=1))
    assert driver.called == [("add", {"n": 1})]


def test_no_role_is_asked_once_the_tokens_are_used_up() -> None:
    def costing(given: Completion) -> Completion:
        return replace(given, tokens_in=40, tokens_out=20)

    driver = Driver(max_tokens=100)
    driver.give(costing(route("make_plan")))
    assert driver.asks == ["planner"]
    driver.give(costing(answer("submit_plan", steps=TWO)))
    driver.run_plan()
    assert driver.end == End("max_steps", "not finished after 120 tokens (at most 100)")
    second = Driver(earlier=driver.steps, max_tokens=100)
    assert second.asks == ["reflector"], "the turn that continues has tokens of its own"
