"""Inputs and outputs of the core's operations. The descriptions are what a model reads.

An operation that writes a message takes `cause`: the id of the message or turn that made the
sender speak. The hub derives interaction and hop from it and refuses a cause that the sender never
received.
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
    "Tainted",
    "ThreadList",
    "ThreadPage",
    "TurnSummary",
    "Turns",
    "WakeExplanation",
]


class Input(Documented):
    """Base of all inputs: an argument that is not known is an error that names it.

    Names have a length and lists a size, and a list fails fast: describing what is wrong with each
    of its items would keep the hub busy with frames of thousands of them.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")


Text = Annotated[str, Field(min_length=1)]
Position = Annotated[int, Field(ge=1, le=2**62)]
Recipients = Annotated[
    ThreadRef | Annotated[list[Name], Field(min_length=1, max_length=128, fail_fast=True)],
    Field(
        union_mode="left_to_right",
        description="A participant's id, a list of ids (a group), or the id of a thread of yours.",
    ),
]


Tainted = Annotated[bool, Field(json_schema_extra={"x-runtime": True})]
"""Of inputs: whether who asks has read something from outside the network. The runtime of an agent
says so, not its model."""


class Speech(Input):
    """What all messages may carry."""

    mentions: Annotated[tuple[Name, ...], Field(max_length=128, fail_fast=True)] = ()
    """Ids of participants to mention besides the @names in the text."""
    quote: NewQuote | None = None
    attachments: Annotated[tuple[NewAttachment, ...], Field(max_length=256, fail_fast=True)] = ()
    cause: TurnRef | None = None
    """The message (m42) or turn that made you speak."""
    speak_as: Name | None = None
    """The agent that you have taken over and speak for; for people only."""
    outside: bool = False
    """Whether it carries content from outside the network: results of tools, files. The hub says so
    by itself when the cause does."""
    awaits: bool = False
    """Whether you wait for the answer and do nothing else meanwhile. Refused where that would close
    a circle of waits. For direct messages to one participant."""
    silent: bool = False
    """Whether it wakes no agent: it only stands there."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """A person's wish about a turn that runs in the thread: the message waits for the next turn,
    enters the one that runs, or ends it and begins the next. Left out: as the agent's config
    says."""


class SendTextMessage(Speech):
    to: Recipients
    text: Text


class SendMessage(Speech):
    to: Recipients
    content: JsonValue
    text_representation: str | None = None
    """How the content reads as text."""


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
    """JSON in place of the text, which is how it reads then."""


class SendResult(Model):
    """A message that is durable now."""

    id: str
    seq: int
    thread_id: str
    """Canonical id of the thread it stands in."""
    tseq: int
    present: tuple[str, ...] = ()
    """Recipients of a direct message, and mentioned participants, who are connected."""
    absent: tuple[str, ...] = ()
    """Those who are not: it waits for them."""
    queued: dict[str, int] = Field(default_factory=dict)
    """Of agents that it wakes: how many wakes wait there or are worked on, this one included."""
    not_woken: dict[str, str] = Field(default_factory=dict)
    """Of agents that it would have woken: the code of what prevented it (a budget, a
    stop)."""
    unresolved: tuple[str, ...] = ()
    """@names in the text that no participant has."""
    notes: tuple[str, ...] = ()
    """What mods let the sender know, for example that a secret was taken out."""
    amends: Amendment | None = None
    """What it does to an earlier message, if it is no message of its own."""
    message: Message
    """As it stands in the log: the hub does not send it to its sender otherwise."""


class ListParticipants(Input):
    after: Name | None = None
    """Only those who come after this one: the last of the page before."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000


class Participants(Model):
    participants: tuple[Participant, ...]
    """Agents first, by name."""
    more: bool = False
    """Whether there are others after these."""


