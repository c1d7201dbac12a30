"""Checks the result of a prompt's test case against the expectations. Pure.

failures(case.expect, result)      one sentence for each expectation that does not hold
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum, sqrt
from typing import NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match
from pydantic import JsonValue
from referencing import Registry

from hubbub.agents.prompt.tokens import TokenEstimate
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.validation import ArgumentCheck
from hubbub.agents.turn.steps import read_json
from hubbub.config.cases import Expectation
from hubbub.protocol.turns import Outcome, Step, ToolCallRecord, Turn
from hubbub.wording import shortened

__all__ = ["CaseRun", "ConfidenceInterval", "failures", "wilson"]

# The confidence of a pass rate. Pure.


Z_95 = 1.959963984540054
"""95 % of a normal distribution lies within so many standard deviations."""


class ConfidenceInterval(NamedTuple):
    """The true rate lies in here with 95 % confidence."""

    low: float
    high: float


def wilson(passed: int, runs: int, z: float = Z_95) -> ConfidenceInterval:
    """The score interval of Wilson (1927) for `passed` out of `runs`: valid for few runs, too, and
    always within 0 to 1. Without a run nothing is known.

    Raises ValueError for impossible counts.
    """
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs cannot have passed")
    if runs == 0:
        return ConfidenceInterval(0.0, 1.0)
    rate, spread = passed / runs, z * z / runs
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / runs + spread / (4 * runs)) / (1 + spread)
    # At the ends the exact bound is the end itself, which rounding may miss.
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == runs else min(1.0, middle + half)
    return ConfidenceInterval(low, high)


_SHOWN = 120
"""Characters of an answer that a failure quotes."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """What a model did in one run of a case."""

    steps: tuple[Step, ...] = ()
    said: tuple[str, ...] = ()
    """The messages that it sent; without an agent, its answer."""
    outcome: Outcome | None = None
    """How the turn ended; None: it did not, or there was none."""
    reason: str = ""
    lacking: str | None = None
    """The tool that ended the run because the case has no result for it."""
    schemas: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """Its tools, with the schemas of their arguments."""

    turns: tuple[Turn, ...] = ()
    """In a network: all turns."""
    answering: tuple[str, ...] = ()
    """In a network: the senders of the messages in `said`."""
    notices: tuple[str, ...] = ()
    """In a network: notices of the hub."""

    @property
    def calls(self) -> list[ToolCallRecord]:
        return [call for step in self.steps for call in step.calls]

    @property
    def answer(self) -> str:
        """The last message."""
        return self.said[-1] if self.said else ""

    @property
    def tokens_in(self) -> int:
        return sum(step.tokens_in for step in self.steps)

    @property
    def tokens_out(self) -> int:
        """As counted by the endpoint, or else estimated."""
        by_models = (step for turn in self.turns if turn.start.model for step in turn.steps)
        steps = tuple(by_models) if self.turns else self.steps
        counted = sum(step.tokens_out for step in steps)
        return counted or TokenEstimate().count("".join(map(_written, steps)))


class _ExpectationFailed(Exception):
    """The expectation does not hold; the text says why."""


def failures(expected: Sequence[Expectation], run: CaseRun) -> list[str]:
    """The expectations that do not hold, each as `expectation: why`."""
    found = []
    for expectation in expected:
        try:
            _CHECKS[expectation.kind](expectation, run)
        except _ExpectationFailed as exc:
            found.append(f"{expectation}: {exc}")
    return found


# The answer ---------------------------------------------------------------------------------------


def _valid_json(_: Expectation, run: CaseRun) -> None:
    _json(run)


def _has_field(expectation: Expectation, run: CaseRun) -> None:
    _at(_json(run), expectation.has_field or "")


def _no_field(expectation: Expectation, run: CaseRun) -> None:
    value = _json(run)
    try:
        found = _at(value, expectation.no_field or "")
    except _ExpectationFailed:
        return
    raise _ExpectationFailed(f"it is there: {_short(json.dumps(found, ensure_ascii=False))}")


def _field(expectation: Expectation, run: CaseRun) -> None:
    value = _at(_json(run), expectation.field or "")
    if not any(_same(value, allowed) for allowed in expectation.values or ()):
        raise _ExpectationFailed(f"it is {_short(json.dumps(value, ensure_ascii=False))}")


def _matches(expectation: Expectation, run: CaseRun) -> None:
    pattern = re.compile(expectation.matches or "")
    if not any(pattern.search(text) for text in run.said):
        raise _ExpectationFailed(_quoted(run))


def _json(run: CaseRun) -> JsonValue:
    try:
        return read_json(run.answer)
    except ValueError:
        fenced = ", which is in a code fence" if run.answer.lstrip()[:3] == "```" else ""
        raise _ExpectationFailed(f"it is no JSON{fenced}: {_quoted(run)}") from None


def _at(value: JsonValue, path: str) -> JsonValue:
    """The value of a field. A key that contains dots takes precedence over a path."""
    if isinstance(value, dict) and path in value:
        return value[path]
    here = value
    for part in path.split("."):
        if isinstance(here, dict) and part in here:
            here = here[part]
        elif isinstance(here, list) and part.isdecimal() and int(part) < len(here):
            here = here[int(part)]
        else:
            raise _ExpectationFailed(
                f"it has no {part!r}: {_short(json.dumps(here, ensure_ascii=False))}"
            )
    return here


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _quoted(run: CaseRun) -> str:
    if not run.said:
        return "it said nothing" + _stopped(run)
    return f"it said {_short(run.answer)!r}"


# Calls --------------------------------------------------------------------------------------------


def _tool_called(expectation: Expectation, run: CaseRun) -> None:
    _of(run, expectation.tool_called or "")


def _tool_not_called(expectation: Expectation, run: CaseRun) -> None:
    name = expectation.tool_not_called
    times = sum(call.name == name for call in run.calls)
    if times:
        raise _ExpectationFailed(f"it was called {times} times" if times > 1 else "it was called")


def _arguments_match(expectation: Expectation, run: CaseRun) -> None:
    name = expectation.arguments_match or ""
    calls = _of(run, name)
    for call in calls:
        if not isinstance(call.arguments, dict):
            raise _ExpectationFailed(
                f"its arguments are no JSON object: {_short(str(call.arguments))}"
            )
        given, own = expectation.schema_, run.schemas.get(name)
        if given is not None:
            wrong = _strict(given, call.arguments)
        elif own is not None:
            wrong = _by_own_schema(own, call.arguments)
        else:  # a tool of this turn only: the runtime has checked it
            wrong = call.result if call.error == "invalid_arguments" else None
        if wrong is not None:
            raise _ExpectationFailed(wrong)


def _strict(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> str | None:
    # The empty registry fetches nothing: a `$ref` to another document stays unresolved.
    errors = Draft202012Validator(schema, registry=Registry()).iter_errors(arguments)
    found = best_match(errors)
    if found is None:
        return None
    place = ".".join(map(str, found.absolute_path))
    return f"{place}: {found.message}" if place else str(found.message)


def _by_own_schema(
    schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]
) -> str | None:
    """The tool's own error message."""
    try:
        ArgumentCheck(schema).check(arguments)
    except ToolFailed as exc:
        return exc.message
    return None


