"""The answers of roles. Pure.

A plan has steps with dependencies, and references to the results of other steps:

    {"id": 2, "goal": "in miles", "executor": "convert", "arguments": {"km": "$step_1_result"}}

`$step_1_result` can occur anywhere in arguments and goals, including nested JSON. Alone, it stands
for the result itself (a number stays a number); within a text, for the result as text. References
within a result are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, Field, JsonValue, ValidationError, model_validator

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.schema import ToolArguments, argument_errors, without_titles
from hubbub.agents.turn.steps import MAX_DEPTH, read_json
from hubbub.config.problems import nearest

__all__ = [
    "ANSWER",
    "JUDGE",
    "MAKE_PLAN",
    "ROUTE",
    "SUBMIT_PLAN",
    "InvalidAnswer",
    "InvalidPlan",
    "Judgement",
    "Plan",
    "PlanStep",
    "Route",
    "fill",
    "fill_arguments",
    "fill_text",
    "judge_spec",
    "plan_spec",
    "read",
    "references",
    "route_spec",
    "unresolved",
]

_REFERENCE = re.compile(r"\$step_([1-9]\d{0,3})_result(?!\w)")
_REFERENCE_LIKE = re.compile(r"\$\{?step_?\d+\w*", re.IGNORECASE)
"""Anything meant as a reference, well-formed or not."""
_MAX_RESULT_DEPTH = MAX_DEPTH // 2
"""Maximum nesting depth of a result inserted into arguments, which are nested themselves."""

StepId = Annotated[int, Field(ge=1, le=9999)]


class InvalidPlan(ValueError):
    """An invalid plan, with an error message for the model."""


class PlanStep(ToolArguments):
    """One thing to do: a call of a tool, or a request to an agent."""

    id: StepId
    """Its number: 1, 2, 3 …"""
    goal: Annotated[str, Field(min_length=1)]
    """What the step is for. An agent reads just this, so it must contain all that it needs."""
    executor: Annotated[str, Field(min_length=1)]
    """The tool or the agent that does it."""
    arguments: dict[str, JsonValue] | None = None
    """Of a tool; `$step_1_result` stands for the result of step 1. Leave them out where they are
    not known yet: they are filled in when the step begins."""
    depends_on: tuple[StepId, ...] = ()
    """Numbers of the steps that must have succeeded before. Others run at the same time."""


class Plan(ToolArguments):
    """Steps that may run as soon as what they depend on has succeeded."""

    reasoning: str = ""
    """Why these, in a sentence or two, before you list them."""
    steps: Annotated[tuple[PlanStep, ...], Field(min_length=1)]
    """What is to be done."""

    def step(self, number: int) -> PlanStep:
        """The step with this number. Raises KeyError."""
        return {step.id: step for step in self.steps}[number]

    def needs(self, number: int) -> frozenset[int]:
        """The steps whose results a step needs: those in `depends_on`, and those it refers to."""
        step = self.step(number)
        return frozenset(step.depends_on) | references([step.goal, step.arguments])

    def validate_for(self, executors: Iterable[str], max_steps: int) -> Plan:
        """Return the plan if it can be carried out. Raises `InvalidPlan`.

        `executors` are the existing tools and agents.
        """
        if len(self.steps) > max_steps:
            raise InvalidPlan(f"there are {len(self.steps)} steps; at most {max_steps} are allowed")
        ids = [step.id for step in self.steps]
        if len(set(ids)) < len(ids):
            raise InvalidPlan("two steps have the same id")
        names = list(executors)
        for step in self.steps:
            if step.executor not in names:
                hint = nearest(step.executor, names)
                raise InvalidPlan(
                    f"step {step.id}: there is no tool or agent {step.executor!r}{hint}"
                )
            missing = sorted(self.needs(step.id) - set(ids))
            if missing:
                raise InvalidPlan(
                    f"step {step.id} depends on step {missing[0]}, which is not there"
                )
            if error := unresolved([step.goal, step.arguments], ids):
                raise InvalidPlan(f"step {step.id}: {error}; write `$step_1_result`")
        self._check_order()
        return self

    def _check_order(self) -> None:
        remaining = {step.id: self.needs(step.id) for step in self.steps}
        while remaining:
            free = [number for number, needs in remaining.items() if not needs & remaining.keys()]
            if not free:
                cycle = ", ".join(str(number) for number in sorted(remaining))
                raise InvalidPlan(f"the steps {cycle} wait for each other")
            for number in free:
                del remaining[number]

    def ready(self, succeeded: Iterable[int], begun: Iterable[int]) -> list[PlanStep]:
        """The steps that can run now, in the plan's order."""
        done, started = frozenset(succeeded), frozenset(begun)
        return [s for s in self.steps if s.id not in started and self.needs(s.id) <= done]

    def after(self, number: int) -> frozenset[int]:
        """The step, and all steps that need its result, directly or indirectly."""
        reached = {number}
        while True:
            more = {s.id for s in self.steps if self.needs(s.id) & reached} - reached
            if not more:
                return frozenset(reached)
            reached |= more


def references(value: JsonValue | Sequence[JsonValue]) -> frozenset[int]:
    """The numbers of the steps whose results the value refers to."""
    return frozenset(int(n) for text in _texts(value) for n in _REFERENCE.findall(text))


def unresolved(value: JsonValue | Sequence[JsonValue], results: Collection[int]) -> str | None:
    """An error message if the value has an invalid reference, or one to none of `results`."""
    for text in _texts(value):
        for candidate in _REFERENCE_LIKE.finditer(text):
            reference = _REFERENCE.match(text, candidate.start())
            if reference is None or int(reference[1]) not in results:
                steps = ", ".join(map(str, sorted(results)))
                there = f"there are those of the steps {steps}" if steps else "there is none yet"
                return f"`{candidate[0][:40]}` stands for no result: {there}"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for entry in value.values() for text in _texts(entry))
    elif isinstance(value, Sequence):
        yield from (text for entry in value for text in _texts(entry))


