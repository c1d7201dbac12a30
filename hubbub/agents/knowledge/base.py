"""Searches folders of Markdown: detects changes, indexes them, and runs queries.

base = KnowledgeBase([Path("handbook")])
base.search("how are refunds paid", limit=3).hits
"""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from hubbub.agents.knowledge.index import Index, has_fts5, parse, passages, title_of
from hubbub.agents.tools.base import CallSite, ReadingTool
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.schema import ToolArguments
from hubbub.agents.tools.worker_thread import run_in_thread
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.config.problems import shown_path
from hubbub.errors import ConfigError
from hubbub.logs import get_logger

__all__ = [
    "SEARCH_KNOWLEDGE",
    "Hit",
    "KnowledgeBase",
    "Scan",
    "SearchKnowledge",
    "SearchResult",
    "Signature",
    "UnreadableFile",
    "read_text",
    "scan",
]

# The files of a knowledge folder, and their text.


SUFFIXES = (".md", ".markdown")
_MOST_ENTRIES = 100_000
"""Entries of any kind that one scan of the folders covers."""


class Signature(NamedTuple):
    """Changes when the file does."""

    device: int
    inode: int
    mtime_ns: int
    size: int


class KnowledgeFile(NamedTuple):
    """A file to be searched."""

    path: Path
    name: str
    """As in hits: relative to its folder, with `/`."""
    signature: Signature


class UnreadableFile(Exception):
    """A file that cannot be searched; the text says why."""


@dataclass(slots=True)
class Scan:
    """The content of the folders at one moment."""

    files: list[KnowledgeFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What is left out, and why."""
    _size: int = 0
    _entries: int = 0
    _too_many: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, found: KnowledgeFile, limits: KnowledgeConfig) -> None:
        """Add a file, unless it is known under another name or exceeds a limit."""
        device, inode, _, size = found.signature
        if (device, inode) in self._seen:
            return
        self._seen.add((device, inode))
        if size > limits.max_file:
            self.problems.append(f"{found.name}: larger than {limits.max_file} bytes (max_file)")
        elif len(self.files) == limits.max_files or self._size + size > limits.max_size:
            self._too_many += 1
        else:
            self.files.append(found)
            self._size += size

    def counts(self) -> bool:
        """Count an entry of a folder; False: there are too many."""
        self._entries += 1
        return self._entries <= _MOST_ENTRIES

    def closed(self, limits: KnowledgeConfig) -> Scan:
        """With the problems that are known only at the end."""
        if self._too_many:
            limit = f"{limits.max_files} files (max_files) or {limits.max_size} bytes (max_size)"
            self.problems.append(f"{self._too_many} further files: there are more than {limit}")
        if self._entries > _MOST_ENTRIES:
            limit = f"there are more than {_MOST_ENTRIES} files and folders of any kind"
            self.problems.append(f"the rest of the folders: {limit}")
        return self


def scan(folders: Mapping[str, Path], limits: KnowledgeConfig) -> Scan:
    """All Markdown below the folders, by name; the keys of `folders` become prefixes of the names.

    Names that begin with a dot are left out. A link to a file counts if its target is below the
    same folder; links to folders are not followed: their targets are found where they are.
    """
    scan = Scan()
    for label, folder in folders.items():
        links: list[tuple[str, str]] = []
        for name, entry in _entries(str(folder), label, scan):
            if entry.is_symlink():
                links.append((name, entry.path))
            elif (found := _found(name, entry.path)) is not None:
                scan.add(found, limits)
        root = os.path.realpath(folder) + os.sep
        for name, link in links:  # after their possible targets
            target = os.path.realpath(link)
            if target.startswith(root) and (found := _found(name, target)) is not None:
                scan.add(found, limits)
    return scan.closed(limits)


def _entries(folder: str, label: str, scan: Scan) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The Markdown files and links below a folder, each folder's own before those below it."""
    todo = [(folder, label)]
    while todo:
        path, label = todo.pop()
        below: list[tuple[str, str]] = []
        for entry in _listed(path, label, scan):
            if not scan.counts():
                return
            if entry.name.startswith("."):
                continue
            shown = os.fsencode(entry.name).decode(errors="backslashreplace")
            name = f"{label}/{shown}" if label else shown
            if entry.is_dir(follow_symlinks=False):
                below.append((entry.path, name))
            elif entry.name.lower().endswith(SUFFIXES):
                yield name, entry
        todo += reversed(below)


def _listed(path: str, label: str, scan: Scan) -> list[os.DirEntry[str]]:
    """The entries of a folder, by name."""
    try:
        with os.scandir(path) as found:
            return sorted(found, key=lambda entry: entry.name)
    except OSError as exc:
        scan.problems.append(f"{label or os.path.basename(path)}: {exc.strerror or exc}")
        return []


def _found(name: str, path: str) -> KnowledgeFile | None:
    """The file at `path`, if it is a regular file."""
    try:
        about = os.lstat(path)
    except OSError:
        return None  # deleted since the folder was read
    if not stat.S_ISREG(about.st_mode):
        return None
    return KnowledgeFile(Path(path), name, _signature(about))


def _signature(about: os.stat_result) -> Signature:
    return Signature(about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)


def read_text(found: KnowledgeFile, limits: KnowledgeConfig) -> str:
    """The text of a file. Raises `UnreadableFile` if it is not text, or no longer the same file."""
    try:
        data = _read(found, limits.max_file)
    except OSError as exc:
        raise UnreadableFile(exc.strerror or str(exc)) from exc
    if len(data) > limits.max_file:
        raise UnreadableFile(f"larger than {limits.max_file} bytes (max_file)")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        raise UnreadableFile(f"not UTF-8 text (line {line})") from None
    if "\0" in text:
        raise UnreadableFile("not text: it has a NUL character")
    return text


def _read(found: KnowledgeFile, most: int) -> bytes:
    """The bytes of exactly the file that was found.

    Neither a link nor a pipe in its place is opened.
    """
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(found.path, flags), "rb") as file:
        about = os.fstat(file.fileno())
        if (about.st_dev, about.st_ino) != found.signature[:2] or not stat.S_ISREG(about.st_mode):
            raise UnreadableFile("replaced while it was read")
        return file.read(most + 1)


