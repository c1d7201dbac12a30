"""What people type into a search field, and mods whose things can be searched.

A mod with things to be found (documents, files) keeps a full-text table of its own and is a
`Searchable`; the mod `search` asks all of them and merges what they find. Tables are made so:

    CREATE VIRTUAL TABLE notes_text USING fts5(title, text,
        tokenize = "unicode61 remove_diacritics 2");

What is written into them passes `indexable` first, and `Words.match` is what MATCH is given: it
has no syntax errors, whatever somebody types.

    budget report         both words must be there, in any order
    "annual report"       these words in this order
    -draft -"old plan"    not that
    transl*               words that begin so
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from hubbub.mods.operation import bad_request

__all__ = [
    "LONGEST_QUERY",
    "MOST_WORDS",
    "Findable",
    "SearchHit",
    "SearchQuery",
    "Searchable",
    "Words",
    "folded",
    "indexable",
    "snippet_of",
    "tokens",
    "words_of",
]

Findable = Literal["messages", "documents", "files"]

LONGEST_QUERY = 500
"""Characters."""
MOST_WORDS = 20
"""Words and phrases of one query."""
SNIPPET = 200
"""Characters of a piece of text that shows where the words stand."""
LOOKED_AT = 200_000
"""Characters of a text in which that place is looked for; behind it, the text's beginning is shown.
"""
SHORT_TEXT = 5_000
"""Characters of a text that is looked through at once."""


class SearchHit(NamedTuple):
    """Something that was found."""

    kind: Findable
    id: str
    """Of the message (m42), the document (d7) or the file."""
    thread: str
    """Canonical id of the thread that it belongs to."""
    by: str
    at: float
    """Seconds since the epoch."""
    snippet: str
    """Where the words stand in it: `Words.snippet` makes it."""
    title: str
    score: float
    """How well it fits, higher is better: `-bm25(table)`."""
    outside: bool = False
    """Whether it carries content from outside the network."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """What is looked for, and where its asker may look."""

    words: Words
    threads: Sequence[str]
    """Canonical ids of the threads to look in: all of them are the asker's to read. A statement
    takes them as JSON: `thread IN (SELECT value FROM json_each(?))`."""
    by: str | None
    """Only what this participant has said, written or brought."""
    after: float | None
    """Only what is from this time on, seconds since the epoch."""
    before: float | None
    """Only what is from before this time."""
    skip: int
    """So many of the best hits were given before."""
    limit: int
    """How many at most."""

    def conditions(self, by: str, at: str) -> tuple[str, Sequence[str | float]]:
        """What `by`, `after` and `before` ask of these columns: conditions, each with AND before
        it, and their values."""
        asked = ((f"{by} = ?", self.by), (f"{at} >= ?", self.after), (f"{at} < ?", self.before))
        given = [(sql, value) for sql, value in asked if value is not None]
        return "".join(f" AND {sql}" for sql, _ in given), [value for _, value in given]


@runtime_checkable
class Searchable(Protocol):
    """A mod whose things can be searched by their text."""

    finds: ClassVar[Findable]

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """The best hits first; equal ones in an order that stays."""
        ...


# The words of a query -------------------------------------------------------------------------


class Word(NamedTuple):
    """One word or phrase of a query."""

    text: str
    prefix: bool
    """Whether words that begin so are meant."""
    excluded: bool

    @property
    def quoted(self) -> str:
        """As a string of FTS5's query language, which nothing can end early."""
        text = indexable(self.text).translate(_ENDS)
        return f'"{text}"*' if self.prefix else f'"{text}"'


