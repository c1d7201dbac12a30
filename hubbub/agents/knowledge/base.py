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

# The files of a knowledge folder and their text.


SUFFIXES = (".md", ".markdown")
_MAX_ENTRIES = 100_000
"""Maximum entries of any kind in one scan of the folders."""


class Signature(NamedTuple):
    """Changes whenever the file changes."""

    device: int
    inode: int
    mtime_ns: int
    size: int


class KnowledgeFile(NamedTuple):
    """A file to search."""

    path: Path
    name: str
    """The name in hits: relative to its folder, with `/`."""
    signature: Signature


class UnreadableFile(Exception):
    """A file that cannot be searched; the message is the reason."""


@dataclass(slots=True)
class Scan:
    """The content of the folders at one time."""

    files: list[KnowledgeFile] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """Omitted files and folders, with the reason."""
    _size: int = 0
    _entries: int = 0
    _too_many: int = 0
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def add(self, file: KnowledgeFile, limits: KnowledgeConfig) -> None:
        """Add a file, unless it was added under another name or exceeds a limit."""
        device, inode, _, size = file.signature
        if (device, inode) in self._seen:
            return
        self._seen.add((device, inode))
        if size > limits.max_file:
            self.problems.append(f"{file.name}: larger than {limits.max_file} bytes (max_file)")
        elif len(self.files) == limits.max_files or self._size + size > limits.max_size:
            self._too_many += 1
        else:
            self.files.append(file)
            self._size += size

    def count_entry(self) -> bool:
        """Count an entry of a folder. False if there are too many."""
        self._entries += 1
        return self._entries <= _MAX_ENTRIES

    def finish(self, limits: KnowledgeConfig) -> Scan:
        """Add the problems that depend on totals."""
        if self._too_many:
            limit = f"{limits.max_files} files (max_files) or {limits.max_size} bytes (max_size)"
            self.problems.append(f"{self._too_many} further files: there are more than {limit}")
        if self._entries > _MAX_ENTRIES:
            limit = f"there are more than {_MAX_ENTRIES} files and folders of any kind"
            self.problems.append(f"the rest of the folders: {limit}")
        return self


def scan(folders: Mapping[str, Path], limits: KnowledgeConfig) -> Scan:
    """Scan the folders for Markdown, sorted by name. The keys of `folders` are prefixes of names.

    Omits names that begin with a dot. A link to a file counts if its target is below the same
    folder. Links to folders are not followed; targets below the same folder are scanned anyway.
    """
    scan = Scan()
    for label, folder in folders.items():
        links: list[tuple[str, str]] = []
        for name, entry in _entries(str(folder), label, scan):
            if entry.is_symlink():
                links.append((name, entry.path))
            elif (file := _regular_file(name, entry.path)) is not None:
                scan.add(file, limits)
        root = os.path.realpath(folder) + os.sep
        for name, link in links:  # after their possible targets
            target = os.path.realpath(link)
            if target.startswith(root) and (file := _regular_file(name, target)) is not None:
                scan.add(file, limits)
    return scan.finish(limits)


