"""Inputs and outputs of the core's operations. Models read the descriptions.

An operation that writes a message takes `cause`: the id of the message or turn that caused it. The
hub derives interaction and hop from it, and refuses a cause that the sender never received.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, ConfigDict, Field, JsonValue

from hubbub.field_docs import Documented
from hubbub.protocol.messages import (
    Amendment,
    Channel,
    Kind,
    Message,
    MessageRef,
    MessageType,
    Model,
    Name,
    NewAttachment,
    NewQuote,
    OperationInfo,
    Participant,
    ReplyNeed,
    SenderKind,
    ThreadRef,
    ThreadSummary,
    TurnRef,
    Wake,
)
from hubbub.protocol.turns import PromptParts, Step, TurnEnd, TurnStart

__all__ = [
    "BeginTurn",
    "BeginTurnResult",
    "BroadcastTextMessage",
    "ChannelName",
    "Channels",
    "CreateChannel",
    "DescribeOperations",
    "Done",
    "EndTurn",
    "Envelope",
    "ExplainWake",
    "Input",
    "InteractionPage",
    "InteractionWake",
    "LeaveTurn",
    "ListChannels",
    "ListMentions",
    "ListParticipants",
    "ListThreads",
    "ListTurns",
    "MarkRead",
    "MarkUnread",
    "MentionPage",
    "OperationSchemas",
    "Participants",
    "PostToChannel",
    "ReadInteraction",
    "ReadMessage",
    "ReadReceipts",
    "ReadThread",
    "ReadTurn",
    "Receipt",
    "Receipts",
    "RecordStep",
    "Reply",
    "SendMessage",
    "SendResult",
    "SendTextMessage",
    "ThreadList",
    "ThreadPage",
    "TurnSummary",
    "Turns",
    "Untrusted",
    "WakeExplanation",
    "WakeResponse",
]


class Input(Documented):
    """Base of all inputs: an unknown argument is an error that names it.

    Names and lists have limits, and lists fail fast, as describing an error for each of thousands
    of items would keep the hub busy.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


Text = Annotated[str, Field(min_length=1)]
Position = Annotated[int, Field(ge=1, le=2**62)]
Recipients = Annotated[
    ThreadRef | Annotated[list[Name], Field(min_length=1, max_length=128, fail_fast=True)],
    Field(
        union_mode="left_to_right",
        description="A participant's id, a list of ids (a group), or the id of a thread.",
    ),
]


Untrusted = Annotated[bool, Field(json_schema_extra={"x-runtime": True})]
"""Whether the caller has read content from outside the network. Set by an agent's runtime, not its
model."""


class Speech(Input):
    """Options of all messages."""

    mentions: Annotated[tuple[Name, ...], Field(max_length=128, fail_fast=True)] = ()
    """Ids of participants to mention in addition to the @names in the text."""
    quote: NewQuote | None = None
    attachments: Annotated[tuple[NewAttachment, ...], Field(max_length=256, fail_fast=True)] = ()
    cause: TurnRef | None = None
    """The message (m42) or turn that caused this message."""
    on_behalf_of: Name | None = None
    """The agent that you have taken over, to send on its behalf; for people only."""
    untrusted: bool = False
    """Whether it has content from outside the network: results of tools, files. Set by the hub if
    it is set for the cause."""
    awaits: bool = False
    """Whether you are blocked until the answer. Refused if that would close a cycle of waits. For
    direct messages to one participant."""
    silent: bool = False
    """Whether it wakes no agent."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """A person's choice for a turn running in the thread: the message waits for the next turn,
    joins the running one, or ends it and starts the next. Left out: as in the agent's config."""


class SendTextMessage(Speech):
    to: Recipients
    text: Text


class SendMessage(Speech):
    to: Recipients
    content: JsonValue
    text_representation: str | None = None
    """The content as text."""


class BroadcastTextMessage(Speech):
    text: Text


class PostToChannel(Speech):
    channel: Name
    text: Text


class Reply(Speech):
    message_id: MessageRef
    """The message (m42) to reply under."""
    text: Text
    content: Annotated[JsonValue, Field(json_schema_extra={"x-runtime": True})] = None
    """JSON content; the text is then its text representation."""


