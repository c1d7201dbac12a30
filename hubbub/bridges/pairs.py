"""Which message of the network is which one of the other chat, in a file of the bridge's own."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

__all__ = ["Pair", "Pairs"]

_TABLE = """CREATE TABLE IF NOT EXISTS pair (
    ours TEXT PRIMARY KEY, theirs TEXT NOT NULL UNIQUE, person TEXT, name TEXT
) WITHOUT ROWID"""


class Pair(NamedTuple):
    """One message in both chats."""

    ours: str
    """In the network (m42)."""
    theirs: str
    person: str | None = None
    """The id of the person who said it there; None: it was said here."""
    name: str | None = None


class Pairs:
    """All of them; a context. What it holds can be lost without harm to what is said later: edits
    and threads of older messages are not recognised then."""

    def __init__(self, path: Path | None):
        """None: in memory."""
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.executescript(f"PRAGMA journal_mode=WAL; {_TABLE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def put(self, pair: Pair) -> None:
        self._db.execute("INSERT OR REPLACE INTO pair VALUES (?, ?, ?, ?)", pair)

    def theirs(self, ours: str) -> str | None:
        found = self._one("ours", ours)
        return found.theirs if found else None

    def of_theirs(self, theirs: str) -> Pair | None:
        return self._one("theirs", theirs)

    def _one(self, column: str, value: str) -> Pair | None:
        with closing(self._db.execute(f"SELECT * FROM pair WHERE {column} = ?", (value,))) as rows:
            row = rows.fetchone()
        return None if row is None else Pair(*row)
