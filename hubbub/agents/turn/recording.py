"""What is recorded of answers and calls. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeAlias

from pydantic import JsonValue

from hubbub.agents.dialects.json_text import finite, no_constant, unique, whole
from hubbub.agents.models.base import Answer, CallRequest
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.tidy import TIDY_STEPS
from hubbub.agents.tools.ways_out import ASK_HUMAN, DECLINE, SHOW_PLAN
from hubbub.protocol.turns import ChangedCall, Step, ToolCallRecord

__all__ = [
    "MAX_DEPTH",
    "CallResult",
    "failure",
    "read_arguments",
    "read_json",
    "step_of",
    "with_result",
]

MAX_DEPTH = 20
"""Levels of arguments: a recorded step must stay within the depth that the hub accepts."""


@dataclass(frozen=True, slots=True)
class CallResult:
    """What came of a tool call: the text for the model, and the kind of failure if it failed."""

    id: str
    result: str
    error: str | None = None
    at_ms: float | None = None
    """When it began, after the turn's start."""
    duration_ms: float | None = None
    attempts: int = 1
    outside: bool = False
    """Whether it carries content from outside the network."""
    parked: tuple[str, ...] | None = None
    """It has no result yet: the ids of the approvals that it waits for. None: it has one."""
    changed: ChangedCall | None = None
    """What a person changed of it before it ran."""


def step_of(
    answer: Answer,
    n: int,
    names: Sequence[str],
    at_ms: float | None = None,
    duration_ms: float | None = None,
) -> Step:
    """Step `n` of a model that may call `names` (in order); a call that cannot be run has its
    result already.
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
    """The record of a call; one that cannot be run has its result already."""
    id = _free(call.id or spare, spare, taken)
    taken.add(id)
    arguments, wrong = _parse(call.arguments)
    if call.name not in names:
        near = _near(call.name, names)
        told = failure("unknown_tool", f"there is no tool {call.name!r}", near=near)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=told, error="unknown_tool"
        )
    if wrong is not None:
        told = failure("invalid_arguments", _CUT if cut else wrong, retry=True)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=told, error="invalid_arguments"
        )
    return ToolCallRecord(id=id, name=call.name, arguments=arguments)


def _near(name: str, names: Sequence[str]) -> Sequence[str]:
    """Up to three tools that may be meant; without any, some of those that do the agent's work."""
    if near := get_close_matches(name, names, 3, 0.6):
        return near
    own = [known for known in names if known not in _ALL_HAVE]
    return (own or names)[:_MOST_NAMED]


_MOST_NAMED = 10
_ALL_HAVE = ("finish", ASK_HUMAN, DECLINE, SHOW_PLAN, TIDY_STEPS)
"""Tools of the runtime: a name that is like no other means none of them."""


def _free(id: str, spare: str, taken: Collection[str]) -> str:
    """The id, or one made of `spare` if another call of the step has it: results find their calls
    by their ids.
    """
    while id in taken:
        id, spare = spare, f"{spare}_"
    return id


_CUT = "the answer was cut off at its length limit, so the arguments are incomplete; be shorter"
_NO_OBJECT = "the arguments are not a JSON object"


def failure(error: str, message: str, *, retry: bool = False, near: Sequence[str] = ()) -> str:
    """What a model is told of a call that failed. `retry`: whether the same tool may work yet."""
    told: dict[str, JsonValue] = {"error": error, "message": message, "retry": retry}
    if near:
        told["valid_names"] = list(near)
    return json.dumps(told, ensure_ascii=False)


def _parse(text: str) -> tuple[dict[str, JsonValue] | str, str | None]:
    """The arguments as an object; or the text as it was, and what is wrong with it."""
    try:
        return read_arguments(text), None
    except ValueError as exc:
        return reveal(text), reveal(f"{_NO_OBJECT}: {exc}")


def read_arguments(text: str) -> dict[str, JsonValue]:
    """The arguments of a call; no text at all means none. Raises ValueError for what is no JSON
    object, or could mean two things, in every dialect alike.
    """
    value = _read(text or "{}", MAX_DEPTH, unique)
    if not isinstance(value, dict):
        raise ValueError("there are no names in it")
    return value


def read_json(text: str, depth: int = MAX_DEPTH) -> JsonValue:
    """The value as the wire can carry it. Raises ValueError for what is no JSON or nested deeper
    than `depth`.
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
    told = {
        "result": reveal(result.result),
        "error": result.error,
        "at_ms": result.at_ms,
        "duration_ms": result.duration_ms,
        "attempts": result.attempts,
        "changed": result.changed,
    }
    return call.model_copy(update=told)
