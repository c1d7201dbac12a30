"""Targets and mentions of a message, resolved against a directory. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Protocol

from hubbub.errors import OperationError
from hubbub.mods.operation import bad_request, over_limit
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.wording import did_you_mean, shortened

__all__ = [
    "HUB",
    "Directory",
    "Mentions",
    "check_readers",
    "find_mentions",
    "nearest",
    "resolve_target",
]


class Directory(Protocol):
    """The participants, as the router sees them."""

    def knows(self, participant: str) -> bool: ...

    def participants(self) -> Collection[str]: ...


HUB = "hub"
"""The sender of notices."""
_NO_PARTICIPANT = (
    "hub is the network itself: its notices need no answer, and no one would read one. "
    "Write to a participant (see list_participants), or don't reply"
)
MAX_COMPARED = 200
"""Names that a misspelled one is compared with; each comparison takes about 40 us."""


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint to append to an error: `; did you mean x?`, or nothing if no name is similar."""
    return f"; {_NO_PARTICIPANT}" if name == HUB else did_you_mean(name, names)


def resolve_target(to: str | Sequence[str], me: str, directory: Directory) -> str:
    """The canonical id of the thread that `to` refers to, seen from `me`.

    `to` is a participant, several (a group of at most 8 with the sender), or a thread id in either
    form. Does not check whether `me` may post in that thread. Raises `OperationError`.
    """
    if isinstance(to, str):
        if to != me and directory.knows(to):
            return thread_ids.direct((me, to))
        thread = thread_ids.canonical(to, me)
        if thread is not None:
            _check_members(thread, directory)
            return thread
        others: Iterable[str] = (to,)
    else:
        others = to
    group = set(others) - {me}
    if not group:
        raise bad_request("to: you cannot send a message only to yourself")
    for other in sorted(group):
        _check_known(other, directory)
    if len(group) >= thread_ids.MAX_GROUP:
        limit = thread_ids.MAX_GROUP
        raise over_limit(f"to: a group has at most {limit} participants; create a channel")
    return thread_ids.direct(group | {me})


def _check_members(thread: str, directory: Directory) -> None:
    for member in thread_ids.members_of(thread):
        _check_known(member, directory)


def check_readers(members: Collection[str], directory: Directory) -> None:
    """Raises `OperationError` for a thread with the hub, whose messages no one reads."""
    if HUB in members:
        _check_known(HUB, directory)


def _check_known(participant: str, directory: Directory) -> None:
    if not directory.knows(participant):
        hint = nearest(participant, directory.participants())
        shown = shortened(participant, 64)
        raise OperationError(
            ErrorCode.UNKNOWN_PARTICIPANT, f"no participant is named {shown!r}{hint}"
        )


class Mentions(NamedTuple):
    """The participants that a message mentions, and the @names that match no reader."""

    ids: tuple[str, ...]
    unresolved: tuple[str, ...]


_CODE = re.compile(r"```.*?(?:```|\Z)|``[^`\n]+``|`[^`\n]*`", re.DOTALL)
_NAME = re.compile(r"(?<![\w@./-])@([A-Za-z0-9_-]{1,64})")


def find_mentions(text: str, explicit: Sequence[str], readers: Collection[str]) -> Mentions:
    """The mentions in `text`, outside code, and the `explicit` ones (ids).

    `readers` are the recipients without the sender. An explicit id that is not a reader raises
    `OperationError`; an `@name` that is not a reader is `unresolved`.
    """
    ids: dict[str, None] = {}
    unresolved: dict[str, None] = {}
    for name in explicit:
        if name not in readers:
            hint = nearest(name, readers)
            raise OperationError(
                ErrorCode.UNKNOWN_PARTICIPANT,
                f"mentions: {name[:64]!r} does not read this thread{hint}",
            )
        ids[name] = None
    if "@" in text:
        for name in _NAME.findall(_CODE.sub(" ", text)):
            whole = _reader(name, readers)
            if whole is not None:
                ids[whole] = None
            else:
                unresolved[name] = None
    return Mentions(tuple(ids), tuple(unresolved))


def _reader(name: str, readers: Collection[str]) -> str | None:
    """The reader named `name`, ignoring trailing punctuation that ids can contain."""
    while name:
        if name in readers:
            return name
        if name[-1] not in "-_":
            return None
        name = name[:-1]
    return None