@dataclass(frozen=True, slots=True)
class Words:
    """A query, understood."""

    wanted: tuple[Word, ...]
    excluded: tuple[Word, ...]

    @property
    def match(self) -> str:
        """For MATCH: all wanted ones, and none of the excluded."""
        match = " AND ".join(word.quoted for word in self.wanted)
        if self.excluded:
            match = f"({match}) NOT ({' OR '.join(word.quoted for word in self.excluded)})"
        return match

    @property
    def any(self) -> str:
        """For MATCH: at least one of those that are wanted."""
        return " OR ".join(word.quoted for word in self.wanted)

    def snippet(self, text: str) -> str:
        """A piece of the text, in one line, from a little before the first place where a wanted
        word stands."""
        at = next(self._places(text), 0)
        start = max(0, at - SNIPPET // 4)
        if start:  # not in the middle of a word, if one ends nearby
            space = text.find(" ", start, at)
            start = space + 1 if space >= 0 else start
        piece = " ".join(text[start : start + SNIPPET * 2].split())
        short = piece if len(piece) <= SNIPPET else f"{piece[: SNIPPET - 1].rstrip()}…"
        cut = len(piece) <= SNIPPET and start + SNIPPET * 2 < len(text)
        return f"{'…' if start else ''}{short}{'…' if cut else ''}"

    def _places(self, text: str) -> Iterator[int]:
        wanted = [(folded(tokens(w.text)[0]), w) for w in self.wanted]
        for found in _TOKEN.finditer(text, 0, LOOKED_AT):
            token = folded(found[0])
            for first, word in wanted:
                begins = word.prefix and len(tokens(word.text)) == 1
                if token.startswith(first) if begins else token == first:
                    yield found.start()


_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Letters of Chinese, Japanese and Korean, which write many words without spaces."""
_LETTERS = re.compile(f"[{_CJK}]+")
_TOKEN = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
"""What the tokenizer sees as one word."""
_PART = re.compile(r'(?P<no>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')
_ENDS = str.maketrans('"\0', "  ")
"""What ends a string of FTS5."""
_QUOTES = str.maketrans("“”„«»", '"""""')
SHORTEST_PREFIX = 2
"""Letters before a `*`: fewer would mean nearly everything."""


def indexable(text: str) -> str:
    """The text as the tokenizer takes it: letters of languages without spaces one by one, so that
    any part of such a text is a phrase that can be found."""
    return text if text.isascii() else _LETTERS.sub(_apart, text)


def _apart(found: re.Match[str]) -> str:
    return f" {' '.join(found[0])} "


async def snippet_of(words: Words, text: str) -> str:
    """`Words.snippet`, of texts of any length: long ones hold the hub up in no step."""
    if len(text) <= SHORT_TEXT:
        return words.snippet(text)
    return await asyncio.to_thread(words.snippet, text)


def tokens(text: str) -> list[str]:
    """The words of a text, as the tokenizer sees them."""
    return _TOKEN.findall(text)


def folded(token: str) -> str:
    """Without case and accents."""
    if token.isascii():
        return token.lower()
    letters = unicodedata.normalize("NFKD", token.lower())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def words_of(query: str) -> Words:
    """Understand what somebody typed. Raises `OperationError` (`bad_request`) if there is no word
    to look for in it, or too many."""
    found = [word for word in map(_word, _PART.finditer(query.translate(_QUOTES))) if word]
    wanted = tuple(word for word in found if not word.excluded)
    if not wanted:
        raise bad_request(
            "query: needs a word to look for" + (", not only some to leave out" * bool(found))
        )
    if len(found) > MOST_WORDS:
        raise bad_request(f"query: at most {MOST_WORDS} words and phrases, this has {len(found)}")
    for word in found:
        if word.prefix and len(tokens(word.text)[-1]) < SHORTEST_PREFIX:
            raise bad_request(
                f"query: {word.text}* needs at least {SHORTEST_PREFIX} letters before the *"
            )
    return Words(wanted, tuple(word for word in found if word.excluded))


def _word(part: re.Match[str]) -> Word | None:
    text = part["word"] if part["phrase"] is None else part["phrase"]
    found = tokens(text)
    if not found:
        return None
    prefix = part["phrase"] is None and text.endswith("*") and not _LETTERS.match(found[-1])
    return Word(text.removesuffix("*") if prefix else text, prefix, bool(part["no"]))
