"""A plan: steps with dependencies, and references to the results of other steps. Pure.

    {"id": 2, "goal": "in miles", "executor": "convert", "arguments": {"km": "$step_1_result"}}

`$step_1_result` may stand anywhere in arguments and goals, including nested JSON. Alone it stands
for the result itself (a number stays a number), within a text for the result as text. References
within a result are not resolved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.agents.tools.schema import ToolArguments
from hubbub.agents.turn.steps import MAX_DEPTH, read_json
from hubbub.config.problems import nearest

__all__ = [
    "Plan",
    "PlanStep",
    "WrongPlan",
    "fill",
    "fill_arguments",
    "fill_text",
    "references",
    "unresolved",
]

_REFERENCE = re.compile(r"\$step_([1-9]\d{0,3})_result(?!\w)")
_LIKE_ONE = re.compile(r"\$\{?step_?\d+\w*", re.IGNORECASE)
"""Anything that is meant as a reference, well-formed or not."""
_MOST_DEPTH = MAX_DEPTH // 2
"""Nesting depth of a result that is put into arguments, which are nested themselves."""

StepId = Annotated[int, Field(ge=1, le=9999)]


class WrongPlan(ValueError):
    """An invalid plan; the text tells its author what is wrong."""


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
        """The steps whose results a step waits for: in `depends_on`, or referred to."""
        step = self.step(number)
        return frozenset(step.depends_on) | references([step.goal, step.arguments])

    def checked(self, executors: Iterable[str], most: int) -> Plan:
        """The plan, if it can be carried out. Raises `WrongPlan`.

        `executors` are the existing tools and agents, `most` is the maximum number of steps.
        """
        if len(self.steps) > most:
            raise WrongPlan(f"there are {len(self.steps)} steps; at most {most} are allowed")
        ids = [step.id for step in self.steps]
        if len(set(ids)) < len(ids):
            raise WrongPlan("two steps have the same id")
        known = list(executors)
        for step in self.steps:
            if step.executor not in known:
                hint = nearest(step.executor, known)
                raise WrongPlan(
                    f"step {step.id}: there is no tool or agent {step.executor!r}{hint}"
                )
            missing = sorted(self.needs(step.id) - set(ids))
            if missing:
                raise WrongPlan(f"step {step.id} depends on step {missing[0]}, which is not there")
            if wrong := unresolved([step.goal, step.arguments], ids):
                raise WrongPlan(f"step {step.id}: {wrong}; write `$step_1_result`")
        self._check_order()
        return self

    def _check_order(self) -> None:
        left = {step.id: self.needs(step.id) for step in self.steps}
        while left:
            free = [number for number, needs in left.items() if not needs & left.keys()]
            if not free:
                circle = ", ".join(str(number) for number in sorted(left))
                raise WrongPlan(f"the steps {circle} wait for each other")
            for number in free:
                del left[number]

    def ready(self, succeeded: Iterable[int], begun: Iterable[int]) -> list[PlanStep]:
        """The steps that may run now, in the plan's order."""
        done, taken = frozenset(succeeded), frozenset(begun)
        return [s for s in self.steps if s.id not in taken and self.needs(s.id) <= done]

    def after(self, number: int) -> frozenset[int]:
        """The step, and all steps that need its result, directly or indirectly."""
        found = {number}
        while True:
            more = {s.id for s in self.steps if self.needs(s.id) & found} - found
            if not more:
                return frozenset(found)
            found |= more


def references(value: JsonValue | Sequence[JsonValue]) -> frozenset[int]:
    """The numbers of the steps whose results the value refers to."""
    return frozenset(int(n) for text in _texts(value) for n in _REFERENCE.findall(text))


def unresolved(value: JsonValue | Sequence[JsonValue], results: Collection[int]) -> str | None:
    """An error message if the value contains a reference to none of `results`."""
    for text in _texts(value):
        for found in _LIKE_ONE.finditer(text):
            whole = _REFERENCE.match(text, found.start())
            if whole is None or int(whole[1]) not in results:
                steps = ", ".join(map(str, sorted(results)))
                there = f"there are those of the steps {steps}" if steps else "there is none yet"
                return f"`{found[0][:40]}` stands for no result: {there}"
    return None


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for entry in value.values() for text in _texts(entry))
    elif isinstance(value, Sequence):
        yield from (text for entry in value for text in _texts(entry))


def fill(value: JsonValue, results: Mapping[int, str]) -> JsonValue:
    """The value with references replaced by results; those without a result stay."""
    if isinstance(value, str):
        whole = _REFERENCE.fullmatch(value)
        if whole and int(whole[1]) in results:
            return _itself(results[int(whole[1])])
        return fill_text(value, results)
    if isinstance(value, list):
        return [fill(entry, results) for entry in value]
    if isinstance(value, dict):
        return {key: fill(entry, results) for key, entry in value.items()}
    return value


def fill_text(text: str, results: Mapping[int, str]) -> str:
    """The text with references replaced by results as text."""
    return _REFERENCE.sub(lambda m: results.get(int(m[1]), m[0]), text)


def fill_arguments(
    arguments: Mapping[str, JsonValue], results: Mapping[int, str], schema: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """A tool's arguments with references replaced by results. Where its schema wants a string, a
    result stays one, even if it looks like a number.
    """
    wanted = schema.get("properties")
    texts = {
        name
        for name, schema_of in (wanted.items() if isinstance(wanted, dict) else ())
        if isinstance(schema_of, dict) and schema_of.get("type") == "string"
    }
    return {
        name: fill_text(value, results)
        if name in texts and isinstance(value, str)
        else fill(value, results)
        for name, value in arguments.items()
    }


def _itself(result: str) -> JsonValue:
    """The result as JSON if it is valid JSON; else the text."""
    try:
        return read_json(result, _MOST_DEPTH)
    except ValueError:
        return result
