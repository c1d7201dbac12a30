"""Scans a model's text for thoughts, JSON values behind a marker, and the rest.

The text is scanned once from start to end: neither the inside of a JSON value nor that of a thought
is searched for markers. So a call that a model only thinks of, or that a text to be sent contains,
is never taken for a call.
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

# JSON as models write it: a value at the start of a text. Accepted, because unambiguous: line
# breaks and tabs inside strings, and commas before a closing bracket. Refused, because ambiguous or
# meaningless: duplicate keys, numbers that are none (NaN, 1e999), and all other invalid JSON.
# Parsing takes linear time: at most one pass to parse and one to repair.


# Possessive, and a string may run to the end: so no place is visited twice.
_PIECE = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[{}\[\]]|,(?=\s*[}\]])', re.DOTALL)


def read_value(text: str, at: int = 0) -> tuple[JsonValue, int]:
    """The JSON value at `at`, and where it ends. Raises `NotJson`."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError as exc:
        raise NotJson("it is nested too deep") from exc
    except json.JSONDecodeError as exc:
        return _repaired(text, at, exc)


def _repaired(text: str, at: int, wrong: json.JSONDecodeError) -> tuple[JsonValue, int]:
    """The value without superfluous commas. Raises `NotJson` when that does not help."""
    pieces, end = _without_commas(text, at)
    try:
        value, _ = _DECODER.raw_decode("".join(pieces))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotJson(_words(wrong, text, at)) from exc
    return value, end


def _without_commas(text: str, at: int) -> tuple[Sequence[str], int]:
    """The value at `at`, up to its last bracket, in pieces between the superfluous commas."""
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


def _words(wrong: json.JSONDecodeError, text: str, at: int) -> str:
    """What is wrong, and where, with a few characters around the place."""
    around = text[max(at, wrong.pos - 20) : wrong.pos + 20]
    return f"it is no JSON: {wrong.msg} near {around!r}"


_DECODER = json.JSONDecoder(
    **STRICT,
    parse_int=whole,
    strict=False,
)


MOST_CALLS = 64
"""Maximum calls of one answer: more are a mistake, and would all run at the same time."""

_TAGS = "think|thinking|scratchpad"
_OPEN, _CLOSE = rf"(?P<open>(?i:<(?P<tag>{_TAGS})>))", rf"(?P<close>(?i:</(?:{_TAGS})>))"
_FENCE = re.compile(r"```\w{0,12}[ \t]{0,8}\n?")
_NEVER = re.compile(r"(?!)")


class AmbiguousText(Exception):
    """The text is ambiguous or invalid; the message is for the model that wrote it."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What announces a JSON value. `pattern` ends where the value begins; `after` gets the text and
    the end of the value and returns the position to continue from, or raises `AmbiguousText`.
    """

    pattern: re.Pattern[str]
    after: Callable[[str, int], int]


@dataclass(slots=True)
class Scanned:
    """The parts of a text."""

    values: list[JsonValue] = field(default_factory=list)
    """The JSON values, in order."""
    words: str = ""
    """The text around them."""
    thoughts: str = ""
    """The model's thoughts."""


def without_thoughts(text: str) -> tuple[str, str]:
    """The text without its thoughts, and the thoughts."""
    scanned = scan(text, Marker(_NEVER, lambda _, end: end))
    return scanned.words, scanned.thoughts


def scan(text: str, marker: Marker) -> Scanned:
    """Scan the whole text. Raises `AmbiguousText` when a value is invalid or misplaced."""
    token = re.compile(f"{_OPEN}|{_CLOSE}|(?P<mark>{marker.pattern.pattern})", re.MULTILINE)
    values: list[JsonValue] = []
    words: list[str] = []
    thoughts: list[str] = []
    at = 0
    while (found := token.search(text, at)) is not None:
        words.append(text[at : found.start()])
        at = found.end()
        match found.lastgroup:
            case "mark":
                value, end = _value(text, at)
                values.append(value)
                if len(values) > MOST_CALLS:
                    raise AmbiguousText(f"there are more than {MOST_CALLS} calls in it")
                at = marker.after(text, end)
            case "close":  # some chat templates open the first thought themselves
                if values:
                    raise AmbiguousText(f"{found[0]} stands after a call, without its beginning")
                thoughts += words
                words = []
            case _:
                thought, at = _thought(text, at, found["tag"])
                thoughts.append(thought)
    words.append(text[at:])
    return Scanned(values, _clean("".join(words)), "".join(thoughts).strip())


def bare_value(words: str) -> JsonValue:
    """The JSON object that is the whole text, in a code fence or not; None otherwise."""
    bare = _FENCE.sub("", words.strip()).strip()
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


def _clean(words: str) -> str:
    """Without the code fences that stood around values."""
    return re.sub(r"```\w{0,12}\s*```", "", words).strip()
