"""Regular expressions of users, which must not hold up the hub.

A pattern that goes through all ways to divide a text takes longer than anybody lives. The standard
library cannot be told to give up, except by a signal in the main thread; `regex`, which is there
anyway for counting tokens, takes a time limit and keeps it to a millisecond, wherever it runs.
What takes long when it is read in, counted repetitions within each other, is refused beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Annotated

import regex
from pydantic import AfterValidator, Field

from hubbub.config.units import wrong

__all__ = ["Pattern", "Slow", "compiled", "found"]

MOST_REPEATED = 5000
"""How often counted repetitions within each other may repeat something, multiplied."""

_COUNT = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_LOOSE = regex.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\s+|#[^\n]*", regex.DOTALL)
"""Blanks and comments, which mean nothing under (?x); the group is what keeps them."""


class Slow(Exception):
    """A search was given up because its time was over."""


def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises what pydantic takes for a mistake of the user."""
    if max(_repeated(pattern), _repeated(_LOOSE.sub(r"\1", pattern))) > MOST_REPEATED:
        raise wrong(
            "its counted repetitions within each other repeat something more than "
            f"{MOST_REPEATED} times"
        )
    try:
        made = regex.compile(pattern)
        empty = made.search("", timeout=1.0) is not None
    except regex.error as error:
        raise wrong(f"no regular expression: {error}") from error
    except (RecursionError, TimeoutError, OverflowError, MemoryError):
        raise wrong("too complicated a regular expression") from None
    if empty:
        raise wrong("matches the empty text, and so every message")
    return made


def _checked(pattern: str) -> str:
    compiled(pattern)
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_checked)]


def _repeated(pattern: str) -> int:
    """The most often that a part of the pattern is repeated by counts around it."""
    inner = [1]
    """For each group that is open: the most often that something in it is repeated."""
    last, at = 1, 0
    while at < len(pattern):
        character = pattern[at]
        count = _COUNT.match(pattern, at)
        step = 2 if character == "\\" else _class_length(pattern, at) if character == "[" else 1
        if count is not None:
            numbers = [int(n) for n in count.groups() if n]
            last *= max([1, *numbers])
            step = count.end() - at
        elif character == ")" and len(inner) > 1:
            last = inner.pop()
        else:
            last = 1
        if character == "(":
            inner.append(1)
        inner[-1] = max(inner[-1], last)
        at += step
    return max(inner)


def _class_length(pattern: str, at: int) -> int:
    """Of a set of characters: `[^])}]`."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


def found(pattern: regex.Pattern[str], text: str, within: float) -> Iterator[tuple[int, int]]:
    """The places where it matches. Raises `Slow` if finding them takes more than `within` s."""
    until = monotonic() + within
    if within <= 0:
        raise Slow
    try:
        # Concurrently: other threads go on meanwhile, the hub's loop if this is not its own.
        for match in pattern.finditer(text, timeout=within, concurrent=True):
            yield match.span()
            if monotonic() > until:  # many matches, each of which took a while
                raise Slow
    except TimeoutError:
        raise Slow from None
