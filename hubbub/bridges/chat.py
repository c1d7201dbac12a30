"""The port of a bridge: the interface of another chat.

    class Pigeons(Chat):
        class Config(Section):
            loft: str

        async def run(self, take): ...   # for each message: await take(IncomingMessage(...))
        async def say(self, message): ...  # send it to the other chat

`take` returns when the network has stored the event, so a chat that can redeliver acknowledges
afterwards. `say` returns when the other chat has accepted the message, and only then does the
bridge acknowledge it. After a crash, either can be called again with the same id.
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
    """The other chat refuses the message permanently."""


@dataclass(frozen=True, slots=True)
class Person:
    """A person of the other chat."""

    id: str
    """Unique in the other chat."""
    name: str
    """The display name."""


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """A message of the other chat."""

    id: str
    """Unique, and the same when the message is redelivered."""
    person: Person
    channel: str
    """The channel of the other chat."""
    text: str
    """Participants of the network are mentioned as `@name`."""
    thread: str | None = None
    """The other chat's message whose thread it is in."""
    quotes: str | None = None
    """The other chat's message that it answers outside of a thread."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A person edited their message."""

    id: str
    person: Person
    channel: str
    message: str
    text: str


@dataclass(frozen=True, slots=True)
class Deleted:
    """A message of the other chat was deleted, by its author or another person."""

    id: str
    message: str


@dataclass(frozen=True, slots=True)
class PersonLeft:
    """A person left."""

    person: str
    """The person's id."""


Incoming: TypeAlias = IncomingMessage | Edited | Deleted | PersonLeft
Take: TypeAlias = Callable[[Incoming], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Parent:
    """The message of the network that another one replies to."""

    id: str | None
    """Its id in the other chat; None if it is not there."""
    author: str
    """The name in the other chat for its people, otherwise the participant."""
    text: str


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message of the network for the other chat."""

    id: str
    """Unique across networks, and the same when the message is sent again."""
    channel: str
    """The channel of the other chat."""
    author: str
    """The participant."""
    text: str
    """With the other chat's names for its people. Empty for a deletion."""
    mentions: tuple[Person, ...] = ()
    """People of the other chat."""
    thread: str | None = None
    """The other chat's message whose thread it belongs to."""
    parent: Parent | None = None
    """The message that it answers. In nested threads of the network it differs from `thread`."""
    change: Literal["edited", "deleted"] | None = None
    """Whether it edits or deletes an earlier message."""
    changes: str | None = None
    """The id of that message in the other chat; None if it is not there."""


class Chat(ABC):
    """Another chat. Each run of a bridge has its own instance."""

    Config: ClassVar[type[Section]] = Section
    """The bridge's `settings` in the YAML."""
    has_ids: ClassVar[bool] = False
    """Whether messages have ids, so that edits, deletions and threads can refer to them. The bridge
    then stores the ids in a file."""

    def __init__(self, name: str, settings: Section, channels: Sequence[str]):
        """`name` is the bridge's name, `channels` are the other chat's channels. `settings` is a
        `Config`."""
        self.name, self.channels = name, channels

    @property
    @abstractmethod
    def title(self) -> str:
        """The display name, such as `irc.example.org`."""

    @abstractmethod
    async def run(self, take: Take) -> None:
        """Listen until cancelled, and pass events to `take` in order. Reconnects by itself. Raises
        `HubbubError` if that cannot succeed."""

    @abstractmethod
    async def say(self, message: Outgoing) -> str | None:
        """Send the message and return its id in the other chat, if it has one. Waits while the
        other chat is unreachable, and raises `ChatRefused` if it refuses the message permanently.
        """

    async def show(self, agents: Sequence[str]) -> None:  # noqa: B027  # not all chats can
        """Make agents visible in the channels before their first message, if the chat can."""

    async def probe(self) -> str:
        """Check that the other chat is reachable; returns a sentence. Raises `OSError` or
        `HubbubError`."""
        return f"{self.title} is not checked"

    def setup(self) -> Mapping[str, object]:
        """The config that the other chat's server needs, as a YAML mapping; empty if none."""
        return {}
