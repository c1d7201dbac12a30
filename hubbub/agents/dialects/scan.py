"""Splits a model's text into thoughts, JSON values after a marker, and the rest.

Scans the text once from start to end, and never searches JSON values or thoughts for markers. So a
call that a model only considers, or that is quoted in a message, is never mistaken for a call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from hubbub.strict_json import STRICT, NotJson, whole

__all__ = [
    "MOST_CALLS",
    "AmbiguousText",
    "Marker",
    "bare_value",
    "read_value",
    "scan",
    "without_thoughts",
]

# JSON as models write it, at the start of a text. Accepted because unambiguous: line breaks and
# tabs inside strings, and commas before a closing bracket. Rejected because ambiguous or
# meaningless: duplicate keys, NaN and out-of-range numbers such as 1e999, and all other invalid
# JSON. Parsing takes linear time: at most one pass to parse and one to repair.


# Possessive, and a string can extend to the end, so that no character is visited twice.
_PIECE = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[{}\[\]]|,(?=\s*[}\]])', re.DOTALL)


def read_value(text: str, at: int = 0) -> tuple[JsonValue, int]:
    """The JSON value at position `at`, and its end. Raises `NotJson`."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError as exc:
        raise NotJson("it is nested too deep") from exc
    except json.JSONDecodeError as exc:
        return _repair(text, at, exc)


def _repair(text: str, at: int, error: json.JSONDecodeError) -> tuple[JsonValue, int]:
    """Parse without superfluous commas. Raises `NotJson` if that fails too."""
    pieces, end = _without_commas(text, at)
    try:
        value, _ = _DECODER.raw_decode("".join(pieces))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotJson(_describe(error, text, at)) from exc
    return value, end


def _without_commas(text: str, at: int) -> tuple[Sequence[str], int]:
    """The value at `at` up to its last bracket, split at superfluous commas."""
    pieces: list[str] = []
    begin, depth = at, 0
    for piece in _PIECE.finditer(text, at):
        match piece[0][0]:
            case "{" | "[":
                depth += 1
            case "}" | "]":
                depth -= 1
                if depth <= 0:
                    pieces.append(text[begin : piece.end()])
                    return pieces, piece.end()
            case ",":
                pieces.append(text[begin : piece.start()])
                begin = piece.end()
    return [*pieces, text[begin:]], len(text)


def _describe(error: json.JSONDecodeError, text: str, at: int) -> str:
    """The error with the text around its position."""
    around = text[max(at, error.pos - 20) : error.pos + 20]
    return f"it is no JSON: {error.msg} near {around!r}"


_DECODER = json.JSONDecoder(
    **STRICT,
    parse_int=whole,
    strict=False,
)


MOST_CALLS = 64
"""Maximum calls of one answer: more are a mistake, and would all run concurrently."""

_TAGS = "think|thinking|scratchpad"
_OPEN, _CLOSE = rf"(?P<open>(?i:<(?P<tag>{_TAGS})>))", rf"(?P<close>(?i:</(?:{_TAGS})>))"
_FENCE = re.compile(r"```\w{0,12}[ \t]{0,8}\n?")
_NEVER = re.compile(r"(?!)")


class AmbiguousText(Exception):
    """The text is ambiguous or invalid. The message addresses the model that wrote it."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Announces a JSON value. `pattern` ends where the value begins. `after` receives the text and
    the end of the value and returns the position to continue from, or raises `AmbiguousText`.
    """

    pattern: re.Pattern[str]
    after: Callable[[str, int], int]


@dataclass(slots=True)
class Scanned:
    """The parts of a text."""

    values: list[JsonValue] = field(default_factory=list)
    """The JSON values, in order."""
    text: str = ""
    """The text around them."""
    thoughts: str = ""


def without_thoughts(text: str) -> tuple[str, str]:
    """The text without its thoughts, and the thoughts."""
    scanned = scan(text, Marker(_NEVER, lambda _, end: end))
    return scanned.text, scanned.thoughts


def scan(text: str, marker: Marker) -> Scanned:
    """Scan the whole text. Raises `AmbiguousText` for an invalid or misplaced value."""
    pattern = re.compile(f"{_OPEN}|{_CLOSE}|(?P<mark>{marker.pattern.pattern})", re.MULTILINE)
    values: list[JsonValue] = []
    rest: list[str] = []
    thoughts: list[str] = []
    at = 0
    while (token := pattern.search(text, at)) is not None:
        rest.append(text[at : token.start()])
        at = token.end()
        match token.lastgroup:
            case "mark":
                value, end = _value(text, at)
                values.append(value)
                if len(values) > MOST_CALLS:
                    raise AmbiguousText(f"there are more than {MOST_CALLS} calls in it")
                at = marker.after(text, end)
            case "close":  # some chat templates open the first thought themselves
                if values:
                    raise AmbiguousText(f"{token[0]} stands after a call, without its beginning")
                thoughts += rest
                rest = []
            case _:
                thought, at = _thought(text, at, token["tag"])
                thoughts.append(thought)
    rest.append(text[at:])
    return Scanned(values, _clean("".join(rest)), "".join(thoughts).strip())


def bare_value(text: str) -> JsonValue:
    """The JSON object if it is the whole text, with or without a code fence; otherwise None."""
    bare = _FENCE.sub("", text.strip()).strip()
    if not bare.startswith("{"):
        return None
    try:
        value, end = read_value(bare)
    except NotJson:
        return None
    return value if end == len(bare) else None


def _value(text: str, at: int) -> tuple[JsonValue, int]:
    try:
        return read_value(text, at)
    except NotJson as exc:
        raise AmbiguousText(str(exc)) from exc


def _thought(text: str, at: int, tag: str) -> tuple[str, int]:
    """The thought that begins at `at`, and its end; an unclosed one ends with the text."""
    close = re.compile(f"</{tag}>", re.IGNORECASE).search(text, at)
    return (text[at:], len(text)) if close is None else (text[at : close.start()], close.end())


def _clean(text: str) -> str:
    """Remove the empty code fences that values leave behind."""
    return re.sub(r"```\w{0,12}\s*```", "", text).strip()
