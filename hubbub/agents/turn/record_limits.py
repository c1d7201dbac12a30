"""Cuts records to the hub's limits of size and depth, whatever is in them. Pure.

    texts        lose their middle; what no frame can carry (NUL, lone surrogates) is escaped
    arguments    also lose the ends of lists and objects, and what is nested too deep
    lists        of the record itself lose their ends, if nothing else helps

Each cut is marked in its place; `calls_cut` marks cut calls, and the notes other cut lists.
"""

from __future__ import annotations

import re
from itertools import islice

from pydantic import JsonValue
from pydantic_core import to_json

from hubbub.agents.prompt.escape import reveal
from hubbub.agents.turn.steps import failure
from hubbub.protocol.frames import LimitsInfo
from hubbub.protocol.turns import Step
from hubbub.wording import cut_in_the_middle

__all__ = ["LEAST_RECORD", "ROOM", "cut_record", "excerpt", "within_limits", "without_cut_calls"]

ROOM = 1024
"""Bytes of a frame besides the record itself."""

LEAST_RECORD = 8 * 1024
"""Every record can be cut to this many bytes."""
_LEAST_TEXT = 64
"""Characters of a text, and bytes of a call's arguments, that always stay."""
_FLAW = re.compile("[\0\ud800-\udfff]")
_LOST = (
    "the process stopped while this ran, and its arguments were too large to be kept: it may or "
    "may not have taken effect; find out before you call it again"
)


def cut_record(record: JsonValue, limit: int, levels: int = 100) -> JsonValue:
    """A turn's record (start, step or end) in at most `limit` bytes of JSON, which must be
    `LEAST_RECORD` or more, and at most `levels` of nested objects and lists.
    """
    record = _visible(record)
    if _size(record) <= limit and not _deeper(record, levels):
        return record
    most, short = limit, record
    while most >= _LEAST_TEXT:
        short = _shortened(record, most, levels)
        cut = _cut_calls(short) if _arguments(short) != _arguments(record) else short
        size = _size(cut)
        if size <= limit:
            return cut
        most //= 2 if size < 8 * limit else 8
    items = limit
    while _size(cut) > limit and items > 1:
        items = max(items // 4, 1)
        few = f"the hub takes no more: at most {items} of each list are recorded"
        cut = _noted(_cut_calls(_first(short, items)), few)
    return cut


def within_limits(record: JsonValue, limits: LimitsInfo) -> JsonValue:
    """The record as a hub with these limits accepts it: two levels of the frame are around it."""
    return cut_record(record, limits.frame_bytes - ROOM, limits.json_depth - 2)


def without_cut_calls(step: Step) -> Step:
    """A recorded step for another process to continue: calls without a result that were not
    recorded in full cannot run any more, and get that as their result.
    """
    if not step.calls_cut:
        return step
    lost = {"result": failure("interrupted", _LOST), "error": "interrupted"}
    calls = (c if c.result is not None else c.model_copy(update=lost) for c in step.calls)
    return step.model_copy(update={"calls": tuple(calls)})


def excerpt(value: JsonValue, limit: int, levels: int) -> JsonValue:
    """The part of a JSON value that fits in `limit` bytes (64 or more) and `levels`, or a note."""
    size = _size(value)
    if size <= limit and not _deeper(value, levels):
        return value
    most = limit
    while most >= 4:
        short = _less(value, most, levels)
        if _size(short) <= limit:
            return short
        most //= 4
    return f"({size} bytes of JSON, left out)"


def _visible(value: JsonValue) -> JsonValue:
    """The value with characters that no frame can carry escaped."""
    if isinstance(value, str):
        return reveal(value) if _FLAW.search(value) else value
    if isinstance(value, list):
        return [_visible(item) for item in value]
    if isinstance(value, dict):
        return {str(_visible(key)): _visible(item) for key, item in value.items()}
    return value


def _shortened(value: JsonValue, most: int, levels: int) -> JsonValue:
    """Part of a record with texts of at most `most` characters."""
    if isinstance(value, str):
        return cut_in_the_middle(value, most)
    if isinstance(value, list):
        return [_shortened(item, most, levels - 1) for item in value]
    if isinstance(value, dict):
        return {
            key: (excerpt if key == "arguments" else _shortened)(item, most, levels - 1)
            for key, item in value.items()
        }
    return value


def _less(value: JsonValue, most: int, levels: int) -> JsonValue:
    """A JSON value with texts and keys of at most `most` characters, and at most `most` items."""
    if isinstance(value, str):
        return cut_in_the_middle(value, most)
    if not isinstance(value, list | dict):
        return value
    if levels == 0:
        return "(nested too deep, left out)"
    if isinstance(value, list):
        items = [_less(item, most, levels - 1) for item in value[:most]]
        left = len(value) - len(items)
        return [*items, f"… {left} more"] if left else items
    members = {
        cut_in_the_middle(key, most): _less(item, most, levels - 1)
        for key, item in islice(value.items(), most)
    }
    left = len(value) - len(members)  # two keys may have become the same
    return {**members, "…": f"{left} more"} if left else members


def _first(value: JsonValue, most: int) -> JsonValue:
    """Part of a record with at most `most` items in its lists."""
    if isinstance(value, list):
        return [_first(item, most) for item in value[:most]]
    if isinstance(value, dict):
        return {k: v if k == "arguments" else _first(v, most) for k, v in value.items()}
    return value


def _noted(record: JsonValue, note: str) -> JsonValue:
    if not isinstance(record, dict) or not isinstance(notes := record.get("notes"), list):
        return record
    return {**record, "notes": [*notes, note]}


def _cut_calls(record: JsonValue) -> JsonValue:
    if not isinstance(record, dict) or "calls" not in record:
        return record
    return {**record, "calls_cut": True}


def _arguments(record: JsonValue) -> list[JsonValue]:
    """The arguments of its calls."""
    calls = record.get("calls") if isinstance(record, dict) else None
    return [c["arguments"] for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []


def _size(value: JsonValue) -> int:
    """Bytes, as the client writes it."""
    return len(to_json(value))


def _deeper(value: JsonValue, levels: int) -> bool:
    """Whether objects and lists are nested deeper than `levels`."""
    if not isinstance(value, list | dict):
        return False
    if levels == 0:
        return True
    items = value if isinstance(value, list) else value.values()
    return any(_deeper(item, levels - 1) for item in items)
