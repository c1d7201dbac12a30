"""The rows of the mod `threads`, and what memory keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hubbub.mods.fields import time_of
from hubbub.mods.host import Host
from hubbub.mods.rows import Statement
from hubbub.mods.threads.schemas import Choice, ThreadChoice, ThreadState
from hubbub.protocol import thread_ids

__all__ = [
    "Chosen",
    "ThreadRepository",
    "ThreadRow",
    "amended",
    "choice_schema",
    "chosen",
    "reopened",
    "resolved",
    "titled",
    "unchosen",
    "with_resolved",
    "with_title",
]


class ThreadRow(NamedTuple):
    """What was said about a thread."""

    title: str | None = None
    titled_by: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None
    amendments: int = 0
    """Edits and deletions in it."""

    def to_schema(self, thread: str) -> ThreadState:
        return ThreadState(
            thread_id=thread,
            title=self.title,
            titled_by=self.titled_by,
            resolved_by=self.resolved_by,
            resolved_at=time_of(self.resolved_at),
        )


class Chosen(NamedTuple):
    """What a participant has said about a thread, or one that it stands in."""

    choice: Choice
    thread: str


def with_title(row: ThreadRow, title: str | None, by: str | None) -> ThreadRow:
    return row._replace(title=title, titled_by=by)


def with_resolved(row: ThreadRow, by: str | None = None, at: float | None = None) -> ThreadRow:
    return row._replace(resolved_by=by, resolved_at=at)


def choice_schema(thread: str, found: Chosen | None) -> ThreadChoice:
    return ThreadChoice(
        thread_id=thread,
        followed=found is not None and found.choice == "followed",
        muted=found is not None and found.choice == "muted",
        chosen_in=None if found is None else found.thread,
    )


def titled(thread: str, title: str | None, by: str | None) -> Statement:
    return Statement(
        "INSERT INTO threads_thread (thread, title, titled_by) VALUES (?, ?, ?) ON CONFLICT "
        "(thread) DO UPDATE SET title = excluded.title, titled_by = excluded.titled_by",
        (thread, title, by),
    )


def resolved(thread: str, by: str, at: float) -> Statement:
    return Statement(
        "INSERT INTO threads_thread (thread, resolved_by, resolved_at) VALUES (?, ?, ?) ON CONFLICT"
        " (thread) DO UPDATE SET resolved_by = excluded.resolved_by, "
        "resolved_at = excluded.resolved_at",
        (thread, by, at),
    )


def reopened(thread: str) -> Statement:
    return Statement(
        "UPDATE threads_thread SET resolved_by = NULL, resolved_at = NULL WHERE thread = ?",
        (thread,),
    )


def amended(thread: str) -> Statement:
    """One more edit or deletion in the thread."""
    return Statement(
        "INSERT INTO threads_thread (thread, amendments) VALUES (?, 1) "
        "ON CONFLICT (thread) DO UPDATE SET amendments = amendments + 1",
        (thread,),
    )


def chosen(thread: str, participant: str, choice: Choice) -> Statement:
    return Statement(
        "INSERT OR REPLACE INTO threads_choice (thread, participant, choice) VALUES (?, ?, ?)",
        (thread, participant, choice),
    )


def unchosen(thread: str, participant: str) -> Statement:
    return Statement(
        "DELETE FROM threads_choice WHERE thread = ? AND participant = ?", (thread, participant)
    )


class ThreadRepository:
    """What is durable, as memory has it: read at the start, and changed after the commit."""

    def __init__(self, host: Host):
        self._host = host
        self._rows: dict[str, ThreadRow] = {}
        self._choices: dict[str, dict[str, Choice]] = {}
        """By thread and participant."""

    async def read(self) -> None:
        """All that is stored."""
        columns = "thread, title, titled_by, resolved_by, resolved_at, amendments"
        for thread, *rest in await self._host.rows(f"SELECT {columns} FROM threads_thread"):
            self._rows[thread] = ThreadRow(*rest)
        sql = "SELECT thread, participant, choice FROM threads_choice"
        for thread, participant, choice in await self._host.rows(sql):
            self._choices.setdefault(thread, {})[participant] = choice

    async def read_again(self, thread: str) -> ThreadRow:
        """What is stored of a thread."""
        found = await self._host.rows(
            "SELECT title, titled_by, resolved_by, resolved_at, amendments FROM threads_thread "
            "WHERE thread = ?",
            thread,
        )
        return ThreadRow(*found[0]) if found else ThreadRow()

    def row(self, thread: str) -> ThreadRow:
        return self._rows.get(thread, _NOTHING)

    def put(self, thread: str, row: ThreadRow) -> None:
        self._rows[thread] = row

    def choose(self, thread: str, participant: str, choice: Choice | None) -> None:
        of = self._choices.setdefault(thread, {})
        if choice is None:
            of.pop(participant, None)
        else:
            of[participant] = choice
        if not of:
            del self._choices[thread]

    @property
    def chosen(self) -> bool:
        """Whether anybody follows or has muted anything."""
        return bool(self._choices)

    def own(self, thread: str, participant: str) -> Choice | None:
        """What a participant has said about just this thread."""
        return self._choices.get(thread, {}).get(participant)

    def of(self, participant: str) -> Sequence[str]:
        """The threads about which a participant has said something."""
        return [thread for thread, of in self._choices.items() if participant in of]

    def choice(self, thread: str, participant: str) -> Chosen | None:
        """What holds for a participant in a thread: what it has said about that one, or else about
        the nearest one in which that stands."""
        for each in _upwards(thread):
            own = self.own(each, participant)
            if own is not None:
                return Chosen(own, each)
        return None


_NOTHING = ThreadRow()


def _upwards(thread: str) -> Iterator[str]:
    up: str | None = thread
    while up is not None:
        yield up
        up = thread_ids.parent(up)