class SendResult(Model):
    """A durable message."""

    id: str
    seq: int
    thread_id: str
    """Canonical id of its thread."""
    tseq: int
    present: tuple[str, ...] = ()
    """Connected recipients of a direct message and mentioned participants."""
    absent: tuple[str, ...] = ()
    """Those not connected, who receive it later."""
    queued: dict[str, int] = Field(default_factory=dict)
    """For each agent it wakes: the number of its wakes queued or in progress, including this
    one."""
    not_woken: dict[str, str] = Field(default_factory=dict)
    """For each agent it would have woken: the code of what prevented it (a budget, a stop)."""
    unresolved: tuple[str, ...] = ()
    """@names in the text that match no participant."""
    notes: tuple[str, ...] = ()
    """Notes of mods to the sender, for example that a secret was removed."""
    amends: Amendment | None = None
    """The change it makes to an earlier message, if it is an edit or a deletion."""
    message: Message
    """The message as in the log, which the hub does not send to its sender otherwise."""


class ListParticipants(Input):
    after: Name | None = None
    """Only participants after this one: the last of the previous page."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000


class Participants(Model):
    participants: tuple[Participant, ...]
    """Agents first, by name."""
    more: bool = False
    """Whether there are more after these."""


class DescribeOperations(Input):
    names: Annotated[tuple[Name, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Left out: all that you can call."""


class OperationSchemas(Model):
    operations: tuple[OperationInfo, ...]
    """With the JSON Schemas of inputs and outputs; unknown names are left out."""


class ListThreads(Input):
    before: Position | None = None
    """Only threads whose last message (`last_seq`) is before this position of the log."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    without_replies: bool = False
    """Leave out reply threads."""


class ThreadList(Model):
    threads: tuple[ThreadSummary, ...]
    more: bool = False
    """Whether there are more, less recently active."""


class ReadThread(Input):
    thread: ThreadRef
    """The thread's id, in either form."""
    before: Position | None = None
    """Only messages before this position (tseq) of the thread."""
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class ThreadPage(Model):
    thread_id: str
    messages: tuple[Message, ...]
    """Oldest first."""
    more: bool
    """Whether older messages exist."""


class MarkRead(Input):
    thread: ThreadRef
    """The thread's id, in either form."""
    upto: Position
    """The last position (tseq) that was read."""


class MarkUnread(Input):
    thread: ThreadRef
    """The thread's id, in either form."""
    since: Position
    """The first position (tseq) that counts as unread again."""


class ListMentions(Input):
    before: Position | None = None
    """Only messages before this position (seq) of the log: `upto` of the previous page."""
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class MentionPage(Model):
    messages: tuple[Message, ...]
    """Newest first."""
    upto: int
    """How far back (seq) this page was searched; an empty page need not be the last."""
    more: bool
    """Whether there are messages before `upto` that were not searched."""


class ListChannels(Input):
    pass


class Channels(Model):
    channels: tuple[Channel, ...]


