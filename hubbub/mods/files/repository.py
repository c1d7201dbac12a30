"""Files by their names and by what they say."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from heapq import merge

from hubbub.mods.fields import time_of
from hubbub.mods.files.schemas import File
from hubbub.mods.host import Host, Row
from hubbub.mods.repository import update
from hubbub.mods.rows import Statement, Value
from hubbub.mods.text_search import SearchHit, SearchQuery, indexable, snippet_of
from hubbub.protocol import thread_ids

__all__ = [
    "FILE_ROWS",
    "Catalog",
    "StoredFile",
    "added",
    "deleted",
    "deleted_file",
    "findable",
    "found",
    "granted",
    "is_id",
    "not_findable",
    "root_of",
]

FILE_ROWS = (
    "SELECT id, name, media_type, size, sha256, thread, uploaded_by, at, outside, lines, no_text, "
    "cut FROM files_file"
)


@dataclass(slots=True)
class StoredFile:
    """A file that is there."""

    id: int
    name: str
    media_type: str
    size: int
    sha256: str
    thread: str | None
    uploaded_by: str
    at: float
    outside: bool
    lines: int
    no_text: str
    cut: bool
    threads: set[str] = field(default_factory=set)
    """Root threads whose readers may read it."""

    @classmethod
    def of(cls, row: Row, threads: set[str]) -> StoredFile:
        """What `FILE_ROWS` selects."""
        kept = cls(*row)
        kept.threads, kept.outside, kept.cut = threads, bool(kept.outside), bool(kept.cut)
        return kept

    def to_schema(self, thread: str | None) -> File:
        """The file for somebody who finds it in `thread`."""
        same = {name: getattr(self, name) for name in File.model_fields.keys() & _NAMES}
        return File.model_validate({**same, "id": f"f{self.id}", "thread": thread})


_NAMES = {field.name for field in fields(StoredFile)}
Reads = Callable[[str], bool]
"""Whether somebody reads a thread."""


class Catalog:
    """What is there. Contents count once for the network, and for each of its files' uploaders."""

    def __init__(self) -> None:
        self.files: dict[int, StoredFile] = {}
        self.used: Counter[str] = Counter()
        """Bytes of the files of each participant."""
        self.total = 0
        """Bytes of all contents."""
        self.refs: Counter[str] = Counter()
        """How many files have a content."""
        self._of_thread: defaultdict[str, dict[int, None]] = defaultdict(dict)
        self._of_person: defaultdict[str, dict[int, None]] = defaultdict(dict)

    def __len__(self) -> int:
        return len(self.files)

    def add(self, kept: StoredFile) -> None:
        self.files[kept.id] = kept
        self.used[kept.uploaded_by] += kept.size
        if not self.refs[kept.sha256]:
            self.total += kept.size
        self.refs[kept.sha256] += 1
        self._of_person[kept.uploaded_by][kept.id] = None
        for thread in kept.threads:
            self._of_thread[thread][kept.id] = None

    def remove(self, kept: StoredFile) -> None:
        """A file is deleted."""
        del self.files[kept.id]
        self.used[kept.uploaded_by] -= kept.size
        self.refs[kept.sha256] -= 1
        if not self.refs[kept.sha256]:
            del self.refs[kept.sha256]
            self.total -= kept.size
        del self._of_person[kept.uploaded_by][kept.id]
        for thread in kept.threads:
            del self._of_thread[thread][kept.id]

    def grant(self, kept: StoredFile, thread: str) -> None:
        """Who reads the thread may read the file."""
        if kept.id in self.files and thread not in kept.threads:
            kept.threads.add(thread)
            self._of_thread[thread][kept.id] = None

    def place(self, kept: StoredFile, who: str, reads: Reads) -> tuple[bool, str | None]:
        """Whether somebody may read a file, and in which of their threads it is."""
        first = (kept.thread,) if kept.thread is not None else ()
        for thread in (*first, *sorted(kept.threads)):
            if reads(thread):
                return True, thread
        return kept.uploaded_by == who, None

    def of_thread(self, thread: str, before: int) -> Iterator[StoredFile]:
        """Files of a thread that came before this one, the latest first."""
        return (self.files[id] for id in self._descending(self._of_thread[thread], before))

    def of_reader(self, who: str, reads: Reads, before: int) -> Iterator[StoredFile]:
        """Files that somebody may read, the latest first."""
        groups = [ids for thread, ids in self._of_thread.items() if ids and reads(thread)]
        lists = [self._descending(ids, before) for ids in (*groups, self._of_person[who])]
        last = 0
        for id in merge(*lists, reverse=True):
            if id != last:
                yield self.files[id]
            last = id

    def _descending(self, ids: dict[int, None], before: int) -> Iterator[int]:
        # Mostly in order already; what was shared later stands at the end.
        return iter(sorted((id for id in ids if id < before), reverse=True))


