"""Log entries, and the data that people and agents see of each other.

Everything in this module is immutable data, sent as JSON; `docs/reference/protocol.md` is generated
from these models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from operator import not_
from typing import Annotated, Any, Literal

from msgspec import Struct, structs
from pydantic import (
    AwareDatetime,
    ConfigDict,
    Field,
    JsonValue,
    SkipValidation,
    StringConstraints,
)

from hubbub.field_docs import Documented
from hubbub.protocol.thread_ids import ID_PATTERN, MAX_LENGTH

__all__ = [
    "DEFAULT_DEADLINE_S",
    "Amendment",
    "Attachment",
    "Card",
    "Channel",
    "Draft",
    "Id",
    "Kind",
    "Message",
    "MessageRef",
    "MessageType",
    "Name",
    "NewAttachment",
    "NewQuote",
    "OperationInfo",
    "Participant",
    "PendingWake",
    "Permission",
    "Purpose",
    "Quote",
    "ReplyNeed",
    "RequestMark",
    "SenderKind",
    "ThreadRef",
    "ThreadSummary",
    "TimerMark",
    "TranscriptMark",
    "TurnRef",
    "Wake",
    "amended",
    "last_within",
]


Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
"""The name of a participant, channel and so on, which the hub validates."""
MessageRef = Annotated[str, Field(min_length=1, max_length=64)]
ThreadRef = Annotated[str, Field(min_length=1, max_length=MAX_LENGTH)]
"""A thread's id in either form."""
TurnRef = Annotated[str, Field(min_length=1, max_length=100)]
CardText = Annotated[str, Field(max_length=16 * 1024)]
Kind = Literal["agent", "human", "service"]
SenderKind = Literal["agent", "human", "service", "system"]
MessageType = Literal["direct", "channel", "broadcast", "mod"]
ReplyNeed = Literal["required", "optional"]
Permission = Literal["read", "write", "admin"]


class Model(Documented):
    """Base of all wire data: immutable, unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NewAttachment(Model):
    """A sender's reference to something that belongs to a message and is stored elsewhere."""

    name: Annotated[str, Field(max_length=255)]
    media_type: Annotated[str, Field(max_length=127)] = "application/octet-stream"
    uri: Annotated[str, Field(max_length=2048)]
    """Its location. `file:f12` is a file of this network, stored by the mod `files`."""
    size: int | None = None
    """Bytes."""


class Attachment(NewAttachment):
    """Something that belongs to a message. For a file of this network all fields are verified."""

    # Without limits, so that every log can be read, whatever limits applied when it was written.
    name: str
    media_type: str = "application/octet-stream"
    uri: str
    """Its location. `file:f12` is a file of this network, stored by the mod `files`."""
    excerpt: str | None = None
    """The beginning of the file's text, if known."""
    gone: bool | None = None
    """Whether the file was deleted since. Not in the log; set when messages are shown."""


class Quote(Model):
    """A part of an earlier message that this one refers to."""

    message_id: str
    text: str = ""
    """The quoted text. If it is empty, the mod `threads` fills in the beginning; it refuses text
    that is not in the message."""


class NewQuote(Quote):
    """A quote as given by its sender."""

    message_id: MessageRef


class Amendment(Model):
    """Marks a message that changes an earlier one of the same thread, and is not a message by
    itself.

    Of several changes the last one in the log applies; a deleted message stays deleted.
    """

    message_id: str
    """The changed message."""
    kind: Literal["edited", "deleted"]
    """edited: `content` and `text_representation` of this message replace those of the other.
    deleted: the other message is removed, and this one has no content."""


DEFAULT_DEADLINE_S: float = 600
"""Seconds after which delegated work fails, by default."""


class RequestMark(Model):
    """A message's role in a request: it opens or ends one. In between the worker can ask a
    `question`, and the requester replies."""

    id: str
    """The request: the id of the message that opened it; empty in that message itself."""
    kind: Literal["task", "question", "reply", "result", "failed"]
    outcome: str = ""
    """For a failed request: a code such as `timeout`, `stopped`, `no_report`, `reported`."""
    deadline: AwareDatetime | None = None
    """For a task."""

    @property
    def ends(self) -> bool:
        """Whether the message ends the request."""
        return self.kind in ("result", "failed")


