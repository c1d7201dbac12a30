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
"""No log gets longer."""
STRANGER_BYTES = 16 * 1024
"""Of a frame before `ready`."""
STRANGER_FRAMES = 10
"""Frames that are answered before `ready`."""

Ref = Annotated[str, Field(min_length=1, max_length=64)]
Cid = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]


class Cursor(Model):
    """A position in one incarnation of the log."""

    epoch: Annotated[str, Field(max_length=64)]
    """Which incarnation."""
    seq: int = Field(ge=0, le=MAX_SEQ)
    """The position."""
    run: Annotated[str, Field(max_length=64)] | None = None
    """`hello.run` of the connection on which the client came there. It tells a log that was put
    back to an older state, and has grown again, from the one that the client knows."""
    received: int | None = Field(default=None, ge=0, le=MAX_SEQ)
    """The last event that the client has seen, if it was beyond the position: what comes again
    takes no room among the unacknowledged."""


class LimitsInfo(Model):
    """What the hub accepts, as `hello` says."""

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
    """Those that the hub speaks."""
    network: str
    """Its name."""
    epoch: str
    """The log's incarnation."""
    run: str | None = None
    """This run of the hub: goes into cursors."""
    heartbeat_s: float
    """Seconds of silence after which the hub sends a ping."""
    limits: LimitsInfo
    """What the hub accepts."""


class Identify(Model):
    """client: join; with a cursor, resume."""

    op: Literal["identify"] = "identify"
    version: Annotated[str, Field(max_length=64)]
    """hubbub.v1"""
    participant: Id
    """Who joins."""
    kind: Kind
    """What it is; a participant keeps its kind."""
    token: Annotated[str, Field(max_length=512)] | None = None
    """What proves it, where the network wants that."""
    card: Card | None = None
    """What others see of the participant; left out: as before."""
    cursor: Cursor | None = None
    """The last event that is safely with the client; left out, the hub's own cursor counts."""
    turns: bool = False
    """Whether the client records its turns (`begin_turn`, `end_turn`): then a wake stays pending
    until its turn has ended; otherwise the acknowledgement of the event settles it."""
    latest: bool = False
    """Without a cursor that can be resumed, start at the head of the log instead of the hub's own
    cursor: `ready.threads` is the present state, and nothing is caught up with."""
    observe: bool = False
    """Stream the whole log instead of one's own messages (admin only). An observer is nobody's
    recipient: not listed, not present, never woken. Without a cursor it starts at the head."""


class Ready(Model):
    """hub: the answer to `identify`; the catch-up from `cursor` starts after this frame."""

    op: Literal["ready"] = "ready"
    participant: str
    """Who has joined."""
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
    """Everybody."""
    channels: tuple[Channel, ...] = ()
    """All channels."""
    operations: tuple[OperationInfo, ...] = ()
    """What may be called, without JSON Schemas."""
    left_out: tuple[Literal["participants", "channels"], ...] = ()
    """Lists that are empty here because the network is large: `list_participants` and
    `list_channels` have them."""


class Call(Model):
    """client: ask for an operation. Several may be in flight."""

    op: Literal["call"] = "call"
    ref: Ref
    """Chosen by the client, repeated in the answer."""
    name: Name
    """The operation."""
    args: dict[str, JsonValue] = Field(default_factory=dict)
    """Its arguments."""
    cid: Cid | None = None
    """Makes a write idempotent: the same sender and cid gives the first result again."""


class Result(Model):
    """hub: the answer to a call; after the commit, if the operation writes."""

    op: Literal["result"] = "result"
    ref: str
    """That of the call."""
    value: JsonValue = None
    """As the operation says."""
    duplicate: bool = False
    """The call was done before; this is what it was answered then."""


class ErrorFrame(Model):
    """hub: a call or frame was refused. The socket stays open."""

    op: Literal["error"] = "error"
    ref: str | None = None
    """The call that was refused; left out: a frame that was none."""
    code: str
    """For programs."""
    message: str
    """For people and models: what is wrong and what to do."""
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
    """`seq` of the event before it on this stream: a client can prove that nothing is missing."""
    tseq: int
    """Its position in the thread."""
    message: Message
    """What was said."""
    wake: Wake | None = None
    """The hub wants a turn of this participant."""


