"""The frames of `hubbub.v1`: JSON text over WebSocket, told apart by `op`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from hubbub.protocol.messages import (
    Card,
    Channel,
    Id,
    Kind,
    Message,
    Model,
    OperationInfo,
    Participant,
    PendingWake,
    ThreadSummary,
    Wake,
)

__all__ = [
    "VERSION",
    "Ack",
    "Call",
    "ClientFrame",
    "Cursor",
    "ErrorFrame",
    "Event",
    "Hello",
    "HubFrame",
    "Identify",
    "LimitsInfo",
    "Ready",
    "Reconnect",
    "Result",
    "Signal",
    "hub_frames",
]

VERSION = "hubbub.v1"
MAX_SEQ = 2**62
"""No log gets longer."""

Ref = Annotated[str, Field(min_length=1, max_length=64)]
Cid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]


class Cursor(Model):
    """A position in one incarnation of the log."""

    epoch: str
    seq: int = Field(ge=0, le=MAX_SEQ)


class LimitsInfo(Model):
    """What the hub accepts, told in `hello`."""

    frame_bytes: int
    json_depth: int
    text_bytes: int
    calls_per_second: float
    burst: int
    channels: int
    thread_depth: int
    unacknowledged: int


class Hello(Model):
    """hub: the first frame on every socket."""

    op: Literal["hello"] = "hello"
    versions: tuple[str, ...] = (VERSION,)
    network: str
    epoch: str
    """The log's incarnation."""
    heartbeat_s: float
    limits: LimitsInfo


class Identify(Model):
    """client: join; with a cursor, resume."""

    op: Literal["identify"] = "identify"
    version: str
    participant: Id
    kind: Kind
    token: str | None = None
    card: Card | None = None
    cursor: Cursor | None = None
    """The last event that is safely with the client; left out, the hub's own cursor counts."""
    turns: bool = False
    """Whether the client records its turns (`begin_turn`, `end_turn`): then a wake stays pending
    until its turn has ended; otherwise the acknowledgement of the event settles it."""
    observe: bool = False
    """Stream the whole log instead of one's own messages (admin only). An observer is nobody's
    recipient: not listed, not present, never woken. Without a cursor it starts at the head."""


class Ready(Model):
    """hub: the answer to `identify`; the catch-up from `cursor` starts after this frame."""

    op: Literal["ready"] = "ready"
    participant: str
    kind: Kind
    resumed: bool
    """False: forget what you know, this is a fresh start."""
    head: int
    """The last position of the log."""
    cursor: int
    """Where the stream starts: the first event's `prev`."""
    threads: tuple[ThreadSummary, ...] = ()
    """The threads of the participant as they stood at `cursor`, most recently active first."""
    pending: tuple[PendingWake, ...] = ()
    """Wakes up to `cursor` whose turns have not ended."""
    participants: tuple[Participant, ...] = ()
    channels: tuple[Channel, ...] = ()
    operations: tuple[OperationInfo, ...] = ()


class Call(Model):
    """client: ask for an operation. Several may be in flight."""

    op: Literal["call"] = "call"
    ref: Ref
    """Chosen by the client, repeated in the answer."""
    name: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    cid: Cid | None = None
    """Makes a write idempotent: the same sender and cid gives the first result again."""


class Result(Model):
    """hub: the answer to a call; after the commit, if the operation writes."""

    op: Literal["result"] = "result"
    ref: str
    value: JsonValue = None
    duplicate: bool = False


class ErrorFrame(Model):
    """hub: a call or frame was refused. The socket stays open."""

    op: Literal["error"] = "error"
    ref: str | None = None
    code: str
    message: str
    temporary: bool = False
    retry_after_s: float | None = None
    details: dict[str, JsonValue] = Field(default_factory=dict)


class Event(Model):
    """hub: one log entry for this participant."""

    op: Literal["event"] = "event"
    seq: int
    prev: int
    """`seq` of the event before it on this stream: a client can prove that nothing is missing."""
    tseq: int
    message: Message
    wake: Wake | None = None


class Ack(Model):
    """client: everything up to `seq` is safely with me."""

    op: Literal["ack"] = "ack"
    seq: int = Field(ge=0, le=MAX_SEQ)


class Signal(Model):
    """both: ephemeral news (typing, activity, presence, partial text); never stored, dropped first.

    The hub adds `sender` to what it passes on. Its own are `presence` (data: `online`, a list of
    participants, and `offline`, a list of ids) and `caught_up`: after a `ready` whose cursor was
    behind its head it says once that all that was missed has been sent.
    """

    op: Literal["signal"] = "signal"
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,31}$")]
    thread_id: str | None = None
    sender: str | None = None
    data: JsonValue = None


class Reconnect(Model):
    """hub: draining; come back, with jitter."""

    op: Literal["reconnect"] = "reconnect"
    after_s: float


ClientFrame = Identify | Call | Ack | Signal
HubFrame = Hello | Ready | Result | ErrorFrame | Event | Signal | Reconnect

hub_frames: TypeAdapter[HubFrame] = TypeAdapter(Annotated[HubFrame, Field(discriminator="op")])
"""Validates what a hub sends; clients read frames with `hub_frames.validate_json`."""
