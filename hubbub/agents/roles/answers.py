"""The answers of roles: the arguments of `route`, `submit_plan` and `judge`. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.roles.plan import Plan, PlanStep, StepId
from hubbub.agents.tools.schema import ToolArguments, argument_errors, without_titles

__all__ = [
    "ANSWER",
    "JUDGE",
    "MAKE_PLAN",
    "ROUTE",
    "SUBMIT_PLAN",
    "Judgement",
    "Route",
    "WrongAnswer",
    "judge_spec",
    "plan_spec",
    "read",
    "route_spec",
]

ROUTE, SUBMIT_PLAN, JUDGE = "route", "submit_plan", "judge"
ANSWER, MAKE_PLAN = "answer", "make_plan"
"""Targets of a route that are neither a tool nor an agent."""

_JUDGING = "Judge the results and say what comes next."
Options = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=8)]
Verdict = Literal["accept", "retry_step", "replan", "escalate"]
Read = TypeVar("Read", bound=BaseModel)


class WrongAnswer(ValueError):
    """An invalid answer; the text tells the model what is wrong."""


class Route(ToolArguments):
    """Who does what was asked."""

    reasoning: str = ""
    """Why, in a sentence, before you choose."""
    target: str
    """Who or what does it."""
    confidence: Annotated[float, Field(ge=0, le=1)]
    """How sure you are, from 0 to 1."""
    request: str = ""
    """What the target is to do, with all that it needs to know. For `answer`: the answer itself."""
    question: str = ""
    """What you would ask the person, if you are not sure."""
    options: Options = ()
    """Answers to that question to choose from, if there are some."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.target == ANSWER and not self.request.strip():
            raise ValueError("the target answer needs the answer in `request`")
        return self


class Judgement(ToolArguments):
    """How good the results are, and what comes next."""

    reasoning: Annotated[str, Field(min_length=1)]
    """Why, in a sentence, before you judge."""
    scores: dict[str, Annotated[int, Field(ge=1, le=5)]]
    """For each criterion 5: all is as it should be, to 1: nothing is."""
    verdict: Verdict
    """accept: it is good enough; retry_step: run one step again; replan: another plan is needed;
    escalate: a person must decide."""
    answer: str = ""
    """accept: what the person is told. `$step_1_result` stands for the result of step 1."""
    step: StepId | None = None
    """retry_step: which."""
    arguments: dict[str, JsonValue] | None = None
    """retry_step: arguments to run it with instead; left out: the same, or filled in anew."""
    question: str = ""
    """escalate: what the person is asked."""
    options: Options = ()
    """escalate: answers to choose from, if there are some."""

    @model_validator(mode="after")
    def _has_what_its_verdict_needs(self) -> Self:
        if self.verdict == "retry_step" and self.step is None:
            raise ValueError("the verdict retry_step needs `step`")
        if self.verdict == "escalate" and not self.question.strip():
            raise ValueError("the verdict escalate needs `question`")
        return self

    def score(self, criteria: Mapping[str, float]) -> float:
        """The weighted mean of the scores, from 1 to 5. Raises `WrongAnswer`."""
        if self.scores.keys() != criteria.keys():
            raise WrongAnswer(f"scores: give one for each criterion: {', '.join(criteria)}")
        whole = sum(weight * self.scores[name] for name, weight in criteria.items())
        return round(whole / sum(criteria.values()), 1)


def read(model: type[Read], arguments: JsonValue) -> Read:
    """Parse the arguments. Raises `WrongAnswer` with words that a model can act on."""
    try:
        return model.model_validate(arguments)
    except ValidationError as exc:
        raise WrongAnswer(argument_errors(exc)) from exc


def route_spec(targets: Collection[str]) -> ToolSpec:
    """The tool of a router that may choose among `targets`."""
    schema = without_titles(Route.model_json_schema())
    _property(schema, "target")["enum"] = list(targets)
    return ToolSpec(ROUTE, "Say who does what the incoming message asks for.", schema)


def plan_spec(executors: Collection[str], most: int) -> ToolSpec:
    """The tool of a planner whose steps may name these `executors`."""
    schema = without_titles(Plan.model_json_schema())
    _property(schema, "steps")["maxItems"] = most
    parts = schema["$defs"]
    assert isinstance(parts, dict)
    step = parts[PlanStep.__name__]
    assert isinstance(step, dict)
    _property(step, "executor")["enum"] = list(executors)
    return ToolSpec(SUBMIT_PLAN, f"Say what is to be done, in at most {most} steps.", schema)


def judge_spec(criteria: Mapping[str, float], least: float) -> ToolSpec:
    """The tool of a reflector that accepts a score of at least `least` by these criteria."""
    schema = without_titles(Judgement.model_json_schema())
    one: dict[str, JsonValue] = {"type": "integer", "minimum": 1, "maximum": 5}
    _property(schema, "scores").update(
        properties={name: _criterion(one, name) for name in criteria},
        required=[*criteria],
        additionalProperties=False,
    )
    weights = ", ".join(f"{name} {weight:g}" for name, weight in criteria.items())
    description = f"{_JUDGING} To accept takes {least:g} of 5 together; the weights are {weights}."
    return ToolSpec(JUDGE, description, schema)


_ABOUT = {
    "completeness": "All that was asked for is there.",
    "correctness": "What is there is right.",
    "format": "It has the form that was asked for.",
}


def _criterion(schema: Mapping[str, JsonValue], name: str) -> JsonValue:
    return {**schema, "description": _ABOUT[name]} if name in _ABOUT else {**schema}


def _property(schema: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    found = properties[name]
    assert isinstance(found, dict)
    return found
