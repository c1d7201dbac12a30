"""The documentation as data: pages, links and code blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ROOT", "Block", "anchors", "blocks", "example", "links", "pages"]

ROOT = Path(__file__).parents[1]

_FENCE = re.compile(
    r"(?:<!-- (?:example: (?P<name>\S+)|edit: (?P<edited>\S+)) -->\n)?"
    r"```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A block of code in a page. `name` is the file that the reader writes with it, `edited` the
    file to which the reader applies it."""

    page: Path
    language: str
    text: str
    name: str | None
    edited: str | None = None


def pages() -> list[Path]:
    """All pages for readers, without the templates of generated ones."""
    files = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in files if "templates" not in page.parts]


def blocks(page: Path) -> Iterator[Block]:
    for match in _FENCE.finditer(page.read_text("utf-8")):
        yield Block(page, match["language"], match["text"], match["name"], match["edited"])


def example(page: str, name: str) -> str:
    """The text of the example `name` in a page."""
    (text,) = [block.text for block in blocks(ROOT / page) if block.name == name]
    return text


def links(page: Path) -> Iterator[str]:
    """The targets of a page's links, outside its code."""
    for match in _LINK.finditer(_FENCE.sub("", page.read_text("utf-8"))):
        yield match["target"]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings."""
    titles = _HEADING.findall(_FENCE.sub("", page.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
