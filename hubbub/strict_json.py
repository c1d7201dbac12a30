"""Strict JSON: every key appears once, and numbers are finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypedDict

__all__ = ["STRICT", "NotJson", "finite", "no_constant", "outside_texts", "unique", "whole"]

LONGEST_NUMBER = 400


class NotJson(ValueError):
    """The text is not valid JSON; the message is for its author."""


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of these keys and values. Any, as the values are JSON."""
    members = dict(pairs)
    if len(members) != len(pairs):
        seen = set[str]()
        for key, _ in pairs:
            if key in seen:
                raise NotJson(f"the key {key[:60]!r} is given twice")
            seen.add(key)
    return members


def finite(text: str) -> float:
    """A number with a fraction or an exponent, within range (not 1e999)."""
    number = float(text)
    if not math.isfinite(number):
        raise NotJson(f"the number {text[:60]!r} is too large")
    return number


def whole(text: str) -> int:
    """An integer, with a limited length, as parsing long ones is slow."""
    if len(text) > LONGEST_NUMBER:
        raise NotJson("a number is too long")
    return int(text)


def no_constant(text: str) -> float:
    raise NotJson(f"{text} is not a JSON number")


class _Hooks(TypedDict):
    object_pairs_hook: Callable[[list[tuple[str, Any]]], dict[str, Any]]
    parse_float: Callable[[str], float]
    parse_constant: Callable[[str], float]


STRICT: _Hooks = {
    "object_pairs_hook": unique,
    "parse_float": finite,
    "parse_constant": no_constant,
}
"""Arguments for `json.loads` and decoders, which then raise `NotJson`."""


def outside_texts(data: bytes) -> bytes:
    """JSON without its texts and keys, so that its brackets and commas can be counted."""
    plain = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(plain.split(b'"')[::2])
