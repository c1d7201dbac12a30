"""Text as rules look at it: what only looks different is the same, and each place is remembered.

Two forms. The plain one undoes what a reader does not see: characters without a width, stacked
marks, compatibility forms (full width, styled letters). The folded one also ignores case and takes
letters of other scripts for the Latin ones that they look like; but only where they stand among
Latin letters, or where nothing else in the text is of their script, so that Russian and Greek texts
are not read as English.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex

__all__ = ["Form", "Span", "caseless", "folded", "joined", "plain", "replaced"]

Span = tuple[int, int]
"""Where something stands in the original text: first character, and the one after the last."""

_STACKED = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
"""Marks that any letter takes. Those of a script, such as vowels of Hindi, are no decoration."""
_UNSEEN = regex.compile(rf"\p{{Cf}}|{_STACKED.pattern}")
_CLUSTER = re.compile(rf".{_STACKED.pattern}*", re.DOTALL)
_WORD = re.compile(r"\w+")
_LATIN = re.compile("[a-z]")
_LIKE_LATIN = {
    "CYRILLIC": dict(zip("авгеікмнорсѕтухцһјԁԛԝьѵӏ", "abreikmhopcstyxuhjdqwbvl", strict=True)),
    "GREEK": dict(zip("αβγεηικνορτυχωϲϳ", "abyenikvoptuxwcj", strict=True)),
}
"""By script: letters, in lower case, and the Latin ones that they are mistaken for. After the
confusables of Unicode's UTS #39, as far as they are letters of living alphabets."""


@dataclass(frozen=True, slots=True)
class Form:
    """A text in another form."""

    text: str
    origins: Sequence[int]
    """For each character, and for the end: where in the original it begins."""

    def span(self, start: int, end: int) -> Span:
        """Where the part stands in the original."""
        return self.origins[start], self.origins[end]


def plain(text: str) -> Form:
    """The text without what a reader does not see."""
    if text.isascii() or _is_plain(text):
        return Form(text, range(len(text) + 1))
    made: list[str] = []
    origins: list[int] = []
    for match in _CLUSTER.finditer(text):
        shown = _shown(match[0])
        made.append(shown)
        origins += [match.start()] * len(shown)
    return Form("".join(made), [*origins, len(text)])


def _is_plain(text: str) -> bool:
    """Whether a reader sees every character of it, as it stands."""
    return unicodedata.is_normalized("NFKC", text) and _UNSEEN.search(text) is None


def _shown(cluster: str) -> str:
    """A letter with its marks as one character where there is one, else without them."""
    if len(cluster) == 1 and cluster.isascii():
        return cluster
    return _seen(cluster) if len(cluster) <= _SHORT else _without_marks(cluster)


def _without_marks(cluster: str) -> str:
    composed = _STACKED.sub("", unicodedata.normalize("NFKC", cluster))
    return "".join(c for c in composed if unicodedata.category(c) != "Cf")


_SHORT = 4
"""Characters of clusters that are remembered: a text has the same ones again and again."""
_seen = lru_cache(maxsize=4096)(_without_marks)


def caseless(form: Form) -> Form:
    """A plain form without case."""
    if form.text.isascii():
        return Form(form.text.lower(), form.origins)
    made: list[str] = []
    origins: list[int] = []
    for character, origin in zip(form.text, form.origins, strict=False):
        small = character.casefold()
        made.append(small)
        origins += [origin] * len(small)
    return Form("".join(made), [*origins, form.origins[-1]])


def folded(form: Form) -> Form:
    """A form without case, with Latin letters for those that look like them."""
    return Form(_latin(form.text), form.origins)


def _latin(text: str) -> str:
    for script, likes in _LIKE_LATIN.items():
        letters = {c for c in set(text) if unicodedata.name(c, "").startswith(script)}
        if letters:
            foreign = bool(letters - likes.keys())  # somebody writes in this script
            table = str.maketrans(likes)
            text = _WORD.sub(lambda match: _word(match[0], table, foreign), text)  # noqa: B023
    return text


def _word(word: str, table: dict[int, str], foreign: bool) -> str:
    return word if foreign and not _LATIN.search(word) else word.translate(table)


def joined(spans: Iterable[Span]) -> list[Span]:
    """The same places in their order, those that overlap as one; empty ones left out."""
    made: list[Span] = []
    for start, end in sorted(spans):
        if start < end:
            if made and start < made[-1][1]:
                made[-1] = made[-1][0], max(end, made[-1][1])
            else:
                made.append((start, end))
    return made


def replaced(text: str, spans: Iterable[Span], by: str | None) -> str:
    """The text with `by` in these places; None: asterisks, as many as there were characters."""
    made: list[str] = []
    done = 0
    for start, end in joined(spans):
        made += [text[done:start], "*" * (end - start) if by is None else by]
        done = end
    return "".join(made) + text[done:]