class DescribeOperations(Input):
    names: Annotated[tuple[Name, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Left out: all that you may call."""


class OperationSchemas(Model):
    operations: tuple[OperationInfo, ...]
    """With the JSON Schemas of what they take and answer; names that mean nothing are left out."""


class ListThreads(Input):
    before: Position | None = None
    """Only threads whose last message (`last_seq`) stands before this position of the log."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class ThreadList(Model):
    threads: tuple[ThreadSummary, ...]
    more: bool = False
    """Whether there are others, less recently active."""


class ReadThread(Input):
    thread: ThreadRef
    """The thread's id, as you are shown it or canonical."""
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
    """The last position (tseq) that has been read."""


class MarkUnread(Input):
    thread: ThreadRef
    """The thread's id, in either form."""
    since: Position
    """The first position (tseq) that counts as unread again."""


class ListMentions(Input):
    before: Position | None = None
    """Only messages before this position (seq) of the log: `upto` of the page before."""
    limit: Annotated[int, Field(ge=1, le=100)] = 50


class MentionPage(Model):
    messages: tuple[Message, ...]
    """Newest first."""
    upto: int
    """How far back (seq) this page has looked; a page may be empty and not the last."""
    more: bool
    """Whether there is anything before `upto` that has not been looked at."""


class ListChannels(Input):
    pass


class Channels(Model):
    channels: tuple[Channel, ...]


class CreateChannel(Input):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: Annotated[str, Field(max_length=1024)] = ""
    members: Annotated[tuple[Name, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Participants who join at once besides you."""


class ChannelName(Input):
    channel: Name


class ReadMessage(Input):
    id: MessageRef
    """The message's id, for example m42."""


class ReadReceipts(Input):
    id: MessageRef
    """The message's id, for example m42."""


class Receipt(Model):
    """What has become of a message with one of those who read its thread."""

    participant: str
    kind: Kind
    present: bool
    delivered: bool
    """The participant has acknowledged it."""
    read: bool | None = None
    """Whether a person has read it; left out for others."""
    woken: bool
    reason: str
    """Why it was woken or not, as a code."""
    explanation: str
    """The same as a sentence."""
    turn: str | None = None
    """Of a wake: the turn that has taken it, or is to."""
    state: str | None = None
    """Of a wake: pending, running or ended."""
    step: int | None = None
    """The step of the turn in whose prompt it first stood; left out: in none yet."""
    answer: Literal["answered", "declined", "silent"] | None = None
    """Of an agent whose turn about it has ended, or has spoken: what it did. Declined: it said that
    it would not; silent: it ended without a word."""
    outcome: str | None = None
    """How that turn ended."""
    tokens_in: int | None = None
    """Tokens that the turn's model has read so far; left out where none was asked."""
    tokens_out: int | None = None
    """Tokens that it has written."""
    cost_usd: float | None = None
    """What that has cost; left out where no price is known."""


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
    """Only messages after this position (seq) of the log: `upto` of the page before."""


class InteractionWake(Model):
    """A turn that a message of the interaction asked for."""

    message_id: str
    agent: str
    reason: str
    reply: ReplyNeed
    turn: str
    """The turn that has taken it, or is to."""
    state: str
    """pending, running or ended."""


class Envelope(Model):
    """A message without what it says: who spoke to whom, because of what. As in `Message`."""

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
    """Those that you may read, oldest first."""
    hidden: int
    """How many there are that you may not."""
    envelopes: tuple[Envelope, ...] = ()
    """What is to be known of these all the same, oldest first; for owners only."""
    wakes: tuple[InteractionWake, ...] = ()
    """Whom these messages woke; for owners, the hidden ones too."""
    turns: tuple[TurnSummary, ...] = ()
    """The turns that they started; for owners only."""
    open: bool = False
    """Whether anything of it goes on, hidden messages included: a turn of an agent that is here, or
    a request."""
    upto: int
    """How far (seq) this page has looked; a page may be empty and not the last."""
    more: bool
    """Whether the log goes on after `upto`."""


class Done(Model):
    """The operation has done what it says."""

    done: bool = True


class BeginTurn(Input):
    start: TurnStart
    prompt: PromptParts = Field(default_factory=PromptParts)
    life: Name | None = None
    """Names the process that works on the turn. After three processes in a row that died in it the
    hub ends it; those without a name are not counted."""


class BeginTurnResult(Model):
    attempts: int
    """1, or more if an earlier process died in the middle of this turn."""
    steps: tuple[Step, ...] = ()
    """What that process had done."""


class LeaveTurn(Input):
    turn: TurnRef
    life: Name
    """The process that works on it no more."""


class RecordStep(Input):
    turn: TurnRef
    step: Step
    settles: Annotated[tuple[TurnRef, ...], Field(max_length=1000, fail_fast=True)] = ()
    """Keys of the reservations whose real figures this step tells."""


class EndTurn(Input):
    end: TurnEnd


class ListTurns(Input):
    agent: Name | None = None
    """Only turns of this agent."""
    before: TurnRef | None = None
    """Only turns that began before this one: the last of the page before."""
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
    """Ids of the approvals that it is parked for."""
    model: str | None = None
    steps: int = 0
    calls: int = 0
    """Of tools."""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float | None = None
    """What its model has cost; left out where no price is known."""


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
    """Of a wake: pending, running or ended."""
