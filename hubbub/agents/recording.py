"""What is recorded of answers and calls. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from typing import NoReturn

from pydantic import JsonValue

from hubbub.agents.models.base import Answer, CallRequest
from hubbub.agents.prompt.escape import reveal
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["MAX_DEPTH", "CallResult", "failure", "read_json", "step_of", "with_result"]

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
        notes=answer.notes,
        at_ms=at_ms,
        duration_ms=duration_ms,
    )


def _call(
    call: CallRequest, names: Sequence[str], spare: str, taken: set[str], cut: bool
) -> ToolCallRecord:
    """The record of a call; one that cannot be run has its result already."""
    id = call.id if call.id and call.id not in taken else spare
    taken.add(id)
    arguments = _parse(call.arguments)
    if call.name not in names:
        near = get_close_matches(call.name, names, 3, 0.4)
        told = failure("unknown_tool", f"there is no tool {call.name!r}", near=near or names)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=told, error="unknown_tool"
        )
    if isinstance(arguments, str):
        told = failure("invalid_arguments", _CUT if cut else _NO_OBJECT, retry=True)
        return ToolCallRecord(
            id=id, name=call.name, arguments=arguments, result=told, error="invalid_arguments"
        )
    return ToolCallRecord(id=id, name=call.name, arguments=arguments)


_CUT = "the answer was cut off at its length limit, so the arguments are incomplete; be shorter"
_NO_OBJECT = "the arguments are not a JSON object"


def failure(error: str, message: str, *, retry: bool = False, near: Sequence[str] = ()) -> str:
    """What a model is told of a call that failed. `retry`: whether the same tool may work yet."""
    told: dict[str, JsonValue] = {"error": error, "message": message, "retry": retry}
    if near:
        told["valid_names"] = list(near)
    return json.dumps(told, ensure_ascii=False)


def _parse(text: str) -> dict[str, JsonValue] | str:
    """The arguments as an object, or the text as it was. No text at all means no arguments."""
    try:
        value = read_json(text or "{}")
    except ValueError:
        return reveal(text)
    return value if isinstance(value, dict) else reveal(text)


def read_json(text: str, depth: int = MAX_DEPTH) -> JsonValue:
    """The value as the wire can carry it. Raises ValueError for what is no JSON or nested deeper
    than `depth`.
    """
    try:
        return _clean(json.loads(text, parse_constant=_refuse, parse_float=_finite), depth)
    except RecursionError as exc:
        raise ValueError("nested too deep") from exc


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if isfinite(number) else _refuse(text)


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
    """The call with its result, unless it has none or had one before."""
    if result is None or call.result is not None:
        return call
    told = {
        "result": reveal(result.result),
        "error": result.error,
        "at_ms": result.at_ms,
        "duration_ms": result.duration_ms,
        "attempts": result.attempts,
    }
    return call.model_copy(update=told)