def _entries(folder: str, label: str, scan: Scan) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The Markdown files and links below a folder; a folder's own before its subfolders'."""
    todo = [(folder, label)]
    while todo:
        path, label = todo.pop()
        below: list[tuple[str, str]] = []
        for entry in _list_folder(path, label, scan):
            if not scan.count_entry():
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


def _list_folder(path: str, label: str, scan: Scan) -> list[os.DirEntry[str]]:
    """The entries of a folder, by name."""
    try:
        with os.scandir(path) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as exc:
        scan.problems.append(f"{label or os.path.basename(path)}: {exc.strerror or exc}")
        return []


def _regular_file(name: str, path: str) -> KnowledgeFile | None:
    """The file at `path`, if it is a regular file."""
    try:
        status = os.lstat(path)
    except OSError:
        return None  # deleted since the folder was read
    if not stat.S_ISREG(status.st_mode):
        return None
    return KnowledgeFile(Path(path), name, _signature(status))


def _signature(status: os.stat_result) -> Signature:
    return Signature(status.st_dev, status.st_ino, status.st_mtime_ns, status.st_size)


def read_text(file: KnowledgeFile, limits: KnowledgeConfig) -> str:
    """The text of a file. Raises `UnreadableFile` if it is not text, or was replaced."""
    try:
        data = _read(file, limits.max_file)
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
        raise UnreadableFile("not text: it contains a NUL character")
    return text


def _read(file: KnowledgeFile, limit: int) -> bytes:
    """The bytes of exactly the scanned file; never opens a link or pipe that replaced it."""
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(file.path, flags), "rb") as stream:
        status = os.fstat(stream.fileno())
        if _signature(status)[:2] != file.signature[:2] or not stat.S_ISREG(status.st_mode):
            raise UnreadableFile("replaced while it was read")
        return stream.read(limit + 1)


log = get_logger(__name__)

MOST_HITS = 20
_SETTLED_NS = 2_000_000_000
"""A file can change twice within one tick of its clock (2 s on FAT), so a file that changed less
than this before it was read is read again."""


class Hit(NamedTuple):
    """A passage and its location."""

    file: str
    """Relative to its folder; if there are several folders, with the folder's name as prefix."""
    line: int
    """From 1."""
    heading: str
    """The headings above it, outermost first, separated by ` > `."""
    text: str


class SearchResult(NamedTuple):
    hits: tuple[Hit, ...]
    """The best matches, best first."""
    matches: int
    """Number of matching passages."""
    problems: tuple[str, ...]
    """Files and folders that were not searched, with the reason."""
    titles: tuple[str, ...]
    """Titles of the files, if there are no hits."""


@dataclass(frozen=True, slots=True)
class _ReadFile:
    """The last reading of a file."""

    signature: Signature
    read_ns: int
    digest: int | None = None
    """Hash of its text, valid within this process."""
    title: str = ""
    problem: str | None = None

    def is_current(self, now: Signature) -> bool:
        """Whether the file is certainly unchanged."""
        return now == self.signature and not 0 <= self.read_ns - now.mtime_ns < _SETTLED_NS


class KnowledgeBase:
    """Folders of Markdown that can be searched.

    Reads nothing before the first search. Each search first detects new, changed and deleted files
    by their times and sizes, and updates the index. Thread-safe.

    Raises `ConfigError` if a folder does not exist, or SQLite has no full-text search.
    """

    def __init__(self, folders: Sequence[Path], limits: KnowledgeConfig | None = None):
        self.folders = _labelled([folder.absolute() for folder in folders])
        """By the prefix of file names in hits; empty for a single folder."""
        self._limits = limits or KnowledgeConfig()
        for folder in self.folders.values():
            if not folder.is_dir():
                raise ConfigError("this folder does not exist", shown_path(folder))
        if not has_fts5():
            raise ConfigError(
                "knowledge requires SQLite with FTS5, which this Python's SQLite lacks"
            )
        self._lock = threading.Lock()
        self._index: Index | None = None
        self._files: dict[str, _ReadFile] = {}

    def search(self, query: str, limit: int = 5) -> SearchResult:
        """The best passages for a query of words, phrases in quotes, and prefixes with a `*`.

        Any text is valid. Raises ValueError for a `limit` outside 1 to `MOST_HITS`.
        """
        if not 1 <= limit <= MOST_HITS:
            raise ValueError(f"limit: expected 1 to {MOST_HITS}, not {limit}")
        with self._lock:
            scanned = scan(self.folders, self._limits)
            index = self._refresh(scanned)
            for expression in dict.fromkeys(parse(query)):
                rows = index.find(expression, limit) if expression else []
                if rows:
                    hits = tuple(Hit(row.file, row.line, row.heading, row.text) for row in rows)
                    return self._result(scanned, hits, index.count(expression))
            return self._result(scanned, (), 0)

    def _result(self, scanned: Scan, hits: tuple[Hit, ...], matches: int) -> SearchResult:
        files = [(file.name, self._files[file.name]) for file in scanned.files]
        problems = [f"{name}: {file.problem}" for name, file in files if file.problem]
        read = () if hits else ((name, file.title) for name, file in files if not file.problem)
        titles = tuple(f"{title or 'untitled'} ({name})" for name, title in read)
        return SearchResult(hits, matches, (*scanned.problems, *problems), titles)

    def _refresh(self, scanned: Scan) -> Index:
        """Update the index to the scanned files."""
        index = self._index = self._index or Index()
        deleted = self._files.keys() - {file.name for file in scanned.files}
        index.remove(deleted)
        for name in deleted:
            del self._files[name]
        for file in scanned.files:
            previous = self._files.get(file.name)
            if previous is None or not previous.is_current(file.signature):
                self._files[file.name] = self._read(index, file, previous)
        return index

    def _read(self, index: Index, file: KnowledgeFile, previous: _ReadFile | None) -> _ReadFile:
        now = time.time_ns()
        try:
            text = read_text(file, self._limits)
        except UnreadableFile as exc:
            index.remove([file.name])
            log.warning("knowledge file skipped", file=file.name, reason=str(exc))
            return _ReadFile(file.signature, now, problem=str(exc))
        digest = hash(text)
        if previous is not None and previous.digest == digest:
            return replace(previous, signature=file.signature, read_ns=now)
        pieces = passages(text)
        index.put(file.name, pieces)
        return _ReadFile(file.signature, now, digest, title_of(pieces))


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