def fill(value: JsonValue, results: Mapping[int, str]) -> JsonValue:
    """The value with references replaced by results; references without a result stay."""
    if isinstance(value, str):
        reference = _REFERENCE.fullmatch(value)
        if reference and int(reference[1]) in results:
            return _parsed(results[int(reference[1])])
        return fill_text(value, results)
    if isinstance(value, list):
        return [fill(entry, results) for entry in value]
    if isinstance(value, dict):
        return {key: fill(entry, results) for key, entry in value.items()}
    return value


def fill_text(text: str, results: Mapping[int, str]) -> str:
    """The text with references replaced by the results' text."""
    return _REFERENCE.sub(lambda m: results.get(int(m[1]), m[0]), text)


def fill_arguments(
    arguments: Mapping[str, JsonValue], results: Mapping[int, str], schema: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """A tool's arguments with references replaced by results. Where the schema requires a string, a
    result stays a string, even if it looks like a number.
    """
    properties = schema.get("properties")
    texts = {
        name
        for name, schema_of in (properties.items() if isinstance(properties, dict) else ())
        if isinstance(schema_of, dict) and schema_of.get("type") == "string"
    }
    return {
        name: fill_text(value, results)
        if name in texts and isinstance(value, str)
        else fill(value, results)
        for name, value in arguments.items()
    }


def _parsed(result: str) -> JsonValue:
    """The result as JSON if it is valid JSON, otherwise the text."""
    try:
        return read_json(result, _MAX_RESULT_DEPTH)
    except ValueError:
        return result


# The answers of roles: the arguments of `route`, `submit_plan` and `judge`. Pure.


ROUTE, SUBMIT_PLAN, JUDGE = "route", "submit_plan", "judge"
ANSWER, MAKE_PLAN = "answer", "make_plan"
"""Targets of a route that are neither a tool nor an agent."""

_JUDGING = "Judge the results and say what comes next."
Options = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(max_length=8)]
Verdict = Literal["accept", "retry_step", "replan", "escalate"]
Read = TypeVar("Read", bound=BaseModel)


class InvalidAnswer(ValueError):
    """An invalid answer, with an error message for the model."""


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
    """For each criterion, from 5 (fully met) to 1 (not met at all)."""
    verdict: Verdict
    """accept: it is good enough; retry_step: run one step again; replan: another plan is needed;
    escalate: a person must decide."""
    answer: str = ""
    """accept: the answer to the person. `$step_1_result` stands for the result of step 1."""
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
        """The weighted mean of the scores, from 1 to 5. Raises `InvalidAnswer`."""
        if self.scores.keys() != criteria.keys():
            raise InvalidAnswer(f"scores: give one for each criterion: {', '.join(criteria)}")
        whole = sum(weight * self.scores[name] for name, weight in criteria.items())
        return round(whole / sum(criteria.values()), 1)


def read(model: type[Read], arguments: JsonValue) -> Read:
    """Parse the arguments. Raises `InvalidAnswer` with a message that a model can act on."""
    try:
        return model.model_validate(arguments)
    except ValidationError as exc:
        raise InvalidAnswer(argument_errors(exc)) from exc


def route_spec(targets: Collection[str]) -> ToolSpec:
    """The tool of a router that chooses from `targets`."""
    schema = without_titles(Route.model_json_schema())
    _property(schema, "target")["enum"] = list(targets)
    return ToolSpec(ROUTE, "Say who does what the incoming message asks for.", schema)


def plan_spec(executors: Collection[str], max_steps: int) -> ToolSpec:
    """The tool of a planner whose steps can name these `executors`."""
    schema = without_titles(Plan.model_json_schema())
    _property(schema, "steps")["maxItems"] = max_steps
    definitions = schema["$defs"]
    assert isinstance(definitions, dict)
    step = definitions[PlanStep.__name__]
    assert isinstance(step, dict)
    _property(step, "executor")["enum"] = list(executors)
    return ToolSpec(SUBMIT_PLAN, f"Say what is to be done, in at most {max_steps} steps.", schema)


def judge_spec(criteria: Mapping[str, float], min_score: float) -> ToolSpec:
    """The tool of a reflector that accepts a score of at least `min_score` by these criteria."""
    schema = without_titles(Judgement.model_json_schema())
    one: dict[str, JsonValue] = {"type": "integer", "minimum": 1, "maximum": 5}
    _property(schema, "scores").update(
        properties={name: _criterion(one, name) for name in criteria},
        required=[*criteria],
        additionalProperties=False,
    )
    weights = ", ".join(f"{name} {weight:g}" for name, weight in criteria.items())
    description = (
        f"{_JUDGING} To accept takes {min_score:g} of 5 together; the weights are {weights}."
    )
    return ToolSpec(JUDGE, description, schema)


_CRITERIA = {
    "completeness": "All that was asked for is there.",
    "correctness": "What is there is right.",
    "format": "It has the form that was asked for.",
}


def _criterion(schema: Mapping[str, JsonValue], name: str) -> JsonValue:
    return {**schema, "description": _CRITERIA[name]} if name in _CRITERIA else {**schema}


def _property(schema: Mapping[str, JsonValue], name: str) -> dict[str, JsonValue]:
    properties = schema["properties"]
    assert isinstance(properties, dict)
    schema_of = properties[name]
    assert isinstance(schema_of, dict)
    return schema_of