def _of(run: CaseRun, name: str) -> list[ToolCallRecord]:
    """The calls of a tool, at least one."""
    calls = [c for c in run.calls if c.name == name and c.error != "unknown_tool"]
    if calls:
        return calls
    others = ", ".join(dict.fromkeys(call.name for call in run.calls))
    stopped = _stopped(run)
    raise _ExpectationFailed(
        (f"called were {others}" if others else "nothing was called") + stopped
    )


def _max_tokens(expectation: Expectation, run: CaseRun) -> None:
    if run.tokens_out > (expectation.max_tokens or 0):
        raise _ExpectationFailed(f"it wrote {run.tokens_out}")


def _ends_with_finish(_: Expectation, run: CaseRun) -> None:
    if run.outcome != "finished":
        ended = run.outcome or "it did not end"
        message = f"{ended} ({run.reason})" if run.reason else ended
        raise _ExpectationFailed(message + _stopped(run))


# Networks -----------------------------------------------------------------------------------------


def _answered_by(expectation: Expectation, run: CaseRun) -> None:
    answering = list(dict.fromkeys(run.answering))
    if answering != [expectation.answered_by]:
        what = f"{' and '.join(answering)} did" if answering else "nobody did"
        raise _ExpectationFailed(what + _stopped(run))


def _never_silent(_: Expectation, run: CaseRun) -> None:
    if not (run.said or run.notices):
        raise _ExpectationFailed("there is neither an answer nor a notice" + _stopped(run))


def _max_turns(expectation: Expectation, run: CaseRun) -> None:
    if len(run.turns) > (expectation.max_turns or 0):
        raise _ExpectationFailed(f"it took {len(run.turns)}")


def _max_cost(expectation: Expectation, run: CaseRun) -> None:
    cost = fsum(turn.cost_usd or 0 for turn in run.turns)
    if cost > (expectation.max_cost or 0):
        raise _ExpectationFailed(f"it cost {cost:g}")


def _no_loop(_: Expectation, run: CaseRun) -> None:
    looping = [turn for turn in run.turns if turn.end and turn.end.outcome in _CIRCLES]
    if looping and looping[0].end is not None:
        raise _ExpectationFailed(f"a turn of {looping[0].agent} ended as {looping[0].end.outcome}")
    if notices := [text for text in run.notices if "loop_limit" in text]:
        raise _ExpectationFailed(_short(notices[0]))


_CIRCLES = frozenset({"loop_detected", "max_steps"})


def _stopped(run: CaseRun) -> str:
    if run.lacking is None:
        return ""
    return f"; the case has no result of {run.lacking}: give it one in `results`"


def _written(step: Step) -> str:
    calls = (json.dumps(call.arguments, ensure_ascii=False) for call in step.calls)
    return "".join((step.text or "", *calls))


def _short(text: str) -> str:
    return shortened(text, _SHOWN)


_CHECKS: Mapping[str, Callable[[Expectation, CaseRun], None]] = {
    "valid_json": _valid_json,
    "has_field": _has_field,
    "no_field": _no_field,
    "field": _field,
    "matches": _matches,
    "tool_called": _tool_called,
    "tool_not_called": _tool_not_called,
    "arguments_match": _arguments_match,
    "max_tokens": _max_tokens,
    "ends_with_finish": _ends_with_finish,
    "answered_by": _answered_by,
    "never_silent": _never_silent,
    "max_turns": _max_turns,
    "max_cost": _max_cost,
    "no_loop": _no_loop,
}