# The tool `search_knowledge`, which searches the operator's documents.


SEARCH_KNOWLEDGE = "search_knowledge"
DEFAULT_HITS = 5
_MAX_PROBLEMS = 5
_MAX_TITLES = 30


class KnowledgeQuery(ToolArguments):
    """The arguments of `search_knowledge`."""

    query: str
    """Words that the answer should have. "Words in quotes" must occur as they stand; refund* finds
    all words that begin so."""
    limit: Annotated[int, Field(ge=1, le=MOST_HITS)] = DEFAULT_HITS
    """Passages at most."""


class SearchKnowledge(ReadingTool):
    """The tool `search_knowledge`. Its result is JSON, so that a long result is cut hit by hit."""

    name = SEARCH_KNOWLEDGE
    overrides = ToolOverrides(untrusted=True)

    def __init__(self, base: KnowledgeBase):
        self._base = base
        self.spec = KnowledgeQuery.spec_of(
            SEARCH_KNOWLEDGE,
            f"Search your operator's documents ({_named(base)}). Gives the passages that match "
            "best, with file and heading: name them as your source. If they do not answer the "
            "question, search again in other words.",
        )

    async def best(self, text: str, limit: int) -> Sequence[Hit]:
        """The passages that match a text best, at most `limit`."""
        return (await run_in_thread(partial(self._base.search, text, limit))).hits

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Search in a thread. Any query is valid."""
        query = KnowledgeQuery.read(arguments)
        result = await run_in_thread(partial(self._base.search, query.query, query.limit))
        return json.dumps(_shown(result), ensure_ascii=False)


def _named(base: KnowledgeBase) -> str:
    return ", ".join(label or folder.name for label, folder in base.folders.items())


def _shown(result: SearchResult) -> dict[str, JsonValue]:
    hits: list[JsonValue] = [dict(hit._asdict()) for hit in result.hits]
    shown: dict[str, JsonValue] = {"hits": hits}
    if result.matches > len(hits):
        shown["matches"] = result.matches
    if not hits:
        shown["hint"] = "nothing was found: try other words, or fewer"
        shown["documents"] = _truncated(result.titles, _MAX_TITLES)
    if result.problems:
        shown["not_searched"] = _truncated(result.problems, _MAX_PROBLEMS)
    return shown


def _truncated(texts: tuple[str, ...], limit: int) -> list[JsonValue]:
    more = [f"… and {len(texts) - limit} more"] if len(texts) > limit else []
    return [*texts[:limit], *more]
