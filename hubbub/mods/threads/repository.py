"""The rows of the mod `threads`, and what memory keeps of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from hubbub.mods.host import Host
from hubbub.mods.repository import put
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
    "said_of",
]


class ThreadRow(NamedTuple):
    """What was said about a thread."""

    title: str | None = None
    titled_by: str | None = None
    resolved_by: str | None = None
    resolved_at: float | None = None
    amendments: int = 0
    """Edits and deletions in it."""

    def but(self, values: Mapping[str, str | float | None]) -> ThreadRow:
        return ThreadRow(**{**self._asdict(), **values})

    def to_schema(self, thread: str) -> ThreadState:
        return ThreadState(thread_id=thread, **self._asdict())


class Chosen(NamedTuple):
    """What a participant has said about a thread, or one that it stands in."""

    choice: Choice
    thread: str


def choice_schema(thread: str, found: Chosen | None) -> ThreadChoice:
    return ThreadChoice(
        thread_id=thread,
        followed=found is not None and found.choice == "followed",
        muted=found is not None and found.choice == "muted",
        chosen_in=None if found is None else found.thread,
    )


def said_of(thread: str, **values: str | float | None) -> Statement:
    """What is said of a thread: fields of `ThreadRow`."""
    return put("threads_thread", "thread", thread=thread, **values)


def amended(thread: str) -> Statement:
    """One more edit or deletion in the thread."""
    sql = (
        "INSERT INTO threads_thread (thread, amendments) VALUES (?, 1) "
        "ON CONFLICT (thread) DO UPDATE SET amendments = amendments + 1"
    )
    return Statement(sql, (thread,))


def chosen(thread: str, participant: str, choice: Choice | None) -> Statement:
    """None: nothing any more."""
    if choice is None:
        sql = "DELETE FROM threads_choice WHERE thread = ? AND participant = ?"
        return Statement(sql, (thread, participant))
    sql = "INSERT OR REPLACE INTO threads_choice (thread, participant, choice) VALUES (?, ?, ?)"
    return Statement(sql, (thread, participant, choice))


_COLUMNS = ", ".join(ThreadRow._fields)


class ThreadRepository:
    """What is durable, as memory has it: read at the start, and changed after the commit."""

    def __init__(self, host: Host):
        self._host = host
        self._rows: dict[str, ThreadRow] = {}
        self._choices: dict[str, dict[str, Choice]] = {}
        """By thread and participant."""

    async def read(self) -> None:
        """All that is stored."""
        for thread, *rest in await self._host.rows(
            f"SELECT thread, {_COLUMNS} FROM threads_thread"
        ):
            self._rows[thread] = ThreadRow(*rest)
        sql = "SELECT thread, participant, choice FROM threads_choice"
        for thread, participant, choice in await self._host.rows(sql):
            self._choices.setdefault(thread, {})[participant] = choice

    async def read_again(self, thread: str) -> ThreadRow:
        """What is stored of a thread."""
        sql = f"SELECT {_COLUMNS} FROM threads_thread WHERE thread = ?"
        found = await self._host.rows(sql, thread)
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
