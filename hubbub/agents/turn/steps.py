"""Builds a turn's recorded steps from answers and results: content, times and numbers. Pure."""

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
from hubbub.protocol.codes import ErrorCode
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
    "repetition_reason",
    "running_helpers",
    "split_steps",
    "step_names",
    "step_of",
    "with_result",
]

NOT_FIRST = "not_first"
"""Error of a call that preceded the call that the turn must begin with."""
NOT_RUN = ("unknown_tool", "invalid_arguments", NOT_FIRST)
"""Errors of calls that did not run."""

# Time within a turn.


def elapsed_ms(steps: Sequence[Step]) -> float:
    """The end of the last recorded step or call, in milliseconds."""
    entries: list[Step | ToolCallRecord] = [*steps, *(c for step in steps for c in step.calls)]
    return max(map(_end_ms, entries), default=0.0)


def _end_ms(entry: Step | ToolCallRecord) -> float:
    return (entry.at_ms or 0.0) + (entry.duration_ms or 0.0)


class TurnClock:
    """Milliseconds of work on one turn, by a monotonic clock.

    A resumed turn continues where its record (`steps`) ends; the time in between does not count.
    """

    def __init__(self, steps: Sequence[Step] = (), monotonic: Callable[[], float] = time.monotonic):
        """`monotonic` returns seconds."""
        self._monotonic = monotonic
        self._zero = monotonic() - elapsed_ms(steps) / 1000

    @property
    def ms(self) -> float:
        """Milliseconds so far, rounded to a tenth."""
        return round((self._monotonic() - self._zero) * 1000, 1)

    def since(self, at_ms: float) -> float:
        """Milliseconds since `at_ms`."""
        return round(max(0.0, self.ms - at_ms), 1)


# Numbering of steps. Pure. A turn's own steps are numbered from 1, those of its sub-agents (`fork`)
# from `FIRST_HELPER_STEP`. Each sub-agent has its own range, so all can record in parallel.


FIRST_HELPER_STEP = 10_000
"""Start of the numbers of sub-agents' steps."""
MAX_HELPER_DEPTH = 2
"""Maximum nesting depth of sub-agents."""
_OWN_STEPS = 1000
"""Numbers reserved for a sub-agent's own steps."""
MAX_HELPERS = 16
"""Maximum number of sub-agents of a turn or a sub-agent."""
_BLOCKS = (_OWN_STEPS * (1 + MAX_HELPERS), _OWN_STEPS)
"""Numbers reserved for a sub-agent of the first and of the second depth, with its own sub-agents.
"""
_NO_HELPER = ("unknown_tool", "too_many_helpers", NOT_FIRST)
"""Errors of calls that did not start a sub-agent."""
NOT_JOINED = "not_joined"
"""Error of a call that did not wait for a helper's end, or named an unknown helper."""
_STILL_OPEN = (*NOT_RUN, NOT_JOINED, "cancelled", "forbidden", "hook_failed")
"""Errors of `wait_for` that leave the helper's end unreported."""


@dataclass(frozen=True, slots=True)
class StepRange:
    """The step numbers of a turn or a sub-agent, from `base` + 1."""

    base: int = 0
    depth: int = 0
    """0: the turn itself."""

    def child(self, ordinal: int) -> StepRange:
        """The range of its `ordinal`th sub-agent, counted from 1."""
        if self.depth == 0:
            return StepRange(FIRST_HELPER_STEP + (ordinal - 1) * _BLOCKS[0], 1)
        return StepRange(self.base + ordinal * _BLOCKS[1], MAX_HELPER_DEPTH)

    def holds(self, n: int) -> bool:
        """Whether step `n` is its own rather than a sub-agent's."""
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
    """The ordinals (from 1) of background sub-agents whose end is not in the steps."""
    calls = {(step.n, index): call for step in steps for index, call in enumerate(step.calls)}
    started = [n for n, key in enumerate(fork_calls(steps), 1) if in_background(calls[key])]
    joined = {
        call.arguments.get("helper")
        for call in calls.values()
        if call.name == WAIT_FOR and isinstance(call.arguments, dict)
        if call.result is not None and call.error not in _STILL_OPEN
    }
    return [n for n in started if n not in joined]


def in_background(call: ToolCallRecord) -> bool:
    """Whether the call started a sub-agent and returned at once."""
    arguments = call.ran_with
    background = isinstance(arguments, dict) and arguments.get("background") is True
    return background and call.result is not None and call.error is None


def step_names(steps: Sequence[Step]) -> dict[int, str]:
    """Display names of a turn's steps by number: `2`, or `1 of helper 1 of step 2`."""
    return dict(_named_steps(steps, StepRange(), ""))


def _named_steps(
    steps: Sequence[Step], numbers: StepRange, suffix: str
) -> Iterator[tuple[int, str]]:
    own = [step for step in steps if numbers.holds(step.n)]
    names = {step.n: f"{step.n - numbers.base}{suffix}" for step in own}
    yield from names.items()
    if numbers.depth < MAX_HELPER_DEPTH:
        for ordinal, (n, _) in enumerate(fork_calls(own), 1):
            child = f" of helper {ordinal} of step {names[n]}"
            yield from _named_steps(steps, numbers.child(ordinal), child)


