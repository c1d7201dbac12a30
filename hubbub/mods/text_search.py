"""Search queries as typed by people, and the interface for mods with searchable items.

A mod with searchable items (documents, files) has its own full-text table and is a `Searchable`.
The mod `search` queries all of them and merges the hits. Create tables like this:

    CREATE VIRTUAL TABLE notes_text USING fts5(title, text,
        tokenize = "unicode61 remove_diacritics 2");

Pass texts through `indexable` before writing them, and use `Words.match` as the argument of MATCH.
It never has syntax errors, whatever the user types.

    budget report         both words, in any order
    "annual report"       these words in this order
    -draft -"old plan"    excluded
    transl*               words with this prefix
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
"""Maximum length of a query in characters."""
MOST_WORDS = 20
"""Maximum number of words and phrases in a query."""
SNIPPET = 200
"""Length of a snippet in characters."""
SEARCHED = 200_000
"""Characters of a text searched for the snippet. Without a match there, the beginning is shown."""
SHORT_TEXT = 5_000
"""Characters of a text that is searched without a thread."""


class SearchHit(NamedTuple):
    """An item that matches a query."""

    kind: Findable
    id: str
    """Id of the message (m42), document (d7) or file."""
    thread: str
    """Canonical id of its thread."""
    by: str
    at: float
    """Seconds since the epoch."""
    snippet: str
    """The text around the match, from `Words.snippet`."""
    title: str
    score: float
    """The rank, higher is better: `-bm25(table)`."""
    untrusted: bool = False
    """Whether it carries content from outside the network."""


@dataclass(frozen=True, slots=True)
class SearchQuery:
    """A query, and the threads that its author can read."""

    words: Words
    threads: Sequence[str]
    """Canonical ids of the threads to search, all of which the caller can read. A statement takes
    them as JSON: `thread IN (SELECT value FROM json_each(?))`."""
    by: str | None
    """Only items by this participant."""
    after: float | None
    """Only items from this time on, in seconds since the epoch."""
    before: float | None
    """Only items before this time."""
    skip: int
    """Number of best hits to skip, because they were returned before."""
    limit: int
    """Maximum number of hits."""

    def conditions(self, by: str, at: str) -> tuple[str, Sequence[str | float]]:
        """SQL conditions for `by`, `after` and `before` on these columns, each preceded by AND, and
        their values."""
        filters = ((f"{by} = ?", self.by), (f"{at} >= ?", self.after), (f"{at} < ?", self.before))
        given = [(sql, value) for sql, value in filters if value is not None]
        return "".join(f" AND {sql}" for sql, _ in given), [value for _, value in given]


@runtime_checkable
class Searchable(Protocol):
    """A mod with items that can be searched by text."""

    finds: ClassVar[Findable]

    async def found(self, search: SearchQuery) -> Sequence[SearchHit]:
        """The hits, best first. Ties must have a stable order."""
        ...


# The words of a query -------------------------------------------------------------------------


class Word(NamedTuple):
    """One word or phrase of a query."""

    text: str
    prefix: bool
    """Whether it matches words with this prefix."""
    excluded: bool

    @property
    def quoted(self) -> str:
        """As a quoted string of FTS5's query language."""
        text = self._string(indexable(self.text))
        # A text that was indexed before indexes had no accents has the word as it is.
        return text if self.text.isascii() else f"({text} OR {self._string(self.text)})"

    def _string(self, text: str) -> str:
        return f'"{text.translate(_NOT_IN_STRING)}"{"*" * self.prefix}'