class Message(Model):
    """One immutable entry of the log. The hub sets every field that could be forged."""

    id: str
    """`m<seq>`."""
    seq: int
    """Position in the network's log, which is the total order."""
    thread_id: str
    """Canonical id of the thread."""
    tseq: int
    """Position in the thread, dense, from 1."""
    sender_id: str
    sender_kind: SenderKind
    type: MessageType
    recipients: tuple[str, ...] = ()
    """The recipients of a direct message; empty for the other types."""
    content: JsonValue
    """Text, or any other JSON value."""
    text_representation: str | None = None
    """The text to show in place of JSON content."""
    reply_to: str | None = None
    """The message that this one is a reply under."""
    quote: Quote | None = None
    mentions: tuple[str, ...] = ()
    """Ids of the participants that the message mentions."""
    attachments: tuple[Attachment, ...] = ()
    interaction_id: str
    """The interaction: `i<seq>` of the message that opened it."""
    cause_id: str | None = None
    """The message or turn that caused this message."""
    hop: int
    """Distance from the opening message of the interaction, which has 0."""
    sent_by: str | None = None
    """The person who sent it on behalf of the agent; None if the sender sent it itself."""
    untrusted: bool = False
    """Whether it carries content from outside the network, whose author is not a participant."""
    request: RequestMark | None = None
    """For messages that open or end a request, or ask or answer a question about it."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """A person's choice for a turn running in the thread."""
    amends: Amendment | None = None
    """For messages that edit or delete another."""
    timer_of: str | None = None
    """For messages of the hub sent by a timer: the timer's owner; `operator` for those of the
    network's config."""
    imported: bool = False
    """Whether it was imported from a transcript: it is history, woke no agent, and its sender is
    not verified."""
    amended: Literal["edited", "deleted"] | None = None
    """How the message has changed since. Not in the log; set when messages are shown, along with
    the latest `content`. A deleted message has none."""
    sent_at: AwareDatetime
    """When the hub accepted it, UTC."""

    @property
    def by_person(self) -> bool:
        """Whether a person says it, in its own name or for an agent."""
        return self.sender_kind == "human" or self.sent_by is not None

    @property
    def author(self) -> str:
        """The person who wrote it in an agent's place, otherwise the sender."""
        return self.sent_by or self.sender_id

    @property
    def is_notice(self) -> bool:
        """Whether it is a notice of the hub about agents, limits or control by people, for people
        to read. Messages of timers and mods, and ends of requests, are part of the conversation.
        """
        if self.sender_kind != "system" or self.timer_of is not None or self.request is not None:
            return False
        return not (isinstance(self.content, dict) and "mod" in self.content)

    @property
    def task(self) -> str | None:
        """The request that its reader should work on: the id to report with."""
        if self.request is None or self.request.kind not in ("task", "reply"):
            return None
        return self.request.id or self.id

    @property
    def text(self) -> str:
        """The message as text: its text representation, or its content (as JSON if not text)."""
        if self.text_representation is not None:
            return self.text_representation
        if isinstance(self.content, str):
            return self.content
        import json  # only JSON content needs it

        return json.dumps(self.content, ensure_ascii=False, separators=(",", ":"))


class TimerMark(Struct, frozen=True):
    """Marks a message sent by a timer."""

    of: str
    """The timer's owner."""


class TranscriptMark(Struct, frozen=True):
    """Marks a message imported from a transcript."""

    sent_at: str
    """The original time, as in the log (ISO 8601, UTC)."""
    amends: Amendment | None = None
    timer_of: str | None = None


Purpose = RequestMark | Amendment | TimerMark | TranscriptMark
"""A message's special role. An `Amendment` wakes no agent."""


class Draft(Struct, frozen=True):
    """A message on its way to the log: resolved by the hub, not numbered yet.

    Mods see drafts; a verdict can replace one (`draft.replace(content=...)`).
    """

    sender_id: str
    sender_kind: SenderKind
    thread_id: str
    type: MessageType
    content: JsonValue
    recipients: tuple[str, ...] = ()
    text_representation: str | None = None
    reply_to: str | None = None
    quote: Quote | None = None
    mentions: tuple[str, ...] = ()
    attachments: tuple[Attachment, ...] = ()
    cause_id: str | None = None
    unresolved: tuple[str, ...] = ()
    """`@names` in the text that no participant has."""
    sent_by: str | None = None
    """The person who sends it on behalf of the agent."""
    untrusted: bool = False
    """Whether it carries content from outside the network."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """A person's choice for a turn running in the thread."""
    awaits: bool = False
    """Whether the sender is blocked until it is answered."""
    purpose: Purpose | None = None
    notes: tuple[str, ...] = ()
    """Notes of mods to the sender, which are in the result but not in the log."""
    silent: bool = False
    """Whether it wakes no agent."""

    def replace(self, **changes: Any) -> Draft:
        """The same draft with other values for these fields."""
        # Any, as each field has its own type; replacements by mods are validated.
        return structs.replace(self, **changes)

    @property
    def by_person(self) -> bool:
        """Whether a person says it, in its own name or for an agent."""
        return self.sender_kind == "human" or self.sent_by is not None

    @property
    def author(self) -> str:
        """The person who wrote it in an agent's place, otherwise the sender."""
        return self.sent_by or self.sender_id

    @property
    def request(self) -> RequestMark | None:
        """Its role in a request."""
        return self.purpose if isinstance(self.purpose, RequestMark) else None

    @property
    def amends(self) -> Amendment | None:
        """The change that it makes to another message."""
        purpose = self.purpose.amends if isinstance(self.purpose, TranscriptMark) else self.purpose
        return purpose if isinstance(purpose, Amendment) else None

    @property
    def timer_of(self) -> str | None:
        """The owner of the timer that sends it."""
        match self.purpose:
            case TimerMark(of):
                return of
            case TranscriptMark(timer_of=of):
                return of
        return None


