"""Common text helpers: suggestions for misspelled names, and shortened text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["alternatives", "cut_in_the_middle", "dashed", "did_you_mean", "near", "shortened"]

MAX_COMPARED = 200
"""Names that are compared; of more, only those with the same beginning, as comparing is slow."""
LONGEST = 64
"""Compared characters of a name."""


def near(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> Sequence[str]:
    """The names similar to `name`, best match first, ignoring case. `cutoff` is the required
    similarity, from 0 to 1."""
    from difflib import get_close_matches  # slow to import, and rarely needed

    sought = name[:LONGEST].casefold()
    folded = {known[:LONGEST].casefold(): known for known in names}
    if len(folded) > MAX_COMPARED:
        alike = [each for each in folded.items() if each[0][:2] == sought[:2]]
        folded = dict(alike[:MAX_COMPARED])
    return [folded[each] for each in get_close_matches(sought, folded, most, cutoff)]


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The end of an error about a wrong name: `; did you mean x?`, or `otherwise`."""
    similar = near(name, names)
    return f"; did you mean {similar[0]}?" if similar else otherwise


def alternatives(names: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return " or ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def shortened(text: str, most: int) -> str:
    """The text, cut to at most `most` characters with an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_in_the_middle(text: str, most: int) -> str:
    """The text, or the beginning and end of a longer one, `most` characters in all."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"


def dashed(name: str) -> str:
    """The name of an agent from that of its class: `WordCounter` becomes `word-counter`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().strip("_")
