"""What a person asks of the mods of a network, however it was typed. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "Attach",
    "Board",
    "Claim",
    "ClosePoll",
    "CreatePoll",
    "CreateTask",
    "Delete",
    "Diff",
    "Digest",
    "Document",
    "Documents",
    "Edit",
    "Files",
    "Find",
    "Finish",
    "Get",
    "History",
    "Mute",
    "OfBoards",
    "OfFinding",
    "OfMessages",
    "OfPolls",
    "OfShelves",
    "Poll",
    "Polls",
    "React",
    "Resolve",
    "Search",
    "Task",
    "Tasks",
    "Title",
    "Vote",
    "Work",
]


# Messages and threads -----------------------------------------------------------------------------


@dataclass(frozen=True)
class React:
    message: str
    emoji: str
    """Added; or taken back, if it is there."""


@dataclass(frozen=True)
class Edit:
    message: str
    text: str


@dataclass(frozen=True)
class Delete:
    message: str
    sure: bool = False
    """False: ask first."""


@dataclass(frozen=True)
class History:
    message: str


@dataclass(frozen=True)
class Title:
    text: str
    """Empty: as the first message says."""


@dataclass(frozen=True)
class Resolve:
    resolved: bool = True


@dataclass(frozen=True)
class Mute:
    muted: bool = True


# Finding ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Search:
    query: str
    """Empty: the next page of the last one."""


@dataclass(frozen=True)
class Digest:
    since: str = "last_visit"
    """`last_visit`, or a time."""
    mark: bool = False
    """In place of another one: the next begins behind the last that was shown."""


@dataclass(frozen=True)
class Find:
    need: str


# Tasks and polls ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tasks:
    mine: bool = False
    ready: bool = False


@dataclass(frozen=True)
class Board:
    board: str | None = None
    """None: that of the open thread."""


@dataclass(frozen=True)
class Task:
    task: str


@dataclass(frozen=True)
class CreateTask:
    title: str


@dataclass(frozen=True)
class Claim:
    task: str


@dataclass(frozen=True)
class Finish:
    task: str
    result: str = ""


@dataclass(frozen=True)
class CreatePoll:
    question: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Vote:
    poll: str
    options: tuple[str, ...]
    """Texts or numbers; none: the vote is taken back."""


@dataclass(frozen=True)
class Polls:
    pass


@dataclass(frozen=True)
class Poll:
    poll: str


@dataclass(frozen=True)
class ClosePoll:
    poll: str


# Files and documents ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Files:
    pass


@dataclass(frozen=True)
class Attach:
    path: str
    """Of this machine; `~` is the home folder."""
    text: str = ""
    """What is said with it; empty: its name."""


@dataclass(frozen=True)
class Get:
    file: str
    path: str = ""
    """Where to write it: a file or a folder; empty: the current folder."""


@dataclass(frozen=True)
class Documents:
    pass


@dataclass(frozen=True)
class Document:
    document: str
    version: int | None = None
    """None: the latest."""
    line: int = 1
    """From this line on."""


@dataclass(frozen=True)
class Diff:
    document: str
    old: int | None = None
    """None: the version before `new`."""
    new: int | None = None
    """None: the latest."""


OfMessages = React | Edit | Delete | History | Title | Resolve | Mute
OfFinding = Search | Digest | Find
OfBoards = Tasks | Board | Task | CreateTask | Claim | Finish
OfPolls = CreatePoll | Vote | Polls | Poll | ClosePoll
OfShelves = Files | Attach | Get | Documents | Document | Diff
Work = OfMessages | OfFinding | OfBoards | OfPolls | OfShelves
