"""Building a turn's recorded steps from answers and results: content, times and numbers. Pure."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.standard_tools import ASK_HUMAN, DECLINE, FORK, SHOW_PLAN, WAIT_FOR
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.protocol.turns import ChangedCall, Step, ToolCallRecord
from hubbub.strict_json import finite, no_constant, unique, whole
from hubbub.wording import near

__all__ = [
    "FIRST_HELPER_STEP",
    "MAX_DEPTH",
    "MAX_HELPERS",
    "MAX_HELPER_DEPTH",
    "NOT_FIRST",
    "NOT_JOINED",
    "NOT_RUN",
    "CallResult",
    "StepRange",
    "TurnClock",
    "failure",
    "fork_calls",
    "in_background",
    "read_arguments",
    "read_json",
    "running_helpers",
    "split_steps",
    "step_names",
    "step_of",
    "with_result",
]

NOT_FIRST = "not_first"
"""Error of a call that came before one of the tool to begin with."""
NOT_RUN = ("unknown_tool", "invalid_arguments", NOT_FIRST)
"""Errors of calls that were not carried out."""

# Time within a turn.


def worked_ms(steps: Sequence[Step]) -> float:
    """The end of the last thing in the recorded steps, in milliseconds."""
    done: list[Step | ToolCallRecord] = [*steps, *(call for step in steps for call in step.calls)]
    return max(map(_end, done), default=0.0)


def _end(done: Step | ToolCallRecord) -> float:
    return (done.at_ms or 0.0) + (done.duration_ms or 0.0)


class TurnClock:
    """Milliseconds of work on one turn, by a monotonic clock.

    A resumed turn continues where its record (`steps`) ends: the time in between does not count.
    """

    def __init__(self, steps: Sequence[Step] = (), monotonic: Callable[[], float] = time.monotonic):
        """`monotonic` returns seconds."""
        self._monotonic = monotonic
        self._zero = monotonic() - worked_ms(steps) / 1000

    @property
    def ms(self) -> float:
        """Now, to a tenth."""
        return round((self._monotonic() - self._zero) * 1000, 1)

    def since(self, at_ms: float) -> float:
        """Milliseconds passed since `at_ms`."""
        return round(max(0.0, self.ms - at_ms), 1)


# Numbering of steps. Pure. A turn's own steps are numbered from 1, those of its sub-agents (`fork`)
# from `FIRST_HELPER_STEP`: each sub-agent has a range of its own, so all can record in parallel.


FIRST_HELPER_STEP = 10_000
"""The first number of sub-agents' steps."""
MAX_HELPER_DEPTH = 2
"""Nesting depth of sub-agents."""
_OWN_STEPS = 1000
"""Numbers reserved for a sub-agent's own steps."""
MAX_HELPERS = 16
"""Sub-agents that a turn or a sub-agent may have."""
_BLOCKS = (_OWN_STEPS * (1 + MAX_HELPERS), _OWN_STEPS)
"""Numbers reserved for a sub-agent of the first and of the second depth, with its own sub-agents.
"""
_NO_HELPER = ("unknown_tool", "too_many_helpers", NOT_FIRST)
"""Errors of calls that started no sub-agent."""
NOT_JOINED = "not_joined"
"""Error of a call that did not wait for a helper's end, or named a helper that does not exist."""
_STILL_OPEN = (*NOT_RUN, NOT_JOINED, "cancelled", "forbidden", "hook_failed")
"""Errors of `wait_for` after which the helper's end has yet to be reported."""


@dataclass(frozen=True, slots=True)
class StepRange:
    """The numbers of the steps of a turn or a sub-agent: from `base` + 1 on."""

    base: int = 0
    depth: int = 0
    """0: the turn itself."""

    def child(self, ordinal: int) -> StepRange:
        """The range of its `ordinal`th sub-agent, from 1."""
        if self.depth == 0:
            return StepRange(FIRST_HELPER_STEP + (ordinal - 1) * _BLOCKS[0], 1)
        return StepRange(self.base + ordinal * _BLOCKS[1], MAX_HELPER_DEPTH)

    def holds(self, n: int) -> bool:
        """Whether step `n` is its own, not a sub-agent's."""
        return (
            self.base
            < n
            <= self.base + (FIRST_HELPER_STEP - 1 if self.depth == 0 else _OWN_STEPS - 1)
        )


