"""Checks the run of a prompt's test case against its expectations. Pure.

failures(case.expect, run)      one sentence for each failed expectation
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

Z_95 = 1.959963984540054
"""95 % of a normal distribution lies within this many standard deviations of the mean."""


class ConfidenceInterval(NamedTuple):
    """Contains the true rate with 95 % confidence."""

    low: float
    high: float


def wilson(passed: int, runs: int, z: float = Z_95) -> ConfidenceInterval:
    """The score interval of Wilson (1927) for `passed` out of `runs`. It holds for few runs, too,
    and lies within 0 to 1; without runs it is 0 to 1.

    Raises ValueError for impossible counts.
    """
    if not 0 <= passed <= runs:
        raise ValueError(f"{passed} of {runs} runs cannot have passed")
    if runs == 0:
        return ConfidenceInterval(0.0, 1.0)
    rate, spread = passed / runs, z * z / runs
    middle = (rate + spread / 2) / (1 + spread)
    half = z * sqrt(rate * (1 - rate) / runs + spread / (4 * runs)) / (1 + spread)
    # At the ends the exact bound is the end itself, which rounding can miss.
    low = 0.0 if passed == 0 else max(0.0, middle - half)
    high = 1.0 if passed == runs else min(1.0, middle + half)
    return ConfidenceInterval(low, high)


_MAX_QUOTE = 120
"""Maximum characters of an answer in a failure."""


@dataclass(frozen=True, slots=True)
class CaseRun:
    """The behaviour of a model in one run of a case."""

    steps: tuple[Step, ...] = ()
    sent: tuple[str, ...] = ()
    """The messages it sent; without an agent, its answer."""
    outcome: Outcome | None = None
    """None: there was no turn, or it did not end."""
    reason: str = ""
    lacking: str | None = None
    """The tool that ended the run because the case has no result for it."""
    schemas: Mapping[str, Mapping[str, JsonValue]] = field(default_factory=dict)
    """By tool, the schema of its arguments."""

    turns: tuple[Turn, ...] = ()
    """In a network: all turns."""
    senders: tuple[str, ...] = ()
    """In a network: the sender of each message in `sent`."""
    notices: tuple[str, ...] = ()
    """In a network: notices of the hub."""

    @property
    def calls(self) -> list[ToolCallRecord]:
        return [call for step in self.steps for call in step.calls]

    @property
    def answer(self) -> str:
        """The last message."""
        return self.sent[-1] if self.sent else ""

    @property
    def tokens_in(self) -> int:
        return sum(step.tokens_in for step in self.steps)

    @property
    def tokens_out(self) -> int:
        """As counted by the endpoint, otherwise estimated."""
        by_models = (step for turn in self.turns if turn.start.model for step in turn.steps)
        steps = tuple(by_models) if self.turns else self.steps
        counted = sum(step.tokens_out for step in steps)
        return counted or TokenEstimate().count("".join(map(_written, steps)))


class _ExpectationFailed(Exception):
    """The expectation does not hold, for the reason in the text."""


def failures(expected: Sequence[Expectation], run: CaseRun) -> list[str]:
    """The expectations that do not hold, each as `expectation: why`."""
    failed = []
    for expectation in expected:
        try:
            _CHECKS[expectation.kind](expectation, run)
        except _ExpectationFailed as exc:
            failed.append(f"{expectation}: {exc}")
    return failed


# The answer ---------------------------------------------------------------------------------------


def _valid_json(_: Expectation, run: CaseRun) -> None:
    _json(run)


def _has_field(expectation: Expectation, run: CaseRun) -> None:
    _at(_json(run), expectation.has_field or "")


def _no_field(expectation: Expectation, run: CaseRun) -> None:
    value = _json(run)
    try:
        present = _at(value, expectation.no_field or "")
    except _ExpectationFailed:
        return
    raise _ExpectationFailed(f"it is there: {_short(json.dumps(present, ensure_ascii=False))}")


def _field(expectation: Expectation, run: CaseRun) -> None:
    value = _at(_json(run), expectation.field or "")
    if not any(_same(value, allowed) for allowed in expectation.values or ()):
        raise _ExpectationFailed(f"it is {_short(json.dumps(value, ensure_ascii=False))}")


def _matches(expectation: Expectation, run: CaseRun) -> None:
    pattern = re.compile(expectation.matches or "")
    if not any(pattern.search(text) for text in run.sent):
        raise _ExpectationFailed(_quoted(run))


def _json(run: CaseRun) -> JsonValue:
    try:
        return read_json(run.answer)
    except ValueError:
        fenced = ", which is in a code fence" if run.answer.lstrip()[:3] == "```" else ""
        raise _ExpectationFailed(f"it is not JSON{fenced}: {_quoted(run)}") from None


def _at(value: JsonValue, path: str) -> JsonValue:
    """The value of a field. A key that contains dots takes precedence over a path."""
    if isinstance(value, dict) and path in value:
        return value[path]
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise _ExpectationFailed(
                f"it has no {part!r}: {_short(json.dumps(value, ensure_ascii=False))}"
            )
    return value


def _same(value: JsonValue, other: JsonValue) -> bool:
    """Equal as JSON: true is not 1."""
    return value == other and isinstance(value, bool) == isinstance(other, bool)


def _quoted(run: CaseRun) -> str:
    if not run.sent:
        return "it sent nothing" + _stopped(run)
    return f"it sent {_short(run.answer)!r}"


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
                f"its arguments are not a JSON object: {_short(str(call.arguments))}"
            )
        expected, own = expectation.schema_, run.schemas.get(name)
        if expected is not None:
            problem = _strict_error(expected, call.arguments)
        elif own is not None:
            problem = _tool_error(own, call.arguments)
        else:  # a tool of this turn only, which the runtime checked
            problem = call.result if call.error == "invalid_arguments" else None
        if problem is not None:
            raise _ExpectationFailed(problem)


def _strict_error(
    schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]
) -> str | None:
    # The empty registry fetches nothing: a `$ref` to another document stays unresolved.
    errors = Draft202012Validator(schema, registry=Registry()).iter_errors(arguments)
    error = best_match(errors)
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path))
    return f"{place}: {error.message}" if place else str(error.message)


def _tool_error(schema: Mapping[str, JsonValue], arguments: Mapping[str, JsonValue]) -> str | None:
    """The error message that the tool itself returns for these arguments."""
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
    raise _ExpectationFailed((f"it called {others}" if others else "it called no tool") + stopped)


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
    senders = list(dict.fromkeys(run.senders))
    if senders != [expectation.answered_by]:
        reason = f"{' and '.join(senders)} did" if senders else "there was no answer"
        raise _ExpectationFailed(reason + _stopped(run))


def _never_silent(_: Expectation, run: CaseRun) -> None:
    if not (run.sent or run.notices):
        raise _ExpectationFailed("there is neither an answer nor a notice" + _stopped(run))


def _max_turns(expectation: Expectation, run: CaseRun) -> None:
    if len(run.turns) > (expectation.max_turns or 0):
        raise _ExpectationFailed(f"it took {len(run.turns)}")


def _max_cost(expectation: Expectation, run: CaseRun) -> None:
    cost = fsum(turn.cost_usd or 0 for turn in run.turns)
    if cost > (expectation.max_cost or 0):
        raise _ExpectationFailed(f"it cost {cost:g}")


def _no_loop(_: Expectation, run: CaseRun) -> None:
    looping = [turn for turn in run.turns if turn.end and turn.end.outcome in _LOOP_OUTCOMES]
    if looping and looping[0].end is not None:
        raise _ExpectationFailed(f"a turn of {looping[0].agent} ended as {looping[0].end.outcome}")
    if notices := [text for text in run.notices if "loop_limit" in text]:
        raise _ExpectationFailed(_short(notices[0]))


_LOOP_OUTCOMES = frozenset({"loop_detected", "max_steps"})


def _stopped(run: CaseRun) -> str:
    if run.lacking is None:
        return ""
    return f"; the case has no result for {run.lacking}: add one to `results`"


def _written(step: Step) -> str:
    calls = (json.dumps(call.arguments, ensure_ascii=False) for call in step.calls)
    return "".join((step.text or "", *calls))


def _short(text: str) -> str:
    return shortened(text, _MAX_QUOTE)


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