# Rows -------------------------------------------------------------------------------------------


_ID = re.compile(r"f[1-9][0-9]{0,17}")


def is_id(text: str) -> bool:
    """Whether it has the form of a file's id."""
    return _ID.fullmatch(text) is not None


def added(kept: StoredFile) -> list[Statement]:
    values: tuple[Value, ...] = (
        kept.id, kept.name, kept.media_type, kept.size, kept.sha256, kept.thread, kept.uploaded_by,
        kept.at, int(kept.outside), kept.lines, kept.no_text, int(kept.cut),
    )  # fmt: skip
    sql = f"INSERT INTO files_file VALUES ({', '.join('?' * len(values))}, NULL, NULL)"
    return [Statement(sql, values), *(granted(kept.id, thread) for thread in kept.threads)]


def granted(id: int, thread: str) -> Statement:
    return Statement("INSERT OR IGNORE INTO files_grant VALUES (?, ?)", (id, thread))


def deleted(kept: StoredFile, by: str, at: float) -> Statement:
    return update("files_file", {"deleted_by": by, "deleted_at": at}, id=kept.id, deleted_at=None)


def deleted_file(kept: StoredFile, thread: str | None, by: str, at: float) -> File:
    """A file that was deleted."""
    gone = {"deleted_by": by, "deleted_at": time_of(at)}
    return kept.to_schema(thread).model_copy(update=gone)


def root_of(thread: str) -> str:
    """Who reads a thread reads what hangs in it."""
    return thread_ids.root(thread)


# A file that several of the threads have is found once, in the one that is named first.
_FOUND = """
WITH f AS MATERIALIZED (
    SELECT rowid AS id, text, bm25(files_found, 4.0, 1.0) AS score
    FROM files_found WHERE files_found MATCH ?
)
SELECT d.id, min(g.thread), d.name, d.uploaded_by, d.at, f.score, f.text, d.outside
FROM f JOIN files_file AS d ON d.id = f.id JOIN files_grant AS g ON g.file = d.id
WHERE d.deleted_at IS NULL AND g.thread IN (SELECT value FROM json_each(?)){more}
GROUP BY d.id ORDER BY f.score, d.id DESC LIMIT ? OFFSET ?
"""


def findable(id: int, name: str, text: str) -> Statement:
    values = (id, indexable(name.replace("_", " ")), indexable(text))
    return Statement("INSERT INTO files_found (rowid, name, text) VALUES (?, ?, ?)", values)


def not_findable(id: int) -> Statement:
    return Statement("DELETE FROM files_found WHERE rowid = ?", (id,))


async def found(host: Host, search: SearchQuery) -> Sequence[SearchHit]:
    """`Searchable.found`."""
    more, values = search.conditions("d.uploaded_by", "d.at")
    match, threads = search.words.match, json.dumps(list(search.threads))
    rows = await host.rows(
        _FOUND.format(more=more), match, threads, *values, search.limit, search.skip
    )
    return [
        SearchHit(
            "files",
            f"f{id}",
            thread,
            by,
            at,
            await snippet_of(search.words, text),
            name,
            -score,
            bool(outside),
        )
        for id, thread, name, by, at, score, text, outside in rows
    ]