def split_steps(steps: Sequence[Step]) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """The steps of the turn itself, and those of its sub-agents."""
    return tuple(s for s in steps if s.n < FIRST_HELPER_STEP), tuple(
        s for s in steps if s.n >= FIRST_HELPER_STEP
    )


def fork_calls(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """The calls that start sub-agents, in order: step number, and index in the step."""
    return [
        (step.n, index)
        for step in steps
        for index, call in enumerate(step.calls)
        if call.name == FORK and call.error not in _NO_HELPER
    ]


def running_helpers(steps: Sequence[Step]) -> list[int]:
    """The background sub-agents whose end is not in the steps, as their ordinals from 1."""
    calls = {(step.n, index): call for step in steps for index, call in enumerate(step.calls)}
    begun = [n for n, place in enumerate(fork_calls(steps), 1) if in_background(calls[place])]
    joined = {
        call.arguments.get("helper")
        for call in calls.values()
        if call.name == WAIT_FOR and isinstance(call.arguments, dict)
        if call.result is not None and call.error not in _STILL_OPEN
    }
    return [n for n in begun if n not in joined]


def in_background(call: ToolCallRecord) -> bool:
    """Whether the call started a sub-agent and returned at once."""
    given = call.ran_with
    background = isinstance(given, dict) and given.get("background") is True
    return background and call.result is not None and call.error is None


def step_names(steps: Sequence[Step]) -> dict[int, str]:
    """Display names of a turn's steps by number: `2`, or `1 of helper 1 of step 2`."""
    return dict(_named(steps, StepRange(), ""))


def _named(steps: Sequence[Step], place: StepRange, whose: str) -> Iterator[tuple[int, str]]:
    mine = [step for step in steps if place.holds(step.n)]
    names = {step.n: f"{step.n - place.base}{whose}" for step in mine}
    yield from names.items()
    if place.depth < MAX_HELPER_DEPTH:
        for ordinal, (n, _) in enumerate(fork_calls(mine), 1):
            child = f" of helper {ordinal} of step {names[n]}"
            yield from _named(steps, place.child(ordinal), child)


MAX_DEPTH = 20
"""Nesting depth of arguments: a recorded step must stay within the depth that the hub accepts."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of a tool call: the text for the model, and the kind of failure if it failed."""

    id: str
    result: str
    error: str | None = None
    at_ms: float | None = None
    """When it started, since the turn's start."""
    duration_ms: float | None = None
    attempts: int = 1
    untrusted: bool = False
    """Whether it carries untrusted content."""
    parked: tuple[str, ...] | None = None
    """Ids of the approvals that it waits for; it has no result yet. None: it has one."""
    changed: ChangedCall | None = None
    """What a person changed of it before it ran."""


def step_of(
    answer: Completion,
    n: int,
    names: Sequence[str],
    at_ms: float | None = None,
    duration_ms: float | None = None,
) -> Step:
    """Step `n` from the answer of a model that may call `names` (in order). Calls that cannot be
    run get an error as their result.
    """
    cut = answer.finish_reason == "length"
    taken: set[str] = set()
    return Step(
        n=n,
        text=answer.text and reveal(answer.text),
        calls=tuple(
            _call(c, names, f"call_{n}_{i}", taken, cut) for i, c in enumerate(answer.calls)
        ),
        tokens_in=answer.tokens_in,
        tokens_out=answer.tokens_out,
        cost_usd=answer.cost_usd,
        finish_reason=answer.finish_reason,
        wait=answer.wait,
        reasoning=answer.reasoning and reveal(answer.reasoning),
        discards=answer.discards,
        compresses=answer.compresses,
        window=answer.window,
        dialect=answer.dialect,
        model=answer.model,
        notes=answer.notes,
        at_ms=at_ms,
        duration_ms=duration_ms,
    )


def _call(
    call: CallRequest, names: Sequence[str], spare: str, taken: set[str], cut: bool
) -> ToolCallRecord:
    """The record of a call; one that cannot be run has an error as its result."""
    id = _free(call.id or spare, spare, taken)
    taken.add(id)
    arguments, wrong = _parse(call.arguments)
    if call.name not in names:
        near = _near(call.name, names)
        result = failure("unknown_tool", f"there is no tool {call.name!r}", near=near)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=result, error="unknown_tool"
        )
    if wrong is not None:
        result = failure("invalid_arguments", _CUT if cut else wrong, retry=True)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=result, error="invalid_arguments"
        )
    return ToolCallRecord(id=id, name=call.name, arguments=arguments)