MAX_DEPTH = 20
"""Maximum nesting depth of arguments: a recorded step must stay within the hub's limit."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """The outcome of a tool call: the text for the model, and the kind of failure, if any."""

    id: str
    result: str
    error: str | None = None
    at_ms: float | None = None
    """Its start, since the turn's start."""
    duration_ms: float | None = None
    attempts: int = 1
    untrusted: bool = False
    """Whether it carries untrusted content."""
    parked: tuple[str, ...] | None = None
    """Ids of the approvals that it waits for, without a result; None: it has a result."""
    changed: ChangedCall | None = None
    """A person's changes to the call before it ran."""


def step_of(
    answer: Completion,
    n: int,
    names: Sequence[str],
    at_ms: float | None = None,
    duration_ms: float | None = None,
) -> Step:
    """Step `n` from the answer of a model that can call `names` (in order). Calls that cannot run
    get an error as their result.
    """
    is_cut = answer.finish_reason == "length"
    taken: set[str] = set()
    return Step(
        n=n,
        text=answer.text and reveal(answer.text),
        calls=tuple(
            _call(c, names, f"call_{n}_{i}", taken, is_cut) for i, c in enumerate(answer.calls)
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
    call: CallRequest, names: Sequence[str], fallback_id: str, taken: set[str], is_cut: bool
) -> ToolCallRecord:
    """The record of a call; one that cannot run has an error as its result."""
    id = _unique_id(call.id or fallback_id, fallback_id, taken)
    taken.add(id)
    arguments, problem = _parse(call.arguments)
    error: str | None = None
    result: str | None = None
    if call.name not in names:
        error, suggestions = "unknown_tool", _suggested_names(call.name, names)
        result = failure(error, f"there is no tool {call.name!r}", near=suggestions)
    elif problem is not None:
        error = "invalid_arguments"
        result = failure(error, _CUT if is_cut else problem, retry=True)
    return ToolCallRecord(id=id, name=call.name, arguments=arguments, result=result, error=error)


def _suggested_names(name: str, names: Sequence[str]) -> Sequence[str]:
    """Up to three tools with a similar name; if there are none, some of the agent's own tools."""
    if similar := near(name, names, 3):
        return similar
    own = [other for other in names if other not in _RUNTIME_TOOLS]
    return (own or names)[:_MAX_SUGGESTIONS]


_MAX_SUGGESTIONS = 10
_RUNTIME_TOOLS = ("finish", ASK_HUMAN, DECLINE, SHOW_PLAN, TIDY_STEPS)
"""Not suggested for a name without a similar one."""


def _unique_id(id: str, fallback: str, taken: Collection[str]) -> str:
    """The id, or one derived from `fallback` if it is taken: results are matched by id."""
    while id in taken:
        id, fallback = fallback, f"{fallback}_"
    return id


_CUT = "the answer was cut off at its length limit, so the arguments are incomplete; be shorter"
_NO_OBJECT = "the arguments are not a JSON object"


def failure(error: str, message: str, *, retry: bool = False, near: Sequence[str] = ()) -> str:
    """A failed call's result for the model. `retry`: whether another call may succeed."""
    fields: dict[str, JsonValue] = {"error": error, "message": message, "retry": retry}
    if near:
        fields["valid_names"] = list(near)
    return json.dumps(fields, ensure_ascii=False)


def _parse(text: str) -> tuple[dict[str, JsonValue] | str, str | None]:
    """The arguments as an object, or the original text and the error."""
    try:
        return read_arguments(text), None
    except ValueError as exc:
        return reveal(text), reveal(f"{_NO_OBJECT}: {exc}")


def read_arguments(text: str) -> dict[str, JsonValue]:
    """Parse the arguments of a call in any dialect; empty text means none. Raises ValueError for
    anything but an unambiguous JSON object.
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


def _read(
    text: str, depth: int, build_object: Callable[[_Pairs], dict[str, JsonValue]]
) -> JsonValue:
    try:
        value = json.loads(
            text,
            parse_constant=no_constant,
            parse_float=finite,
            parse_int=whole,
            object_pairs_hook=build_object,
        )
        return _clean(value, depth)
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc


def _clean(value: JsonValue, depth: int) -> JsonValue:
    """The value as the wire can carry it. Raises ValueError if it is nested too deep."""
    if depth == 0:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return reveal(value)
    if isinstance(value, list):
        return [_clean(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {reveal(key): _clean(item, depth - 1) for key, item in value.items()}
    return value


def repetition_reason(steps: Sequence[Step], name: str) -> str:
    """Why a turn with these steps ends that repeats calls of `name`: they may be unable to run, or
    refused by the hub. Failures of the agent's own tools can have details that are not for others.
    """
    text = f"{name} was called again and again"
    for call in (call for step in reversed(steps) for call in step.calls if call.name == name):
        if call.error in (*NOT_RUN, *ErrorCode) and call.result is not None:
            return f"{text}: {_message_in(call.result)}"
    return text


def _message_in(result: str) -> str:
    """The message of a failed call's result."""
    try:
        return str(json.loads(result)["message"])
    except (ValueError, TypeError, KeyError):  # cut, or of a server's own form
        return result


def with_result(call: ToolCallRecord, result: CallResult | None) -> ToolCallRecord:
    """The call with the result, unless there is none or the call already has one."""
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
