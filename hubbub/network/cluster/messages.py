"""What gateways and the owner of a network tell each other on a link.

A message is an array in MessagePack, after its length in four bytes. Sessions have the numbers that
their gateway gave them, for as long as it runs. A link keeps the order: who hears of a commit has
heard of everything that the owner had said before it.
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
    "Gone",
    "Greeting",
    "Joining",
    "Leaving",
    "MemberChanged",
    "PeerFrame",
    "PresenceChanged",
    "ReadPage",
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
    """Either: a sign of life."""


# From a gateway ---------------------------------------------------------------------------------


class Joining(Struct, array_like=True, tag=1):
    """A peer identifies; or a session goes on that another owner, or this one, has known."""

    no: int
    address: str
    frame: bytes
    """Its `identify`; of a session that goes on with a cursor at the last event it has sent."""
    since_s: float | None = None
    """Of a session that goes on: how long ago it joined."""


class PeerFrame(Struct, array_like=True, tag=2):
    """A frame of a peer that has joined: a call or a signal."""

    no: int
    frame: bytes


class Acked(Struct, array_like=True, tag=3):
    """A session's participant has everything up to `seq`; `wakes`: among it are wakes."""

    no: int
    seq: int
    wakes: bool


class Gone(Struct, array_like=True, tag=4):
    """A session is over."""

    no: int


class ReadPage(Struct, array_like=True, tag=5):
    """Asks for events of the log, as `Gateway.events_of` has them."""

    id: int
    participant: str
    kind: Kind
    observe: bool
    after: int
    upto: int
    limit: int


class ShownPresence(Struct, array_like=True, tag=6):
    """Participants whom the last owner has shown as present, here or at other gateways."""

    participants: list[str]


class Silent(Struct, array_like=True, tag=7):
    """A socket of the participant was closed because it has answered no ping."""

    participant: str


FromGateway: TypeAlias = (
    Alive | Joining | PeerFrame | Acked | Gone | ReadPage | ShownPresence | Silent
)


# From the owner ---------------------------------------------------------------------------------


class Greeting(Struct, array_like=True, tag=1):
    """The first message: what a gateway must know of the network."""

    link: int
    """The number of the link at the owner."""
    epoch: str
    run: str
    head: int
    hello: bytes
    """What peers are greeted with."""
    limits: bytes
    """`Limits` as JSON."""
    open_to_all: bool
    """Whether it is a network without tokens."""
    hosts: list[str]
    compression: bool
    reads: list[str]
    """Names of the operations that only read."""
    operations: str
    """A digest of what may be called: the same with every owner, or peers must join anew."""


class Write(Struct, array_like=True, tag=2):
    """A frame for the peers of these sessions; an `ephemeral` one is dropped if they are behind."""

    nos: list[int]
    frame: bytes
    ephemeral: bool


class AnswerFrame(Struct, array_like=True, tag=3):
    """The answer to the call `ref`; `ref` is empty if the frame answers none."""

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
    """Those that its participant is a member of."""
    ready: bytes
    """The frame for the peer; empty for a session that goes on."""


class ClosedByOwner(Struct, array_like=True, tag=5):
    """A session is over, because the owner wants it so."""

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
    """Whose members receive it; -1: its `recipients` do."""
    recipients: list[str]
    wakes: Mapping[str, bytes]
    """By participant: the part of the event that is its wake."""
    link: int
    """With `no` the session that has said it; 0: no gateway's."""
    no: int


class MemberChanged(Struct, array_like=True, tag=7):
    """Somebody is a member of a scope from now on, or no more."""

    participant: str
    scope: int
    joined: bool


class EventPage(Struct, array_like=True, tag=8):
    """The answer to `ReadPage`."""

    id: int
    events: list[StoredEvent]


class Unreadable(Struct, array_like=True, tag=9):
    """The other answer to it. `damaged`: the position of an entry that is not what was written."""

    id: int
    reason: str
    damaged: int | None = None


class Leaving(Struct, array_like=True, tag=10):
    """The owner stops: it answers what it has taken, and takes nothing more."""


class PresenceChanged(Struct, array_like=True, tag=11):
    """Everybody was shown that these have come, and those have gone."""

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
