"""Uploads that are under way: in memory, with their bytes in the folder of contents.

When the hub ends they are over: what has come in is removed at the next start.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.mods.files.words import File, Upload
from hubbub.protocol.codes import ErrorCode

__all__ = ["MOST_OPEN", "Coming", "Content", "Uploads"]

MOST_OPEN = 500
"""Uploads of everybody together."""


class Content(NamedTuple):
    """What a file is, as its bytes say."""

    sha256: str
    media_type: str
    text: str
    """How its text begins, for a search."""
    lines: int
    no_text: str
    cut: bool


@dataclass(eq=False, slots=True)
class Coming:
    """A file on its way."""

    id: str
    owner: str
    thread: str | None
    name: str
    size: int
    media_type: str | None
    sha256: str | None
    outside: bool
    received: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call that does something with it."""
    content: Content | None = None
    """What has come in, once it lies among the contents."""
    file: File | None = None
    """What it has become: whoever asks again is told the same."""
    over: bool = False
    """It was given up."""

    def told(self) -> Upload:
        return Upload(upload=self.id, name=self.name, size=self.size, received=self.received)


class Uploads:
    """All of them, by id."""

    def __init__(self) -> None:
        self._all: dict[str, Coming] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begin(
        self,
        owner: str,
        thread: str | None,
        name: str,
        size: int,
        media_type: str | None = None,
        sha256: str | None = None,
        *,
        outside: bool = True,
    ) -> Coming:
        """A new one. Its id is nothing that a hub which ran before can have given to another."""
        id = f"u{secrets.token_hex(8)}"
        coming = Coming(id, owner, thread, name, size, media_type, sha256, outside)
        self._all[id] = coming
        return coming

    def find(self, owner: str, id: str) -> Coming:
        """One of the owner's own. Raises `OperationError` for others as for none."""
        found = self._all.get(id)
        if found is None or found.owner != owner or found.over:
            raise OperationError(
                ErrorCode.NOT_FOUND,
                f"you have no upload {id}: it was given up, or the hub began anew; begin it again",
            )
        return found

    def get(self, id: str) -> Coming | None:
        return self._all.get(id)

    def end(self, coming: Coming) -> None:
        """It is over, and holds no room any more."""
        coming.over = True
        self._all.pop(coming.id, None)

    def open_of(self, owner: str | None = None) -> Collection[Coming]:
        """Those that are no files yet, of one participant or of all."""
        return [
            each
            for each in self._all.values()
            if each.file is None and (owner is None or each.owner == owner)
        ]
