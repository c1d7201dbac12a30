"""Cuts a tool's result to a token budget. Pure.

Text keeps its beginning, with a note of its full length. JSON stays JSON: a list keeps its first
records, an object has its longest list cut; the total is noted.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections.abc import Callable, Sequence

from pydantic import JsonValue

from hubbub.agents.prompt.tokens import TokenCounter

__all__ = ["DEFAULT_BUDGET", "cut_text", "fit_result"]

DEFAULT_BUDGET = 4000
"""Tokens of a result, unless the agent or the tool says otherwise."""

_LEAST_RECORDS = 1
_LONGEST_TOKEN = 16
"""Maximum characters of a token, for rejecting much too long texts without counting."""
_MOST_JSON = 4_000_000
"""Characters of JSON that is parsed; longer JSON is cut like text."""


def fit_result(text: str, budget: int, counter: TokenCounter) -> str:
    """`text` within `budget` tokens; the marker may add a few."""
    if _fits(text, budget, counter):
        return text
    if text[:1] in ("[", "{") and len(text) <= _MOST_JSON:
        try:
            value: JsonValue = json.loads(text)
        except (ValueError, RecursionError):
            return cut_text(text, budget, counter)
        shorter = _fit_json(value, budget, counter)
        if shorter is not None:
            return shorter
    return cut_text(text, budget, counter)


def _fits(text: str, budget: int, counter: TokenCounter) -> bool:
    return len(text) <= budget * _LONGEST_TOKEN and counter.count(text) <= budget


def _fit_json(value: JsonValue, budget: int, counter: TokenCounter) -> str | None:
    """The value with fewer records; None if that is not enough."""
    whole = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if _fits(whole, budget, counter):
        return whole  # only its whitespace was too much
    if isinstance(value, list):
        return _fewer(value, lambda kept: _listed(kept, len(value)), budget, counter)
    if not isinstance(value, dict):
        return None
    lists = {key: item for key, item in value.items() if isinstance(item, list) and item}
    if not lists:
        return None
    key = max(lists, key=lambda name: len(json.dumps(lists[name])))
    total = len(lists[key])

    def shown(records: Sequence[JsonValue]) -> JsonValue:
        return {**value, key: list(records), f"{key}_cut": _cut_note(len(records), total)}

    return _fewer(lists[key], shown, budget, counter)


def _fewer(
    records: Sequence[JsonValue],
    shown: Callable[[Sequence[JsonValue]], JsonValue],
    budget: int,
    counter: TokenCounter,
) -> str | None:
    """The longest prefix of `records` whose `shown` form fits."""

    def text(count: int) -> str:
        return json.dumps(shown(records[:count]), ensure_ascii=False)

    def holds(count: int) -> bool:
        return _fits(text(count), budget, counter)

    if not holds(_LEAST_RECORDS):
        return None
    return text(_last(_LEAST_RECORDS, _at_most(records, budget), holds))


def _at_most(records: Sequence[JsonValue], budget: int) -> int:
    """An upper bound for the number of records that fit."""
    room = budget * _LONGEST_TOKEN
    for n, record in enumerate(records):
        room -= len(json.dumps(record, ensure_ascii=False))
        if room < 0:
            return n
    return len(records)


def _listed(records: Sequence[JsonValue], total: int) -> JsonValue:
    return {"records": list(records), "records_cut": _cut_note(len(records), total)}


def _cut_note(shown: int, total: int) -> str:
    return f"the first {shown} of {total}; ask for fewer or for a narrower part"


def cut_text(text: str, budget: int, counter: TokenCounter) -> str:
    """The beginning of a text that is too long, with a note of its length."""
    longest = min(len(text), budget * _LONGEST_TOKEN)
    length = _last(0, longest, lambda n: counter.count(text[:n]) <= budget)
    return f"{text[:length]}… (cut: the first {length} of {len(text)} characters)"


def _last(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The greatest number in the range for which `holds`; `low` must hold."""
    return low + bisect(range(low + 1, high + 1), False, key=lambda n: not holds(n))
