"""The frames of `hubbub.v1`: JSON text over WebSocket, distinguished by `op`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter

from hubbub.protocol.messages import (
    Card,
    Channel,
    Id,
    Kind,
    Message,
    Model,
    Name,
    OperationInfo,
    Participant,
    PendingWake,
    ThreadRef,
    ThreadSummary,
    Wake,
)

__all__ = [
    "LONGEST_TOKEN",
    "STRANGER_BYTES",
    "STRANGER_FRAMES",
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
"""Longer than any log."""
STRANGER_BYTES = 16 * 1024
"""Limit for a frame before `ready`."""
STRANGER_FRAMES = 10
"""Limit for the number of frames before `ready`."""

Ref = Annotated[str, Field(min_length=1, max_length=64)]
Cid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]


class Cursor(Model):
    """A position in a log."""

    epoch: Annotated[str, Field(max_length=64)]
    """Identifies the log."""
    seq: int = Field(ge=0, le=MAX_SEQ)
    """The position."""
    run: Annotated[str, Field(max_length=64)] | None = None
    """`hello.run` of the connection on which the client reached the position. It distinguishes a
    log that was restored to an older state, and has grown again, from the one that the client
    saw."""
    received: int | None = Field(default=None, ge=0, le=MAX_SEQ)
    """The last event that the client received, if beyond the position: repeated events do not count
    as unacknowledged."""


class LimitsInfo(Model):
    """The hub's limits, in `hello`."""

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
    """Supported versions."""
    network: str
    """Its name."""
    epoch: str
    """Identifies the log."""
    run: str | None = None
    """This run of the hub, for use in cursors."""
    heartbeat_s: float
    """Seconds of silence after which the hub sends a ping."""
    limits: LimitsInfo
    """The hub's limits."""


LONGEST_TOKEN = 512
"""Characters."""


class Identify(Model):
    """client: join; with a cursor, resume."""

    op: Literal["identify"] = "identify"
    version: Annotated[str, Field(max_length=64)]
    """hubbub.v1"""
    participant: Id
    """The participant that joins."""
    kind: Kind
    """Its kind, which cannot change."""
    token: Annotated[str, Field(max_length=LONGEST_TOKEN)] | None = None
    """Proof of identity, if the network requires it."""
    card: Card | None = None
    """The participant's card for others; left out: as before."""
    cursor: Cursor | None = None
    """The last event that the client has safely; left out: the hub's own cursor."""
    turns: bool = False
    """Whether the client records its turns (`begin_turn`, `end_turn`). Then a wake stays pending
    until its turn ends; otherwise the acknowledgement of the event settles it."""
    latest: bool = False
    """Without a valid cursor, start at the head of the log instead of the hub's own cursor:
    `ready.threads` has the current state, and earlier events are not sent."""
    observe: bool = False
    """Stream the whole log instead of only the participant's messages (admin only). An observer
    receives no messages itself: it is not listed, not present, never woken. Without a cursor it
    starts at the head."""


class Ready(Model):
    """hub: the answer to `identify`; the catch-up from `cursor` starts after this frame."""

    op: Literal["ready"] = "ready"
    participant: str
    """The participant that joined."""
    kind: Kind
    resumed: bool
    """False: discard your state and start over."""
    head: int
    """The last position of the log."""
    cursor: int
    """Where the stream starts: the first event's `prev`."""
    threads: tuple[ThreadSummary, ...] = ()
    """The participant's threads as of `cursor`, most recently active first."""
    pending: tuple[PendingWake, ...] = ()
    """Wakes up to `cursor` whose turns have not ended."""
    participants: tuple[Participant, ...] = ()
    """All participants."""
    channels: tuple[Channel, ...] = ()
    """All channels."""
    operations: tuple[OperationInfo, ...] = ()
    """The operations you can call, without JSON Schemas."""
    left_out: tuple[Literal["participants", "channels"], ...] = ()
    """Lists that are empty because the network is large: use `list_participants` and
    `list_channels`."""


class Call(Model):
    """client: call an operation. Several calls can be in flight."""

    op: Literal["call"] = "call"
    ref: Ref
    """Chosen by the client, repeated in the answer."""
    name: Name
    """The operation."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments."""
    cid: Cid | None = None
    """Makes a write idempotent: the same sender and cid returns the first result."""


class Result(Model):
    """hub: the answer to a call; after the commit, if the operation writes."""

    op: Literal["result"] = "result"
    ref: str
    """From the call."""
    value: JsonValue = None
    """The operation's output."""
    duplicate: bool = False
    """The call is a repetition; this is its first result."""


class ErrorFrame(Model):
    """hub: a call or frame was refused. The socket stays open."""

    op: Literal["error"] = "error"
    ref: str | None = None
    """The refused call; left out if the frame was not a call."""
    code: str
    """For programs."""
    message: str
    """For people and models: the problem and the remedy."""
    temporary: bool = False
    """The same call may succeed later."""
    retry_after_s: float | None = None
    """Seconds until then."""
    details: dict[str, JsonValue] = Field(default_factory=dict)
    """More for programs, by code."""


