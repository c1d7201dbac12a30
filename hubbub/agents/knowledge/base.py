"""Searching folders of Markdown: finds what has changed, indexes it, and looks.

base = KnowledgeBase([Path("handbook")])
base.search("how are refunds paid", limit=3).hits
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from hubbub.agents.knowledge.files import (
    Found,
    Limits,
    Scan,
    Signature,
    Unreadable,
    read_text,
    scan,
)
from hubbub.agents.knowledge.index import Index, has_fts5
from hubbub.agents.knowledge.markdown import passages, title_of
from hubbub.agents.knowledge.query import parse
from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError
from hubbub.logs import get_logger

__all__ = ["MOST_HITS", "Hit", "KnowledgeBase", "Limits", "SearchResult"]

log = get_logger(__name__)

MOST_HITS = 20
_SETTLED_NS = 2_000_000_000
"""A file may change twice within one tick of its clock (2 s on FAT): one that had changed less than
this before it was read is read again."""


class Hit(NamedTuple):
    """A passage, and where it stands."""

    file: str
    """Relative to its folder; of several folders with the folder's name before it."""
    line: int
    """From 1."""
    heading: str
    """The headings above it, outermost first, with ` > ` between them."""
    text: str


class SearchResult(NamedTuple):
    """What a search has found."""

    hits: tuple[Hit, ...]
    """The best first."""
    matches: int
    """Passages that match, of which `hits` are the best."""
    problems: tuple[str, ...]
    """Files and folders that are not searched, and why."""
    titles: tuple[str, ...]
    """What the files are about, where there are no hits."""


@dataclass(frozen=True, slots=True)
class _Known:
    """A file as it was read."""

    signature: Signature
    read_ns: int
    digest: int | None = None
    """Of its text, within this process."""
    title: str = ""
    problem: str | None = None

    def still(self, now: Signature) -> bool:
        """Whether the file is surely the same."""
        return now == self.signature and not 0 <= self.read_ns - now.mtime_ns < _SETTLED_NS


class KnowledgeBase:
    """Folders of Markdown that can be searched.

    Nothing is read before the first search. Each search looks first which files are new, changed or
    gone, by their times and sizes, and reads those. Threads may share it.

    Raises `ConfigError` when a folder does not exist, or this Python's SQLite cannot search text.
    """

    def __init__(self, folders: Sequence[Path], limits: Limits | None = None):
        self.folders = _labelled([folder.absolute() for folder in folders])
        """By the names that hits have before their files' names; one folder has none."""
        self._limits = limits or Limits()
        for folder in self.folders.values():
            if not folder.is_dir():
                raise ConfigError("this folder does not exist", shown_path(folder))
        if not has_fts5():
            raise ConfigError("knowledge needs an SQLite with FTS5, which this Python's has not")
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._known: dict[str, _Known] = {}

    def search(self, query: str, limit: int = 5) -> SearchResult:
        """The best passages for a text: words, phrases in quotes, beginnings of words with a `*`.

        Any text may be given. Raises ValueError for a `limit` outside of 1 to `MOST_HITS`.
        """
        if not 1 <= limit <= MOST_HITS:
            raise ValueError(f"limit: expected 1 to {MOST_HITS}, not {limit}")
        with self._lock:
            found = scan(self.folders, self._limits)
            index = self._refreshed(found)
            for expression in dict.fromkeys(parse(query)):
                rows = index.find(expression, limit) if expression else []
                if rows:
                    hits = tuple(Hit(row.file, row.line, row.heading, row.text) for row in rows)
                    return self._result(found, hits, index.count(expression))
            return self._result(found, (), 0)

    def _result(self, found: Scan, hits: tuple[Hit, ...], matches: int) -> SearchResult:
        known = [(file.name, self._known[file.name]) for file in found.files]
        problems = [f"{name}: {file.problem}" for name, file in known if file.problem]
        titles = (
            () if hits else tuple(f"{file.title or 'untitled'} ({name})" for name, file in known)
        )
        return SearchResult(hits, matches, (*found.problems, *problems), titles)

    def _refreshed(self, found: Scan) -> Index:
        """The index of what is there now."""
        index = self._index = self._index or Index()
        gone = self._known.keys() - {file.name for file in found.files}
        index.remove(gone)
        for name in gone:
            del self._known[name]
        for file in found.files:
            known = self._known.get(file.name)
            if known is None or not known.still(file.signature):
                self._known[file.name] = self._read(index, file, known)
        return index

    def _read(self, index: Index, file: Found, before: _Known | None) -> _Known:
        now = time.time_ns()
        try:
            text = read_text(file, self._limits)
        except Unreadable as exc:
            index.remove([file.name])
            log.warning("file of the knowledge is left out", file=file.name, reason=str(exc))
            return _Known(file.signature, now, problem=str(exc))
        digest = hash(text)
        if before is not None and before.digest == digest:
            return replace(before, signature=file.signature, read_ns=now)
        pieces = passages(text)
        index.put(file.name, pieces)
        return _Known(file.signature, now, digest, title_of(pieces))


def _labelled(folders: Sequence[Path]) -> dict[str, Path]:
    """The folders by names that tell them apart; nothing where there is only one."""
    unique = list(dict.fromkeys(folders))
    if len(unique) == 1:
        return {"": unique[0]}
    labels: dict[str, Path] = {}
    for folder in unique:
        label, n = folder.name or "root", 2
        while label in labels:
            label, n = f"{folder.name}-{n}", n + 1
        labels[label] = folder
    return labels
