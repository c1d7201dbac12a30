"""Inputs and outputs of the core's operations. The descriptions are what a model reads.

An operation that writes a message takes `cause`: the id of the message or turn that made the
sender speak. The hub derives interaction and hop from it and refuses a cause that the sender never
received.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue

from hubbub.protocol.messages import (
    Attachment,
    Channel,
    Message,
    Model,
    Participant,
    Quote,
    ThreadSummary,
    Wake,
)
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = [
    "BeginTurn",
    "BeginTurnResult",
    "BroadcastTextMessage",
    "ChannelName",
    "Channels",
    "CreateChannel",
    "Done",
    "EndTurn",
    "ExplainWake",
    "Input",
    "ListChannels",
    "ListParticipants",
    "ListThreads",
    "ListTurns",
    "NetworkStatus",
    "NewToken",
    "Participants",
    "PostToChannel",
    "ReadMessage",
    "ReadStatus",
    "ReadThread",
    "ReadTurn",
    "RecordStep",
    "Reply",
    "SendMessage",
    "SendResult",
    "SendTextMessage",
    "ThreadPage",
    "Threads",
    "TokenFor",
    "TurnSummary",
    "Turns",
    "WakeExplanation",
]


class Input(BaseModel):
    """Base of all inputs: an argument that is not known is an error that names it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
Recipients = Annotated[
    str | Annotated[list[str], Field(min_length=1, max_length=128)],
    Field(
        union_mode="left_to_right",
        description="A participant's id, a list of ids (a group), or the id of a thread of yours.",
    ),
]


class Speech(Input):
    """What all messages may carry."""

    mentions: tuple[str, ...] = ()
    """Ids of participants to mention besides the @names in the text."""
    quote: Quote | None = None
    attachments: tuple[Attachment, ...] = ()
    cause: str | None = None
    """The message (m42) or turn that made you speak."""


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
    message_id: str
    """The message (m42) to reply under."""
    text: Text


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
    unresolved: tuple[str, ...] = ()
    """@names in the text that belong to nobody here."""


class ListParticipants(Input):
    pass


class Participants(Model):
    participants: tuple[Participant, ...]


class ListThreads(Input):
    limit: Annotated[int, Field(ge=1, le=200)] = 50


class Threads(Model):
    threads: tuple[ThreadSummary, ...]


class ReadThread(Input):
    thread: str
    """The thread's id, as you are shown it or canonical."""
    before: Annotated[int, Field(ge=1, le=2**62)] | None = None
    """Only messages before this position (tseq) of the thread."""
    limit: Annotated[int, Field(ge=1, le=100)] = 20


class ThreadPage(Model):
    thread_id: str
    messages: tuple[Message, ...]
    """Oldest first."""
    more: bool
    """Whether older messages exist."""


class ListChannels(Input):
    pass


class Channels(Model):
    channels: tuple[Channel, ...]


class CreateChannel(Input):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    description: Annotated[str, Field(max_length=1024)] = ""
    members: tuple[str, ...] = ()
    """Participants who join at once besides you."""


class ChannelName(Input):
    channel: Name


class ReadMessage(Input):
    id: str
    """The message's id, for example m42."""


class Done(Model):
    """The operation has done what it says."""

    done: bool = True


class BeginTurn(Input):
    start: TurnStart


class BeginTurnResult(Model):
    attempts: int
    """1, or more if an earlier process died in the middle of this turn."""
    steps: tuple[Step, ...] = ()
    """What that process had done."""


class RecordStep(Input):
    turn: str
    step: Step


class EndTurn(Input):
    end: TurnEnd


class ListTurns(Input):
    agent: str | None = None
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
    model: str | None = None
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0


class Turns(Model):
    turns: tuple[TurnSummary, ...]


class ReadTurn(Input):
    id: str


class ExplainWake(Input):
    agent: str
    message_id: str


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


class TokenFor(Input):
    participant: Name


class NewToken(Model):
    participant: str
    token: str
    """Shown this once."""


class ListTokens(Input):
    pass


class TokenCount(Model):
    participant: str
    tokens: int


class TokenCounts(Model):
    participants: tuple[TokenCount, ...]
    """Those who have any, by name."""


class ReadStatus(Input):
    pass


class NetworkStatus(Model):
    """How the hub is doing."""

    network: str
    epoch: str
    head: int
    """The last position of the log."""
    sessions: int
    present: int
    """Participants who are connected."""
    participants: int
    threads: int
    channels: int
    commit_queue: int
    """Messages and changes waiting for the next commit."""
    draining: bool