class Event(Model):
    """hub: one log entry for this participant."""

    op: Literal["event"] = "event"
    seq: int
    """Its position in the log: what to acknowledge."""
    prev: int
    """`seq` of the previous event on this stream, to verify that nothing is missing."""
    tseq: int
    """Its position in the thread."""
    message: Message
    """The message."""
    wake: Wake | None = None
    """Present if the message starts a turn of this participant."""


class Ack(Model):
    """client: everything up to `seq` is safe with the client."""

    op: Literal["ack"] = "ack"
    seq: int = Field(ge=0, le=MAX_SEQ)


class Signal(Model):
    """both: ephemeral signals (typing, activity, presence, partial text); never stored, dropped
    first.

    The hub adds `sender` to signals that it forwards, and sends these itself:

    `presence`, to everyone: participants that came (data: `online`, a list of participants) and
    went (`offline`, a list of ids).

    `moving`: the hub that owns the network is changing, and the gateway of this socket waits for
    the next one (data: `state`, `moving` or `moved`). Calls in between are answered after that.

    `caught_up`: after a `ready` whose cursor was behind its head, all missed events have been
    sent.

    `read`, to a participant's other connections: how far the participant (`sender`) has read the
    thread (data: `upto`, a `tseq`, which can move back).

    `delivered`, to people, about once a second: cursors that moved (data: `seq` by participant,
    which has everything up to there).

    `channel`, to people: a channel is new or its members changed (data: `name`, `description`,
    `members`), at most once in 0.1 s per channel.

    `try_turn`, to an agent that records its turns: ask the model for the first step of a recorded
    turn again (data: `request`, `turn`, `within_s`, and `system_prompt` and `model` in place of
    the recorded ones), and answer with `turn_tried`. It must have no other effect.

    `stop_turns`, to an agent: some of its turns were ended (data: `turns`, their ids, `code` such
    as `stopped` or `taken_over`, `by` and `reason`); it cancels its work on them.

    `stops`, to people: the standing stops (data: `stops`, as from `list_stops`, and `breakers`, as
    from `list_breakers`), on every change, and on joining if there are any.

    `takeovers`, to people: the current takeovers (data: `takeovers`), likewise.

    `overheard`, to the person who took over an agent: a message that reached the agent (data: an
    `ObservedMessage`).

    `approval`, to its approvers, owners and its agent: an approval is new or has changed (data: an
    `Approval`); approvers also get the pending ones when they join.

    `activity` without a thread, to people: an agent (`sender`) began to work in some thread, or
    works in none, as when it only waits for approval (data: `state`, `working` or `idle`).

    `turn_ended`, to people who read the turn's thread: the turn ended (data: `turn`, `agent`,
    `outcome`), in any way.

    Mods send `mod.NAME`: something in the thread changed (data: `kind` and `data`).

    Participants can send any other type that others understand; these have a common meaning:

    `typing` in a thread: a person is writing there. It ends with the message, or after some
    seconds without a repetition.

    `activity` in a thread: what an agent is doing there. Data: `state`, and with it `turn`, the id
    from the wake, and `step`, the number of the step, from 1. `thinking`: the model is working, or
    a handler is running. `calling`: tools are running; `tool` names them. `waiting`: for an
    answer; `for` names the participant, or is `approval`. `idle`: the turn ended, in any way. The
    hub repeats it, with `age_s`, to a person who joins; an agent that lost its connection sends it
    again.

    `partial`: the text that an agent is about to send to a thread (data: `turn`, `step`, `text` so
    far, `to` if it names one), until the message itself or its `activity` `idle`. If a mod checks
    messages, the hub forwards none of these, as no mod has seen their text.
    """

    op: Literal["signal"] = "signal"
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,31}$")]
    """For example typing or activity."""
    thread_id: ThreadRef | None = None
    """The thread; left out: for everyone."""
    sender: Name | None = None
    """Added by the hub."""
    data: JsonValue = None
    """Depends on the type."""
    age_s: float | None = None
    """Added by the hub to repeated signals: seconds since the original."""

    def encoded(self) -> bytes:
        """The frame as bytes."""
        return self.model_dump_json(exclude_none=True).encode()


class Reconnect(Model):
    """hub: draining; reconnect, with jitter."""

    op: Literal["reconnect"] = "reconnect"
    after_s: float
    """Seconds."""


ClientFrame = Identify | Call | Ack | Signal
HubFrame = Hello | Ready | Result | ErrorFrame | Event | Signal | Reconnect

hub_frames: TypeAdapter[HubFrame] = TypeAdapter(
    Annotated[HubFrame, Field(discriminator="op")], config=ConfigDict(defer_build=True)
)
"""Validates frames of a hub; clients read them with `hub_frames.validate_json`."""
