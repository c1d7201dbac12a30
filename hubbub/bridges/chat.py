"""The port of a bridge: what it needs of another chat.

    class Pigeons(Chat):
        class Config(Section):
            loft: str

        async def run(self, take): ...   # for each message there: await take(IncomingMessage(...))
        async def say(self, message): ...  # say it there

`take` returns when the network has stored what was said, so a chat that can repeat acknowledges
after it. `say` returns when the other chat has taken the message, and only then does the bridge
acknowledge it. Either may be called again for the same thing after a crash: with the same id.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from hubbub.config.units import Section
from hubbub.errors import HubbubError

__all__ = [
    "Chat",
    "ChatRefused",
    "Deleted",
    "Edited",
    "Incoming",
    "IncomingMessage",
    "Outgoing",
    "Parent",
    "Person",
    "PersonLeft",
    "Take",
]


class ChatRefused(HubbubError):
    """The other chat does not take this, now or later."""


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody of the other chat."""

    id: str
    """Who it is there: no two people have the same one."""
    name: str
    """What people call them."""


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message of the other chat."""

    id: str
    """The same each time it is told of, and of no other message."""
    person: Person
    channel: str
    """The channel there."""
    text: str
    """With participants of the network whom it addresses as `@name`."""
    thread: str | None = None
    """The message there in whose thread it stands."""
    quotes: str | None = None
    """The message there that it answers, outside of a thread."""


@dataclass(frozen=True, slots=True)
class Edited:
    """Somebody has edited a message of theirs."""

    id: str
    person: Person
    channel: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """A message of the other chat is gone, whoever has deleted it there."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class PersonLeft:
    """Somebody has left."""

    person: str
    """Their id."""


Incoming: TypeAlias = IncomingMessage | Edited | Deleted | PersonLeft
Take: TypeAlias = Callable[[Incoming], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parent:
    """The message of the network under which another one stands."""

    id: str | None
    """What it is called there; None if the other chat has no such message."""
    author: str
    """What they are called there, if they are from there."""
    text: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message of the network, to be said in the other chat."""

    id: str
    """The same each time, and of no other message of any network."""
    channel: str
    """The channel there."""
    author: str
    """The participant."""
    text: str
    """With people of the other chat named as they are there. Empty if it deletes."""
    mentions: tuple[Person, ...] = ()
    """People of the other chat."""
    thread: str | None = None
    """The message there in whose thread it belongs."""
    parent: Parent | None = None
    """What it answers: in deeper threads of the network another message than `thread`."""
    change: Literal["edited", "deleted"] | None = None
    """Whether it edits or deletes an earlier one."""
    changes: str | None = None
    """That one there; None if the other chat has no such message."""


class Chat(ABC):
    """Another chat. One object serves one run of a bridge."""

    Config: ClassVar[type[Section]] = Section
    """The bridge's `settings` in the YAML."""
    has_ids: ClassVar[bool] = False
    """Whether its messages have ids, so that edits, deletions and threads can name them. The bridge
    remembers them then, in a file."""

    def __init__(self, name: str, settings: Section, channels: Sequence[str]):
        """`name` is the bridge's, `channels` are those of the other chat. `settings` is a
        `Config`."""
        self.name, self.channels = name, channels

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it, such as `irc.example.org`."""

    @abstractmethod
    async def run(self, take: Take) -> None:
        """Listen until cancelled, and hand on what is said there in its order. Lost connections are
        taken up again. Raises `HubbubError` when that is of no use."""

    @abstractmethod
    async def say(self, message: Outgoing) -> str | None:
        """Have it said there; returns its id there, if it has one. Waits while the other chat
        cannot be reached, and raises `ChatRefused` for what it will never take."""

    async def show(self, agents: Sequence[str]) -> None:  # noqa: B027  # not all chats can
        """Let these appear in the channels, before they say anything. Without it they appear with
        their first word."""

    async def probe(self) -> str:
        """Ask the other chat whether it is there; returns a sentence. Raises `OSError` or
        `HubbubError`."""
        return f"{self.title} is not looked at"

    def setup(self) -> Mapping[str, object]:
        """What the other chat's own config needs, as a YAML file; empty if nothing."""
        return {}