@dataclass(frozen=True, slots=True)
class Words:
    """A parsed query."""

    wanted: tuple[Word, ...]
    excluded: tuple[Word, ...]

    @property
    def match(self) -> str:
        """For MATCH: all wanted words, and none of the excluded."""
        match = " AND ".join(word.quoted for word in self.wanted)
        if self.excluded:
            match = f"({match}) NOT ({' OR '.join(word.quoted for word in self.excluded)})"
        return match

    @property
    def any(self) -> str:
        """For MATCH: at least one of the wanted words."""
        return " OR ".join(word.quoted for word in self.wanted)

    def snippet(self, text: str) -> str:
        """A piece of the text in one line, starting shortly before the first wanted word."""
        at = next(self._places(text), 0)
        start = max(0, at - SNIPPET // 4)
        if start:  # start at a word if there is a space nearby
            space = text.find(" ", start, at)
            start = space + 1 if space >= 0 else start
        piece = " ".join(text[start : start + SNIPPET * 2].split())
        short = piece if len(piece) <= SNIPPET else f"{piece[: SNIPPET - 1].rstrip()}…"
        cut = len(piece) <= SNIPPET and start + SNIPPET * 2 < len(text)
        return f"{'…' if start else ''}{short}{'…' if cut else ''}"

    def _places(self, text: str) -> Iterator[int]:
        wanted = [(folded(tokens(w.text)[0]), w) for w in self.wanted]
        for match in _TOKEN.finditer(text, 0, SEARCHED):
            token = folded(match[0])
            for first, word in wanted:
                begins = word.prefix and len(tokens(word.text)) == 1
                if token.startswith(first) if begins else token == first:
                    yield match.start()


_UNSPACED = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303b\u3040-\u30ff"
    "\u3105-\u312f\u3131-\u318e\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f"
    "\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f\U0001b000-\U0001b16f\U00020000-\U0003ffff"
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u1000-\u102a"
    "\u1780-\u17b3"
)
"""Letters of Chinese, Japanese and Korean, then of Thai, Lao, Burmese and Khmer, which are often
written without spaces."""
_LETTERS = re.compile(f"[{_UNSPACED}]+")
_RUN = re.compile(f"(?P<letters>[{_UNSPACED}]+)|[^{_UNSPACED}]+")
_TOKEN = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
"""A token, as in FTS5."""
_PART = re.compile(r'(?P<no>-?)(?:"(?P<phrase>[^"]*)(?:"|\Z)|(?P<word>[^\s"]+))')
_NOT_IN_STRING = str.maketrans('"\0', "  ")
"""Characters that would end a string of FTS5."""
_QUOTES = str.maketrans("“”„«»", '"""""')
SHORTEST_PREFIX = 2
"""Minimum number of letters before a `*`. Fewer would match nearly everything."""


def indexable(text: str) -> str:
    """The text for the index: without accents, which FTS5 ignores only on Latin letters, and with
    separate letters in languages without spaces, so that any part of such a text can be found as a
    phrase."""
    if text.isascii():
        return text
    return _RUN.sub(_indexable_run, unicodedata.normalize("NFC", text))


def _indexable_run(run: re.Match[str]) -> str:
    return folded(run[0]) if run["letters"] is None else f" {' '.join(run['letters'])} "


async def snippet_of(words: Words, text: str) -> str:
    """`Words.snippet` for texts of any length, without blocking the event loop."""
    if len(text) <= SHORT_TEXT:
        return words.snippet(text)
    return await asyncio.to_thread(words.snippet, text)


def tokens(text: str) -> list[str]:
    """The tokens of a text."""
    return _TOKEN.findall(text)


def folded(token: str) -> str:
    """The token without case and accents."""
    if token.isascii():
        return token.lower()
    letters = unicodedata.normalize("NFKD", token.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def words_of(query: str) -> Words:
    """Parse a query. Raises `OperationError` (`bad_request`) if it has no word to search for, or
    too many."""
    words = [word for word in map(_word, _PART.finditer(query.translate(_QUOTES))) if word]
    wanted = tuple(word for word in words if not word.excluded)
    if not wanted:
        raise bad_request(
            "query: needs a word to search for" + (" besides excluded ones" * bool(words))
        )
    if len(words) > MOST_WORDS:
        raise bad_request(f"query: has {len(words)} words and phrases; the limit is {MOST_WORDS}")
    for word in words:
        if word.prefix and len(tokens(word.text)[-1]) < SHORTEST_PREFIX:
            raise bad_request(
                f"query: {word.text}* needs at least {SHORTEST_PREFIX} letters before the *"
            )
    return Words(wanted, tuple(word for word in words if word.excluded))


def _word(part: re.Match[str]) -> Word | None:
    text = part["word"] if part["phrase"] is None else part["phrase"]
    parts = tokens(text)
    if not parts:
        return None
    prefix = part["phrase"] is None and text.endswith("*") and not _LETTERS.match(parts[-1])
    return Word(text.removesuffix("*") if prefix else text, prefix, bool(part["no"]))
