"""JSON as models write it: a value at the beginning of a text, with what may be forgiven.

Forgiven, because it can mean one thing only: line breaks and tabs inside texts, and commas before a
closing bracket. Refused, because it can mean several or nothing: a key given twice, numbers that
are none (NaN, 1e999), and everything else that is no JSON.

Reading takes time in proportion to the text: at most one pass to read and one to repair.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence

from pydantic import JsonValue

__all__ = ["NotJson", "finite", "no_constant", "read_value", "unique", "whole"]

# Possessive, and a text may run to the end: so no place is looked at twice.
_PIECE = re.compile(r'"(?:[^"\\]|\\.?)*+(?:"|\Z)|[{}\[\]]|,(?=\s*[}\]])', re.DOTALL)
_LONGEST_NUMBER = 400


class NotJson(ValueError):
    """What stands there is no JSON value; the text says what is wrong, for the one who wrote it."""


def read_value(text: str, at: int = 0) -> tuple[JsonValue, int]:
    """The JSON value at `at`, and where it ends. Raises `NotJson`."""
    try:
        return _DECODER.raw_decode(text, at)
    except RecursionError as exc:
        raise NotJson("it is nested too deep") from exc
    except json.JSONDecodeError as exc:
        return _repaired(text, at, exc)


def _repaired(text: str, at: int, wrong: json.JSONDecodeError) -> tuple[JsonValue, int]:
    """The value without its commas too many. Raises `NotJson` when that does not help either."""
    pieces, end = _without_commas(text, at)
    try:
        value, _ = _DECODER.raw_decode("".join(pieces))
    except (json.JSONDecodeError, RecursionError) as exc:
        raise NotJson(_words(wrong, text, at)) from exc
    return value, end


def _without_commas(text: str, at: int) -> tuple[Sequence[str], int]:
    """The value at `at`, up to its last bracket, in pieces between the commas too many."""
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
    """What is wrong, and where: with a few characters around the place."""
    around = text[max(at, wrong.pos - 20) : wrong.pos + 20]
    return f"it is no JSON: {wrong.msg} near {around!r}"


# What `json` calls for parts of a value; all raise `NotJson`.


def unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """An object of these keys and values, of which no key may come twice."""
    made: dict[str, JsonValue] = {}
    for key, value in pairs:
        if key in made:
            raise NotJson(f"the key {key[:60]!r} is given twice")
        made[key] = value
    return made


def finite(text: str) -> float:
    """A number with a fraction or an exponent; not 1e999."""
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"{text[:20]} is too large a number")
    return number


def whole(text: str) -> int:
    """A number without either."""
    if len(text) > _LONGEST_NUMBER:
        raise NotJson("a number is too long")
    return int(text)


def no_constant(text: str) -> float:
    """Refuses NaN and the infinities."""
    raise NotJson(f"{text} is no JSON number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=unique,
    parse_float=finite,
    parse_int=whole,
    parse_constant=no_constant,
    strict=False,
)