class CreateChannel(Input):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: Annotated[str, Field(max_length=1024)] = ""
    members: Annotated[tuple[Name, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Participants who join at once, in addition to you."""


class ChannelName(Input):
    channel: Name


class ReadMessage(Input):
    id: MessageRef
    """The message's id, for example m42."""


class ReadReceipts(Input):
    id: MessageRef
    """The message's id, for example m42."""


WakeResponse = Literal["answered", "elsewhere", "declined", "silent"]


class Receipt(Model):
    """What happened to a message for one reader of its thread."""

    participant: str
    kind: Kind
    present: bool
    delivered: bool
    """Whether the participant acknowledged it."""
    read: bool | None = None
    """Whether a person has read it; left out for others."""
    woken: bool
    reason: str
    """Why it was woken or not, as a code."""
    explanation: str
    """The reason as a sentence."""
    turn: str | None = None
    """For a wake: the turn that took it, or will."""
    state: str | None = None
    """For a wake: pending, running or ended."""
    step: int | None = None
    """The first step of the turn whose prompt has it; left out if there is none yet."""
    answer: WakeResponse | None = None
    """The response of an agent whose turn has ended or sent something. Elsewhere: none of its
    messages reached the sender of this one, as it only asked others; declined: it used the tool
    `decline`; silent: it ended without sending anything."""
    outcome: str | None = None
    """How that turn ended."""
    tokens_in: int | None = None
    """Tokens that the turn's model has read so far; left out if none."""
    tokens_out: int | None = None
    """Tokens that it has written."""
    cost_usd: float | None = None
    """Their cost; left out if no price is known."""


class Receipts(Model):
    message_id: str
    thread_id: str
    receipts: tuple[Receipt, ...]
    """Agents first, without the sender."""
    more: bool
    """Whether there are more readers than these."""


class ReadInteraction(Input):
    id: Annotated[str, Field(min_length=1, max_length=64)]
    """The interaction's id, for example i42."""
    after: Annotated[int, Field(ge=0, le=2**62)] | None = None
    """Only messages after this position (seq) of the log: `upto` of the previous page."""


class InteractionWake(Model):
    """A wake by a message of the interaction."""

    message_id: str
    agent: str
    reason: str
    reply: ReplyNeed
    turn: str
    """The turn that took it, or will."""
    state: str
    """pending, running or ended."""


class Envelope(Model):
    """A message without its content; fields as in `Message`."""

    id: str
    seq: int
    thread_id: str
    sender_id: str
    sender_kind: SenderKind
    type: MessageType
    recipients: tuple[str, ...] = ()
    """The recipients of a direct message."""
    cause_id: str | None = None
    hop: int
    sent_at: AwareDatetime


class InteractionPage(Model):
    id: str
    messages: tuple[Message, ...]
    """The messages you can read, oldest first."""
    hidden: int
    """The number of messages you cannot read."""
    envelopes: tuple[Envelope, ...] = ()
    """The hidden messages without their content, oldest first; for owners only."""
    wakes: tuple[InteractionWake, ...] = ()
    """The wakes by these messages; for owners, also by the hidden ones."""
    turns: tuple[TurnSummary, ...] = ()
    """The turns they started; for owners only."""
    open: bool = False
    """Whether the interaction is still active, including hidden messages: a turn of an agent that
    is connected or that the network is starting, or a request."""
    upto: int
    """How far (seq) this page was searched; an empty page need not be the last."""
    more: bool
    """Whether the log continues after `upto`."""


class Done(Model):
    """The operation succeeded."""

    done: bool = True


class BeginTurn(Input):
    start: TurnStart
    prompt: PromptParts = Field(default_factory=PromptParts)
    life: Name | None = None
    """An id for the process that works on the turn. After crashes of three processes in a row the
    hub ends the turn; processes without an id are not counted."""


class BeginTurnResult(Model):
    attempts: int
    """1, or more if an earlier process crashed during this turn."""
    steps: tuple[Step, ...] = ()
    """The steps recorded so far."""


class LeaveTurn(Input):
    turn: TurnRef
    life: Name
    """The process that stops working on it."""


class RecordStep(Input):
    turn: TurnRef
    step: Step
    settles: Annotated[tuple[TurnRef, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Keys of the reservations that this step's actual cost replaces."""


class EndTurn(Input):
    end: TurnEnd


class ListTurns(Input):
    agent: Name | None = None
    """Only turns of this agent."""
    before: TurnRef | None = None
    """Only turns that began before this one: the last of the previous page."""
    limit: Annotated[int, Field(ge=1, le=200)] = 20


class TurnSummary(Model):
    id: str
    agent: str
    thread_id: str
    started_at: AwareDatetime
    duration_ms: float | None = None
    outcome: str | None = None
    """None while it runs."""
    reason: str = ""
    waits_for: tuple[str, ...] = ()
    """Ids of the approvals that it waits for."""
    model: str | None = None
    steps: int = 0
    calls: int = 0
    """Number of tool calls."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """Its model's cost; left out if no price is known."""


class Turns(Model):
    turns: tuple[TurnSummary, ...]
    more: bool = False
    """Whether there are earlier ones."""


class ReadTurn(Input):
    id: TurnRef


class ExplainWake(Input):
    agent: Name
    message_id: MessageRef


class WakeExplanation(Model):
    """Why a message did or did not wake an agent."""

    agent: str
    message_id: str
    woken: bool
    reason: str
    """The reason's code."""
    explanation: str
    """The reason as a sentence."""
    wake: Wake | None = None
    state: str | None = None
    """For a wake: pending, running or ended."""
