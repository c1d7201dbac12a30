"""Maps message ids between the network and the other chat, in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
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
    """The id of its author in the other chat; None: it was sent in the network."""
    name: str | None = None


class Pairs:
    """A context. Losing the file does no harm to later messages; only edits and threads of older
    ones are no longer recognised."""

    def __init__(self, path: Path | None):
        """None: in memory."""
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.executescript(f"PRAGMA journal_mode=WAL; {_TABLE}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._db.close()

    def put(self, pair: Pair) -> None:
        self._db.execute("INSERT OR REPLACE INTO pair VALUES (?, ?, ?, ?)", pair)

    def theirs(self, ours: str) -> str | None:
        pair = self._select("ours", ours)
        return pair.theirs if pair else None

    def by_theirs(self, theirs: str) -> Pair | None:
        return self._select("theirs", theirs)

    def _select(self, column: str, value: str) -> Pair | None:
        with closing(self._db.execute(f"SELECT * FROM pair WHERE {column} = ?", (value,))) as rows:
            row = rows.fetchone()
        return None if row is None else Pair(*row)