def _near(name: str, names: Sequence[str]) -> Sequence[str]:
    """Up to three tools with a similar name; if there are none, some of the agent's own tools."""
    if found := near(name, names, 3):
        return found
    own = [known for known in names if known not in _ALL_HAVE]
    return (own or names)[:_MOST_NAMED]


_MOST_NAMED = 10
_ALL_HAVE = ("finish", ASK_HUMAN, DECLINE, SHOW_PLAN, TIDY_STEPS)
"""Tools of the runtime: not suggested for a name that resembles none."""


def _free(id: str, spare: str, taken: Collection[str]) -> str:
    """The id, or one made from `spare` if it is taken: results are matched by id."""
    while id in taken:
        id, spare = spare, f"{spare}_"
    return id


_CUT = "the answer was cut off at its length limit, so the arguments are incomplete; be shorter"
_NO_OBJECT = "the arguments are not a JSON object"


def failure(error: str, message: str, *, retry: bool = False, near: Sequence[str] = ()) -> str:
    """A failed call's result for the model. `retry`: whether another call may work."""
    fields: dict[str, JsonValue] = {"error": error, "message": message, "retry": retry}
    if near:
        fields["valid_names"] = list(near)
    return json.dumps(fields, ensure_ascii=False)


def _parse(text: str) -> tuple[dict[str, JsonValue] | str, str | None]:
    """The arguments as an object; or the original text, and what is wrong with it."""
    try:
        return read_arguments(text), None
    except ValueError as exc:
        return reveal(text), reveal(f"{_NO_OBJECT}: {exc}")


def read_arguments(text: str) -> dict[str, JsonValue]:
    """Parse the arguments of a call; empty text means none. Raises ValueError for anything but an
    unambiguous JSON object, in every dialect alike.
    """
    value = _read(text or "{}", MAX_DEPTH, unique)
    if not isinstance(value, dict):
        raise ValueError("there are no names in it")
    return value


def read_json(text: str, depth: int = MAX_DEPTH) -> JsonValue:
    """Parse JSON to a value that the wire can carry. Raises ValueError for invalid JSON, or JSON
    nested deeper than `depth`.
    """
    return _read(text, depth, dict)


_Pairs: TypeAlias = list[tuple[str, JsonValue]]


def _read(text: str, depth: int, made: Callable[[_Pairs], dict[str, JsonValue]]) -> JsonValue:
    try:
        value = json.loads(
            text,
            parse_constant=no_constant,
            parse_float=finite,
            parse_int=whole,
            object_pairs_hook=made,
        )
        return _clean(value, depth)
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc


def _clean(value: JsonValue, depth: int) -> JsonValue:
    """The value as the wire can carry it. Raises ValueError when it is nested too deep."""
    if depth == 0:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return reveal(value)
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {reveal(key): _clean(item, depth - 1) for key, item in value.items()}
    return value


def with_result(call: ToolCallRecord, result: CallResult | None) -> ToolCallRecord:
    """The call with its result, unless it has none yet or had one before."""
    if result is None or result.parked is not None or call.result is not None:
        return call
    fields = {
        "result": reveal(result.result),
        "error": result.error,
        "at_ms": result.at_ms,
        "duration_ms": result.duration_ms,
        "attempts": result.attempts,
        "changed": result.changed,
    }
    return call.model_copy(update=fields)
