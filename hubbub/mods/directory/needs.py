"""Who fits a need: which of its words stand in whose card. Pure.

A word counts for more the fewer cards have it, and twice as much among skills, or as a name.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hubbub.mods.searching import MOST_WORDS, folded, indexable, tokens

__all__ = ["Fit", "Match", "fits", "keywords", "queries"]

COMMON = frozenset(
    tokens(
        "a an and any anybody anyone are as at be by can could do does for from get give have help "
        "i in into is it me my need of on or our please should somebody someone something that the "
        "this to us use want we what who whose will with would you your"
    )
)
"""Words that say nothing about a need."""
STRONG = 2.0
"""What a word counts among skills, or as a name."""


class Match(NamedTuple):
    """A word stands in a card."""

    word: int
    participant: str
    strong: bool
    """Whether among its skills, or as its name."""


class Fit(NamedTuple):
    participant: str
    score: float
    why: tuple[str, ...]
    """The words that stand in its card, in the order of the need."""


def keywords(need: str) -> Sequence[str]:
    """The words of a need that say what it is; all words, if none does."""
    all_words = list(dict.fromkeys(map(folded, tokens(need))))
    return ([word for word in all_words if word not in COMMON] or all_words)[:MOST_WORDS]


def queries(words: Sequence[str]) -> Sequence[str]:
    """For MATCH: each word anywhere, then each among skills or as a name."""
    quoted = [f'"{indexable(word).strip()}"' for word in words]
    return [*quoted, *(f"{{name skills}} : {word}" for word in quoted)]


def fits(words: Sequence[str], matches: Iterable[Match], cards: int) -> Sequence[Fit]:
    """All who fit, best first; `cards` is how many there are."""
    weights: dict[int, dict[str, float]] = defaultdict(dict)
    for match in matches:
        found = weights[match.word]
        weight = STRONG if match.strong else 1.0
        found[match.participant] = max(weight, found.get(match.participant, 0.0))
    scores: dict[str, float] = defaultdict(float)
    why: dict[str, list[str]] = defaultdict(list)
    for word in sorted(weights):
        rare = 1.0 + math.log(max(cards, 1) / len(weights[word]))
        for participant, weight in weights[word].items():
            scores[participant] += weight * max(rare, 1.0)
            why[participant].append(words[word])
    best = sorted(scores, key=lambda participant: (-scores[participant], participant))
    return [Fit(each, scores[each], tuple(why[each])) for each in best]
