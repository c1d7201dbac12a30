"""The messages between gateways and the owner of a network.

A message is an array in MessagePack, preceded by its length in four bytes. Sessions are identified
by numbers of their gateway, unique while it runs. A link preserves order: a commit arrives after
everything that the owner sent before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.msgpack import Decoder, Encoder

from hubbub.network.stored import StoredEvent
from hubbub.protocol.messages import Kind

__all__ = [
    "Acked",
    "Alive",
    "AnswerFrame",
    "ClosedByOwner",
    "Committed",
    "EventPage",
    "FromGateway",
    "FromOwner",
    "Greeting",
    "Joining",
    "Leaving",
    "MemberChanged",
    "PeerFrame",
    "PresenceChanged",
    "ReadPage",
    "SessionGone",
    "ShownPresence",
    "Silent",
    "Started",
    "Unreadable",
    "Write",
    "encode",
    "read_from_gateway",
    "read_from_owner",
]


class Alive(Struct, array_like=True, tag=0):
    """A sign of life, in either direction."""


# From a gateway ---------------------------------------------------------------------------------


class Joining(Struct, array_like=True, tag=1):
    """A peer identifies, or a session continues after a change of owner."""

    no: int
    address: str
    frame: bytes
    """Its `identify`; for a continuing session with a cursor at the last event sent."""
    since_s: float | None = None
    """For a continuing session, how long ago it joined."""


class PeerFrame(Struct, array_like=True, tag=2):
    """A frame of a peer that has joined: a call or a signal."""

    no: int
    frame: bytes


class Acked(Struct, array_like=True, tag=3):
    """A session's participant has everything up to `seq`, including wakes if `wakes` is true."""

    no: int
    seq: int
    wakes: bool


class SessionGone(Struct, array_like=True, tag=4):
    """A session has ended."""

    no: int


class ReadPage(Struct, array_like=True, tag=5):
    """Requests events, as from `Gateway.events_of`."""

    id: int
    participant: str
    kind: Kind
    observe: bool
    after: int
    upto: int
    limit: int


class ShownPresence(Struct, array_like=True, tag=6):
    """Participants that the last owner announced as present, at this or other gateways."""

    participants: list[str]


class Silent(Struct, array_like=True, tag=7):
    """A socket of the participant was closed because it did not answer a ping."""

    participant: str


FromGateway: TypeAlias = (
    Alive | Joining | PeerFrame | Acked | SessionGone | ReadPage | ShownPresence | Silent
)


# From the owner ---------------------------------------------------------------------------------


class Greeting(Struct, array_like=True, tag=1):
    """The first message, with the data about the network that a gateway needs."""

    link: int
    """The owner's number for the link."""
    epoch: str
    run: str
    head: int
    hello: bytes
    """The `hello` frame for peers."""
    limits: bytes
    """`Limits` as JSON."""
    open_to_all: bool
    """Whether the network has no tokens."""
    hosts: list[str]
    compression: bool
    reads: list[str]
    """Names of read-only operations."""
    operations: str
    """A digest of the operations; if it changes with the owner, peers must join again."""


class Write(Struct, array_like=True, tag=2):
    """A frame for the peers of these sessions; an `ephemeral` one is dropped if they are behind."""

    nos: list[int]
    frame: bytes
    ephemeral: bool


class AnswerFrame(Struct, array_like=True, tag=3):
    """The answer to the call `ref`; `ref` is empty if the frame answers no call."""

    no: int
    ref: str
    frame: bytes


class Started(Struct, array_like=True, tag=4):
    """A session has joined, and its stream begins after `cursor`."""

    no: int
    participant: str
    kind: Kind
    cursor: int
    behind: bool
    turns: bool
    observe: bool
    received: int
    head: int
    scopes: list[int]
    """The scopes that its participant is a member of."""
    ready: bytes
    """The frame for the peer; empty for a continuing session."""


class ClosedByOwner(Struct, array_like=True, tag=5):
    """The owner closed a session."""

    no: int
    code: int
    reason: str


class Committed(Struct, array_like=True, tag=6):
    """An entry of the log."""

    seq: int
    tseq: int
    body: bytes
    """The message as JSON."""
    sender: str
    scope: int
    """The scope whose members receive it; -1 if its `recipients` do."""
    recipients: list[str]
    wakes: Mapping[str, bytes]
    """By participant: the wake part of the event."""
    link: int
    """With `no` the session that sent it; 0 if it is no gateway's."""
    no: int


class MemberChanged(Struct, array_like=True, tag=7):
    """A participant joined or left a scope."""

    participant: str
    scope: int
    joined: bool


class EventPage(Struct, array_like=True, tag=8):
    """The answer to `ReadPage`."""

    id: int
    events: list[StoredEvent]


class Unreadable(Struct, array_like=True, tag=9):
    """The failure of a `ReadPage`. `damaged`: the position of a damaged entry."""

    id: int
    reason: str
    damaged: int | None = None


class Leaving(Struct, array_like=True, tag=10):
    """The owner is stopping: it answers accepted calls, and accepts no more."""


class PresenceChanged(Struct, array_like=True, tag=11):
    """Participants that were announced as online and offline."""

    online: list[str]
    offline: list[str]


FromOwner: TypeAlias = (
    Alive
    | Greeting
    | Write
    | AnswerFrame
    | Started
    | ClosedByOwner
    | Committed
    | MemberChanged
    | EventPage
    | Unreadable
    | Leaving
    | PresenceChanged
)

encode = Encoder().encode
read_from_gateway = Decoder(FromGateway).decode
read_from_owner = Decoder(FromOwner).decode