class Ack(Model):
    """client: everything up to `seq` is safely with me."""

    op: Literal["ack"] = "ack"
    seq: int = Field(ge=0, le=MAX_SEQ)


class Signal(Model):
    """both: ephemeral news (typing, activity, presence, partial text); never stored, dropped first.

    The hub adds `sender` to what it passes on, and says these itself:

    `presence`: everybody is told who came (data: `online`, a list of participants) and who went
    (`offline`, a list of ids).

    `moving`: the hub that owns the network is changing, and the gateway that holds this socket
    waits for the next one (data: `state`, `moving` or `moved`). Calls in between are answered then.

    `caught_up`: after a `ready` whose cursor was behind its head, all that was missed has been
    sent.

    `read`: the other connections of a participant (`sender`) are told how far it has read the
    thread (data: `upto`, a `tseq`; it may have moved back).

    `delivered`: people are told, about once a second, whose cursors have moved (data: `seq` by
    participant; it has everything up to there).

    `channel`: people are told that a channel is new or has other members (data: `name`,
    `description`, `members`), at most once in 0.1 s for each channel.

    `try_turn`: an agent that records its turns is asked to put the question of one to its model
    once more (data: `request`, `turn`, `within_s`, and `system_prompt` and `model` in place of the
    recorded ones), and to answer with `turn_tried`. Nothing else may come of it.

    `stop_turns`: an agent is told that turns of its have been ended (data: `turns`, their ids,
    `code` such as `stopped` or `taken_over`, `by` and `reason`): whatever runs for them is
    cancelled.

    `stops`: people are told what is stopped (data: `stops`, as `list_stops` tells them, and
    `breakers`, as `list_breakers` does) whenever that changes, and when they join while there is
    anything.

    `takeovers`: people are told who speaks for which agent (data: `takeovers`), in the same way.

    `overheard`: who speaks for an agent is told what reaches it (data: an `ObservedMessage`).

    `approval`: those who may decide it, owners and its agent are told of an approval that is asked
    for or has changed (data: an `Approval`); who may decide is told those that are pending when it
    joins.

    `activity` without a thread: people are told that an agent (`sender`) has begun to work
    somewhere, or no longer works anywhere (data: `state`, `working` or `idle`).

    `turn_ended`: people who read the thread of a turn are told that it is over (data: `turn`,
    `agent`, `outcome`), however it ended.

    Participants say whatever others understand; these have a meaning for everybody:

    `typing` in a thread: a person is writing there. It is over when the message comes, or after
    some seconds in which it was not said again.

    `activity` in a thread: what an agent does there. Data: `state`, and with it `turn`, the id that
    the wake gave it, and `step`, the number of the step, from 1. `thinking`: the model is asked, or
    a handler runs. `calling`: tools run; `tool` names them. `waiting`: for somebody's answer; `for`
    names whom. `idle`: the turn is over, however it ended. The hub tells it again, with `age_s`, to
    a person who joins; an agent that has lost its connection says it once more.

    `partial`: an agent tells a thread what it is about to say there (data: `turn`, `step`, `text`
    so far, `to` if it names one), until the message itself comes or its `activity` is `idle`. Where
    a mod judges messages, the hub passes none of them on: no mod has seen what they say.
    """

    op: Literal["signal"] = "signal"
    type: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,31}$")]
    """For example typing or activity."""
    thread_id: ThreadRef | None = None
    """Where; left out: everybody gets it."""
    sender: Name | None = None
    """Added by the hub."""
    data: JsonValue = None
    """Whatever belongs to the type."""
    age_s: float | None = None
    """Added by the hub to what it tells again: the seconds since it was said."""

    def encoded(self) -> bytes:
        """As it travels."""
        return self.model_dump_json(exclude_none=True).encode()


class Reconnect(Model):
    """hub: draining; come back, with jitter."""

    op: Literal["reconnect"] = "reconnect"
    after_s: float
    """Seconds."""


ClientFrame = Identify | Call | Ack | Signal
HubFrame = Hello | Ready | Result | ErrorFrame | Event | Signal | Reconnect

hub_frames: TypeAdapter[HubFrame] = TypeAdapter(
    Annotated[HubFrame, Field(discriminator="op")], config=ConfigDict(defer_build=True)
)
"""Validates what a hub sends; clients read frames with `hub_frames.validate_json`."""