class Wake(Model):
    """The hub's decision that a delivered message starts a turn."""

    reason: str
    """The code of the reason, such as `direct`; the section Wakes lists them."""
    reply: ReplyNeed
    turn: str
    """The id of the turn to run; the same if the wake is delivered again."""


class PendingWake(Model):
    """A wake whose turn has not ended yet, sent to an agent that returns."""

    message: Message
    wake: Wake
    started: str | None = None
    """The turn that began with this message before the agent disconnected, if any."""


class Card(Model):
    """A participant's self-description."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, Field(max_length=64, exclude_if=not_)] = ""
    """Its display name, if that differs from its id. Not verified, and not unique."""
    # Limited by the size of a card, which is small.
    description: CardText = ""
    """What it is and does."""
    skills: Annotated[tuple[CardText, ...], Field(max_length=4096, fail_fast=True)] = ()
    """Keywords for its abilities."""
    examples: Annotated[tuple[CardText, ...], Field(max_length=64, exclude_if=not_)] = ()
    """Example requests, as a person would write them."""


class Participant(Model):
    """A member of the network, as others see it."""

    id: str
    kind: Kind
    present: bool
    down: str | None = None
    """Why it is down, as text that follows its name, if it does not restart automatically."""
    card: Card = Field(default_factory=Card)


class Channel(Model):
    """A channel, as a participant sees it."""

    name: str
    description: str = ""
    members: tuple[str, ...] = ()
    joined: bool = False
    """Whether the reader is a member."""


class ThreadSummary(Model):
    """A thread with its last messages."""

    id: str
    """Canonical id."""
    type: MessageType
    head: int
    """`tseq` of the last message."""
    last_seq: int
    """`seq` of the last message, which orders threads by activity."""
    read: int = 0
    """`tseq` up to which the reader has read the thread."""
    messages: tuple[Message, ...] = ()
    """The last messages up to the reader's position, oldest first."""


class OperationInfo(Model):
    """An operation: enough to call it or, with its schemas, to offer it to a model as a tool.

    `ready` omits the schemas, which are most of its size; `describe_operations` has them.
    """

    name: str
    description: str
    permission: Permission
    tool: bool = True
    """Whether it is meant for models; others are for programs (such as recording turns)."""
    schemas: str = ""
    """A hash of both schemas, for caching."""
    # Parsed from JSON they are JSON, and validating each value took most of the time of joining.
    input_schema: dict[str, SkipValidation[JsonValue]] = Field(default_factory=dict)
    output_schema: dict[str, SkipValidation[JsonValue]] = Field(default_factory=dict)


def amended(message: Message, amendments: Iterable[Message]) -> Message:
    """The message as shown after these amendments of it, oldest first: with the content of the last
    edit, or without content if it was deleted."""
    for amendment in amendments:
        if amendment.amends is None or message.amended == "deleted":
            continue
        if amendment.amends.kind == "deleted":
            return _deleted(message)
        message = message.model_copy(
            update={
                "content": amendment.content,
                "text_representation": amendment.text_representation,
                "untrusted": message.untrusted or amendment.untrusted,
                "amended": "edited",
            }
        )
    return message


def _deleted(message: Message) -> Message:
    empty = {"content": "", "text_representation": None, "quote": None, "attachments": ()}
    return message.model_copy(update={**empty, "amended": "deleted"})


def last_within(messages: Sequence[Message], most: int) -> Sequence[Message]:
    """The last messages that have at most so many bytes, at least one."""
    sizes = (len(message.model_dump_json()) for message in reversed(messages))
    count = sum(1 for _ in takewhile(lambda size: size <= most, accumulate(sizes)))
    return messages[-max(1, count) :]
