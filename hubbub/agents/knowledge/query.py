"""What somebody looks for, as an expression of SQLite's FTS5. Pure: any text has a meaning.

refund lamp          passages with one of the words; the more and the rarer, the higher
"damaged goods"      passages with these words in this order, whatever else is looked for
refund*              words that begin so
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

__all__ = ["MOST_TERMS", "Query", "parse", "spaced"]

MOST_TERMS = 48
"""Words and phrases of a query; what comes after them is left out."""
_MOST_TEXT = 4000
"""Characters of a query."""
_SHORTEST_BEGINNING = 3
"""Letters with which words may begin that nobody has asked for by a `*`."""

_PART = re.compile(r'"(?P<phrase>[^"]*)"?|(?P<word>[^\s"]+)')
# Kana, Han and Hangul: written without spaces, so that each character is a word of its own.
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]")


class Query(NamedTuple):
    """The two ways to look for a text."""

    exact: str
    """What it says. Empty: there is no word in it."""
    wider: str
    """For when that finds nothing: words that begin like those of the text, in any order."""


class _Term(NamedTuple):
    text: str
    prefix: bool = False

    def __str__(self) -> str:
        return f'"{self.text}"*' if self.prefix else f'"{self.text}"'


def spaced(text: str) -> str:
    """The text as it is indexed: spaces between the characters of scripts that have none, and
    letters with their accents as one character."""
    whole = text if text.isascii() else unicodedata.normalize("NFC", text)
    return _UNSPACED.sub(lambda match: f" {match[0]} ", whole)


def parse(text: str) -> Query:
    """What `text` looks for."""
    phrases, words = _terms(text)
    exact = _any(words)
    if phrases:
        needed = "(" + " AND ".join(map(str, phrases)) + ")"
        exact = f"{needed} OR ({needed} AND ({exact}))" if words else needed
    single = [word for term in (*phrases, *words) for word in term.text.split()]
    begun = [_Term(word, len(word) >= _SHORTEST_BEGINNING) for word in single]
    return Query(exact, _any(list(dict.fromkeys(begun))[:MOST_TERMS]))


def _any(terms: Sequence[_Term]) -> str:
    return " OR ".join(map(str, terms))


def _terms(text: str) -> tuple[list[_Term], list[_Term]]:
    """The phrases in quotes, and the words, each once."""
    phrases: dict[_Term, None] = {}
    words: dict[_Term, None] = {}
    for quoted, term in _parts(text):
        (phrases if quoted else words)[term] = None
        if len(phrases) + len(words) == MOST_TERMS:
            break
    return list(phrases), list(words)


def _parts(text: str) -> Iterator[tuple[bool, _Term]]:
    for match in _PART.finditer(text[:_MOST_TEXT]):
        phrase = match["phrase"]
        words = _words(match["word"] if phrase is None else phrase)
        if words:
            begun = phrase is None and match["word"].endswith("*")
            yield phrase is not None, _Term(" ".join(words), begun)


def _words(text: str) -> list[str]:
    """The parts of a text that the index knows as words: letters and digits."""
    letters = "".join(c if c.isalnum() else " " for c in spaced(text))
    return letters.split()