log = get_logger(__name__)

MOST_HITS = 20
_SETTLED_NS = 2_000_000_000
"""A file may change twice within one tick of its clock (2 s on FAT): a file that had changed less
than this before it was read is read again."""


class Hit(NamedTuple):
    """A passage, and where it is."""

    file: str
    """Relative to its folder; if there are several folders, with the folder's name as prefix."""
    line: int
    """From 1."""
    heading: str
    """The headings above it, outermost first, with ` > ` between them."""
    text: str


class SearchResult(NamedTuple):
    """The result of a search."""

    hits: tuple[Hit, ...]
    """Best first."""
    matches: int
    """Number of passages that match, of which `hits` are the best."""
    problems: tuple[str, ...]
    """Files and folders that are not searched, and why."""
    titles: tuple[str, ...]
    """Titles of the files, if there are no hits."""


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
        """Whether the file is certain to be unchanged."""
        return now == self.signature and not 0 <= self.read_ns - now.mtime_ns < _SETTLED_NS


class KnowledgeBase:
    """Folders of Markdown that can be searched.

    Nothing is read before the first search. Each search first detects new, changed and deleted
    files by their times and sizes, and reads those. Thread-safe.

    Raises `ConfigError` when a folder does not exist, or SQLite has no full-text search.
    """

    def __init__(self, folders: Sequence[Path], limits: KnowledgeConfig | None = None):
        self.folders = _labelled([folder.absolute() for folder in folders])
        """By the prefixes of file names in hits; a single folder has none."""
        self._limits = limits or KnowledgeConfig()
        for folder in self.folders.values():
            if not folder.is_dir():
                raise ConfigError("this folder does not exist", shown_path(folder))
        if not has_fts5():
            raise ConfigError("knowledge needs an SQLite with FTS5, which this Python's has not")
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._known: dict[str, _Known] = {}

    def search(self, query: str, limit: int = 5) -> SearchResult:
        """The best passages for a text: words, phrases in quotes, prefixes with a `*`.

        Any text is valid. Raises ValueError for a `limit` outside of 1 to `MOST_HITS`.
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
        """The index of the current files."""
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

    def _read(self, index: Index, file: KnowledgeFile, before: _Known | None) -> _Known:
        now = time.time_ns()
        try:
            text = read_text(file, self._limits)
        except UnreadableFile as exc:
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
    """The folders by unique names; a single folder has an empty name."""
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


# `search_knowledge`: searches the operator's documents for a model.


SEARCH_KNOWLEDGE = "search_knowledge"
USUAL_HITS = 5
_MOST_PROBLEMS = 5
_MOST_TITLES = 30


class KnowledgeQuery(ToolArguments):
    """The arguments of `search_knowledge`."""

    query: str
    """Words that the answer should have. "Words in quotes" must occur as they stand; refund* finds
    all words that begin so."""
    limit: Annotated[int, Field(ge=1, le=MOST_HITS)] = USUAL_HITS
    """Passages at most."""


class SearchKnowledge(ReadingTool):
    """The tool. Its result is JSON, so that a result that is too long is cut hit by hit."""

    name = SEARCH_KNOWLEDGE
    overrides = ToolOverrides(outside=True)

    def __init__(self, base: KnowledgeBase):
        self._base = base
        self.spec = KnowledgeQuery.spec_of(
            SEARCH_KNOWLEDGE,
            f"Search your operator's documents ({_named(base)}). Gives the passages that match "
            "best, with file and heading: name them as your source. If they do not answer the "
            "question, search again in other words.",
        )

    async def best(self, text: str, most: int) -> Sequence[Hit]:
        """The passages that match a text best, at most `most`."""
        return (await run_in_thread(partial(self._base.search, text, most))).hits

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Search, in a thread. Any query is valid."""
        asked = KnowledgeQuery.read(arguments)
        found = await run_in_thread(partial(self._base.search, asked.query, asked.limit))
        return json.dumps(_shown(found), ensure_ascii=False)


def _named(base: KnowledgeBase) -> str:
    return ", ".join(label or folder.name for label, folder in base.folders.items())


def _shown(found: SearchResult) -> dict[str, JsonValue]:
    hits: list[JsonValue] = [dict(hit._asdict()) for hit in found.hits]
    shown: dict[str, JsonValue] = {"hits": hits}
    if found.matches > len(hits):
        shown["matches"] = found.matches
    if not hits:
        shown["hint"] = "nothing was found: try other words, or fewer"
        shown["documents"] = _some(found.titles, _MOST_TITLES)
    if found.problems:
        shown["not_searched"] = _some(found.problems, _MOST_PROBLEMS)
    return shown


def _some(texts: tuple[str, ...], most: int) -> list[JsonValue]:
    more = [f"… and {len(texts) - most} more"] if len(texts) > most else []
    return [*texts[:most], *more]
