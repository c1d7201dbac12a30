"""Reads a folder of Markdown for search: passages of text, and facts from tables.

In a table the first column is a subject and each heading an attribute, its unit in parentheses:

    | Planet  | Diameter (km) |
    |---------|---------------|
    | Jupiter | 142,984       |

means that the diameter of Jupiter is 142,984 km.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "Fact",
    "Page",
    "Passage",
    "find_fact",
    "measured",
    "read_folder",
    "read_page",
    "words_of",
]


@dataclass(frozen=True)
class Passage:
    """A paragraph, list or table under a heading. `source` is the file's name."""

    source: str
    heading: str
    text: str


@dataclass(frozen=True)
class Fact:
    """The `attribute` of `subject` is `value`, including its unit."""

    subject: str
    attribute: str
    value: str
    source: str
    heading: str

    def __str__(self) -> str:
        what, from_, rest = self.attribute.partition(" from ")
        what = what[:1].lower() + what[1:]
        return f"The {what} of {self.subject}{from_}{rest} is {self.value}."


@dataclass(frozen=True)
class Page:
    passages: tuple[Passage, ...]
    facts: tuple[Fact, ...]
    topics: tuple[str, ...] = ()
    """The first heading of each file."""


_HEADING = re.compile(r"#{1,6}\s+(?P<text>.*?)\s*#*\Z")
_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*\Z")
_COLUMN = re.compile(r"(?P<name>.*?)\s*(?:\((?P<unit>[^()]*)\))?\Z")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def read_folder(folder: Path) -> Page:
    """All `*.md` files in `folder`, in order of name. Raises OSError if it cannot be read."""
    pages = [read_page(p.name, p.read_text("utf-8")) for p in sorted(folder.glob("*.md"))]
    return Page(
        passages=tuple(passage for page in pages for passage in page.passages),
        facts=tuple(fact for page in pages for fact in page.facts),
        topics=tuple(topic for page in pages for topic in page.topics),
    )


def read_page(source: str, text: str) -> Page:
    """One file's text."""
    passages: list[Passage] = []
    facts: list[Fact] = []
    heading = source
    topics: list[str] = []
    for block in _blocks(text):
        if match := _HEADING.match(block[0]):
            heading = match["text"]
            topics = topics or [heading]
            continue
        rows = [_cells(line) for line in block if line.startswith("|")]
        if len(rows) > 2 and _RULE.match(block[1]):
            facts += _facts(rows[0], rows[2:], source, heading)
        else:
            passages.append(Passage(source, heading, _plain(" ".join(block))))
    return Page(tuple(passages), tuple(facts), tuple(topics))


def _blocks(text: str) -> Iterator[list[str]]:
    """Groups of lines: a heading alone, or the lines between blank lines."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        stripped = line.strip()
        fenced ^= stripped.startswith("```")
        alone = bool(_HEADING.match(stripped)) and not fenced
        if block and (alone or (not stripped and not fenced)):
            yield block
            block = []
        if alone:
            yield [stripped]
        elif stripped:
            block.append(stripped)
    if block:
        yield block


def _cells(line: str) -> list[str]:
    return [_plain(cell) for cell in line.strip("|").split("|")]


def _plain(text: str) -> str:
    """The text without Markdown syntax."""
    return re.sub(r"`([^`]*)`|\*{1,3}(\S[^*]*)\*{1,3}", r"\1\2", _LINK.sub(r"\1", text)).strip()


def _facts(header: list[str], rows: list[list[str]], source: str, heading: str) -> Iterator[Fact]:
    for row in rows:
        for column, cell in list(zip(header, row, strict=False))[1:]:
            match = _COLUMN.match(column)
            if cell and match and row[0]:
                value = f"{cell} {match['unit']}" if match["unit"] else cell
                yield Fact(row[0], match["name"], value, source, heading)


_WORD = re.compile(r"[^\W_]+")
_COMMON_TEXT = """
    a about all an and any anything approximate are as at average be been can did do does
    equatorial exact for from had has have how i in is it its know many me mean mount much my of
    on or our please s say says said something tell that the their them there they thing things
    this to total us was we were what when where which who whose why will with you your
"""
_COMMON = frozenset(_COMMON_TEXT.split())
_MEASURES = {
    "high": "height",
    "tall": "height",
    "big": "diameter",
    "large": "diameter",
    "wide": "diameter",
    "far": "distance",
    "heavy": "mass",
    "massive": "mass",
    "long": "length",
}
"""The attribute that `how high` and similar phrases ask for."""


def words_of(text: str) -> list[str]:
    """The words that carry meaning, in lower case and singular, in order."""
    return [_singular(w) for w in _WORD.findall(text.casefold()) if w not in _COMMON]


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


_HOW = re.compile(r"\bhow (\w+)", re.IGNORECASE)
_HOW_IS = re.compile(
    r"\Ahow (?P<measure>\w+) (?:is|are|was) (?!.* (?:than|from|to) )(?P<rest>\w.*)\Z",
    re.IGNORECASE | re.DOTALL,
)


def measured(question: str) -> str:
    """`how tall is Mount Everest` as `the height of Mount Everest`; other questions unchanged."""
    match = _HOW_IS.match(question)
    measure = _MEASURES.get(match["measure"].lower()) if match else None
    return f"the {measure} of {match['rest']}" if match and measure else question


def find_fact(facts: tuple[Fact, ...], question: str) -> Fact | None:
    """The fact that `question` asks for: its subject is named, and so is most of its attribute.

    More than half of the other words of the question must belong to the attribute, so that the
    mass of the atmosphere of a planet is not answered with the mass of the planet.
    """
    asked = words_of(_HOW.sub(lambda how: _MEASURES.get(how[1].lower(), how[0]), question))
    best: tuple[float, Fact | None] = (0.5, None)
    for fact in facts:
        subject = words_of(fact.subject)
        if not subject or not _contains(asked, subject):
            continue
        rest = [word for word in asked if word not in subject]
        attribute = words_of(fact.attribute)
        named = [word for word in rest if word in attribute]
        score = len(named) / len(rest) if rest else 0.0
        # of two equal matches, the attribute with fewer words that are not in the question
        score += 0.1 * len(set(named)) / (len(attribute) + 1) if named else 0.0
        if score > best[0] and len(named) * 2 > len(rest):
            best = (score, fact)
    return best[1]


def _contains(words: list[str], part: list[str]) -> bool:
    return any(words[i : i + len(part)] == part for i in range(len(words) - len(part) + 1))
