"""Parts of sentences that many say: which name was probably meant, and a text cut short."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["cut_in_the_middle", "dashed", "did_you_mean", "near", "shortened"]

MOST_COMPARED = 200
"""Among more names only those count that begin in the same way: comparing takes long."""
LONGEST = 64
"""Characters of a name that are compared."""


def near(name: str, names: Iterable[str], most: int = 1, cutoff: float = 0.6) -> Sequence[str]:
    """Those of the names that `name` probably means, the likeliest first; upper and lower case are
    the same. `cutoff`: how much alike they must be, from 0 to 1."""
    from difflib import get_close_matches  # few programs come here: it takes a while to load

    sought = name[:LONGEST].casefold()
    folded = {known[:LONGEST].casefold(): known for known in names}
    if len(folded) > MOST_COMPARED:
        alike = [each for each in folded.items() if each[0][:2] == sought[:2]]
        folded = dict(alike[:MOST_COMPARED])
    return [folded[each] for each in get_close_matches(sought, folded, most, cutoff)]


def did_you_mean(name: str, names: Iterable[str], otherwise: str = "") -> str:
    """The end of a sentence about a wrong name: `; did you mean x?`, or the words `otherwise`."""
    found = near(name, names)
    return f"; did you mean {found[0]}?" if found else otherwise


def shortened(text: str, most: int) -> str:
    """The text, of at most so many characters; an ellipsis ends it where there were more."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_in_the_middle(text: str, most: int) -> str:
    """The text; of a longer one than `most` characters that many, from its beginning and end."""
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"


def dashed(name: str) -> str:
    """The name of a class as that of an agent: `WordCounter` is `word-counter`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower().strip("_")
