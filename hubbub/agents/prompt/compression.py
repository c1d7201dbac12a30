"""Shortens earlier steps of a turn that do not fit into the window. Pure.

A step is one answer of the model with all its results, so a call is never without its result. There
are two strategies; steps are shortened in this order:

    window       the oldest step is removed, then the next
    importance   except for the last few steps, those that only read are removed, oldest first, and
                 so are errors that occurred again later. Writes and other errors shrink to one line

and as the last resort, with both: results of the last few steps are cut; lines of errors are
removed; results are cut to very little; lines of writes are removed; the last few steps shrink to
lines, and are removed.

Messages from people always stay. The last step is never removed nor reduced to a line, because no
chat can end with one: its calls stay, with the beginnings of their arguments and results.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.prompt.tokens import TokenCounter
from hubbub.agents.tools.results import fit_result
from hubbub.agents.turn.chat import ShownStep, one_line
from hubbub.config.agents import CompressionName
from hubbub.protocol.turns import Steering, Step, ToolCallRecord
from hubbub.wording import shortened

__all__ = ["StepChange", "step_changes"]

_SHORT_RESULTS = (400, 60)
"""Tokens of each result of the last steps, in two stages."""
_LEAST_RESULT = 16
"""The same, when nothing but the last step is left."""
_MOST_TEXT, _MOST_ITEMS = 40, 8
"""Characters of a string, and items of a list or an object, among its arguments then."""
_MOST_WORDS = 160
"""Characters of the model's text."""


@dataclass(frozen=True, slots=True)
class StepChange:
    """Shortens one step."""

    at: int
    """Its index among the steps shown."""
    to: ShownStep | None
    """What replaces it; None: nothing."""


def step_changes(
    steps: Sequence[ShownStep],
    strategy: CompressionName,
    keep: int,
    writes: Collection[str],
    counter: TokenCounter,
) -> tuple[list[StepChange], list[StepChange]]:
    """The changes in order: for the older steps, and, as the last resort, for the last `keep`.

    `writes` are the names of the tools that change something.
    """
    weights = _weights(steps, writes)
    places = [at for at, step in enumerate(steps) if not isinstance(step, Steering)]
    older, recent = places[:-keep], places[-keep:]
    if strategy == "window":
        first = [StepChange(at, None) for at in older]
        older = []
    else:
        first = list(_by_importance(steps, older, weights))
    lines = [[at for at in older if weights[at] == weight] for weight in (1, 2)]
    return first, list(_last_resort(steps, recent, lines, counter))


def _by_importance(
    steps: Sequence[ShownStep], older: Sequence[int], weights: Sequence[int]
) -> Iterator[StepChange]:
    yield from (StepChange(at, None) for at in older if weights[at] == 0)
    for at in older:
        step = steps[at]
        if weights[at] and isinstance(step, Step):
            yield StepChange(at, one_line(step))


def _last_resort(
    steps: Sequence[ShownStep],
    recent: Sequence[int],
    lines: Sequence[Sequence[int]],
    counter: TokenCounter,
) -> Iterator[StepChange]:
    """`lines`: the places of what is left of the older steps, the least important first."""
    for most, gone in zip(_SHORT_RESULTS, lines, strict=True):
        for at in recent:
            step = steps[at]
            if isinstance(step, Step) and step.calls:
                yield StepChange(at, _with_short_results(step, most, counter))
        yield from (StepChange(at, None) for at in gone)
    for at in recent[:-1]:
        step = steps[at]
        if isinstance(step, Step):
            yield StepChange(at, one_line(step))
    yield from (StepChange(at, None) for at in recent[:-1])
    for at in recent[-1:]:
        step = steps[at]
        if isinstance(step, Step):
            yield StepChange(at, _beginnings(step, counter))


def _weights(steps: Sequence[ShownStep], writes: Collection[str]) -> list[int]:
    """For each step: 0, it only read; 1, it failed in a way that may happen again; 2, it wrote
    something, or holds what the model itself wanted to remember.
    """
    weights: list[int] = []
    seen: set[tuple[str, str]] = set()
    for step in reversed(steps):
        if not isinstance(step, Step):
            weights.append(2)
            continue
        errors = {(call.name, call.error) for call in step.calls if call.error}
        wrote = any(call.name in writes and not call.error for call in step.calls)
        weights.append(2 if wrote else 1 if errors - seen else 0)
        seen |= errors
    return weights[::-1]


def _beginnings(step: Step, counter: TokenCounter) -> Step:
    """The step with the beginnings of all its texts."""
    beginnings = {
        "text": step.text and shortened(step.text, _MOST_WORDS),
        "reasoning": None,
        "calls": tuple(map(_small_call, step.calls)),
    }
    return _with_short_results(step.model_copy(update=beginnings), _LEAST_RESULT, counter)


def _small_call(call: ToolCallRecord) -> ToolCallRecord:
    """The call with the beginnings of the arguments that it ran with."""
    return call.model_copy(update={"arguments": _small(call.ran_with), "changed": None})


def _small(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return shortened(value, _MOST_TEXT)
    if isinstance(value, list):
        return [_small(item) for item in value[:_MOST_ITEMS]]
    if isinstance(value, dict):
        some = list(value.items())[:_MOST_ITEMS]
        return {shortened(key, _MOST_TEXT): _small(item) for key, item in some}
    return value


def _with_short_results(step: Step, most: int, counter: TokenCounter) -> Step:
    calls = tuple(
        call.model_copy(update={"result": fit_result(call.result, most, counter)})
        if call.result is not None
        else call
        for call in step.calls
    )
    return step.model_copy(update={"calls": calls})
