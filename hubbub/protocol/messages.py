"""What stands in the log, and what people and agents see of each other.

Everything here is immutable data that travels as JSON; `docs/reference/protocol.md` is generated
from these models.
"""

from __future__ import annotations

from collections.abc import Iterable
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
]


Id = Annotated[str, StringConstraints(pattern=ID_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=64)]
"""What names a participant, channel or the like: the hub says what is wrong with one that is none.
"""
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
    """Base of all wire data: immutable, fields that are not known are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class NewAttachment(Model):
    """Something that belongs to a message and is stored elsewhere, as its sender names it."""

    name: Annotated[str, Field(max_length=255)]
    media_type: Annotated[str, Field(max_length=127)] = "application/octet-stream"
    uri: Annotated[str, Field(max_length=2048)]
    """Where it is to be had. `file:f12` is a file of this network, which the mod `files` keeps."""
    size: int | None = None
    """Bytes."""


class Attachment(NewAttachment):
    """Something that belongs to a message. Of a file of this network all that it says is true."""

    # Without limits: what a log has is read, whatever limits held when it was written.
    name: str
    media_type: str = "application/octet-stream"
    uri: str
    """Where it is to be had. `file:f12` is a file of this network, which the mod `files` keeps."""
    excerpt: str | None = None
    """How the text of the file begins; None: nothing is known of it."""
    gone: bool | None = None
    """Whether the file was deleted since. Not in the log: it is set where messages are shown."""


class Quote(Model):
    """A piece of an earlier message that this one speaks of."""

    message_id: str
    text: str = ""
    """The words that are quoted. The mod `threads` fills in the beginning where there are none, and
    refuses words that do not stand in the message."""


class NewQuote(Quote):
    """A quote as its sender names it."""

    message_id: MessageRef


class Amendment(Model):
    """What a message is that changes an earlier one of the same thread: by itself it says nothing.

    Of several, the last one in the log counts; what was deleted stays so.
    """

    message_id: str
    """The message that is changed."""
    kind: Literal["edited", "deleted"]
    """edited: `content` and `text_representation` of this message take the place of the other's.
    deleted: nothing does, and this message has no content."""


DEFAULT_DEADLINE_S: float = 600
"""Seconds after which work that was handed on has failed, unless its asker says otherwise."""


class RequestMark(Model):
    """What a message means for a request: it asks, or ends what was asked. Between the two the
    worker may ask back (`question`), and who has asked replies."""

    id: str
    """The request: the id of the message that asked; empty in that message itself."""
    kind: Literal["task", "question", "reply", "result", "failed"]
    outcome: str = ""
    """Of a failed one: a code such as `timeout`, `stopped`, `no_report`, `reported`."""
    deadline: AwareDatetime | None = None
    """Of a task."""

    @property
    def ends(self) -> bool:
        """Whether the request is over by it."""
        return self.kind in ("result", "failed")


class Message(Model):
    """One immutable entry of the log. The hub stamps all that could be forged."""

    id: str
    """`m<seq>`."""
    seq: int
    """Position in the network's log: the total order."""
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
    """What a reader is shown in place of JSON content."""
    reply_to: str | None = None
    """The message under which this one stands."""
    quote: Quote | None = None
    mentions: tuple[str, ...] = ()
    """Ids of the participants that the message mentions."""
    attachments: tuple[Attachment, ...] = ()
    interaction_id: str
    """What set this message in motion: `i<seq>` of the message that opened the interaction."""
    cause_id: str | None = None
    """The message or turn that made the sender speak."""
    hop: int
    """Distance from the opening message of the interaction, which has 0."""
    spoken_by: str | None = None
    """The person who spoke for the agent that is the sender; None: it spoke itself."""
    outside: bool = False
    """Whether it carries content from outside the network, whose author is not a participant."""
    request: RequestMark | None = None
    """Of messages that ask for work, ask back or reply about it, or end such a request."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """What a person wishes for a turn that runs in the thread."""
    amends: Amendment | None = None
    """Of messages that edit or delete another."""
    timer_of: str | None = None
    """Of messages of the hub that a timer has set off: whose timer it is; `operator` for those of
    the network's config."""
    imported: bool = False
    """Whether it comes from a transcript of another network: it is history, nobody was woken by it,
    and nothing here vouches for who said it."""
    amended: Literal["edited", "deleted"] | None = None
    """What became of the message since it was sent. It stands in no log: whoever shows messages
    says so, and then `content` is the latest. A deleted one has none."""
    sent_at: AwareDatetime
    """When the hub accepted it, UTC."""

    @property
    def by_person(self) -> bool:
        """Whether a person says it, in its own name or for an agent."""
        return self.sender_kind == "human" or self.spoken_by is not None

    @property
    def said_by(self) -> str:
        """Who sent it, or on whose behalf."""
        return self.spoken_by or self.sender_id

    @property
    def is_notice(self) -> bool:
        """Whether the hub says by itself what agents, limits and people in charge have done: that
        is for people to read. What a timer says, how a request has ended and what mods tell are
        parts of a conversation.
        """
        if self.sender_kind != "system" or self.timer_of is not None or self.request is not None:
            return False
        return not (isinstance(self.content, dict) and "mod" in self.content)

    @property
    def task(self) -> str | None:
        """The request that its reader is to work on because of it: the id to report with."""
        if self.request is None or self.request.kind not in ("task", "reply"):
            return None
        return self.request.id or self.id

    @property
    def text(self) -> str:
        """The message as text: its text representation, else its content (as JSON if no text)."""
        if self.text_representation is not None:
            return self.text_representation
        if isinstance(self.content, str):
            return self.content
        import json  # only JSON content needs it

        return json.dumps(self.content, ensure_ascii=False, separators=(",", ":"))


class TimerMark(Struct, frozen=True):
    """The message is set off by a timer."""

    of: str
    """Whose timer it is."""


class TranscriptMark(Struct, frozen=True):
    """The message is history, of a transcript: it was said before."""

    sent_at: str
    """When, as it stands in the log (ISO 8601, UTC)."""
    amends: Amendment | None = None
    timer_of: str | None = None


Purpose = RequestMark | Amendment | TimerMark | TranscriptMark
"""What a message is besides words that are said. An `Amendment` wakes no agent."""


class Draft(Struct, frozen=True):
    """A message on its way to the log: what the sender said, resolved by the hub, not yet numbered.

    Mods see drafts; a verdict may replace one (`draft.replace(content=...)`).
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
    spoken_by: str | None = None
    """The person who speaks for the agent that is the sender."""
    outside: bool = False
    """Whether it carries content from outside the network."""
    mode: Literal["queue", "steer", "interrupt"] | None = None
    """What a person wishes for a turn that runs in the thread."""
    awaits: bool = False
    """Whether the sender does nothing until it is answered."""
    purpose: Purpose | None = None
    notes: tuple[str, ...] = ()
    """What mods let the sender know: sentences that stand in the result, not in the log."""
    silent: bool = False
    """Whether it wakes no agent."""

    def replace(self, **changes: Any) -> Draft:
        """The same draft with other values for these fields."""
        # Any: each field has its own type, and whoever gets a replacement of a mod checks them.
        return structs.replace(self, **changes)

    @property
    def by_person(self) -> bool:
        """Whether a person says it, in its own name or for an agent."""
        return self.sender_kind == "human" or self.spoken_by is not None

    @property
    def said_by(self) -> str:
        """Who sent it, or on whose behalf."""
        return self.spoken_by or self.sender_id

    @property
    def request(self) -> RequestMark | None:
        """What it means for a request."""
        return self.purpose if isinstance(self.purpose, RequestMark) else None

    @property
    def amends(self) -> Amendment | None:
        """What it edits or deletes."""
        purpose = self.purpose.amends if isinstance(self.purpose, TranscriptMark) else self.purpose
        return purpose if isinstance(purpose, Amendment) else None

    @property
    def timer_of(self) -> str | None:
        """Whose timer sets it off, or has set it off."""
        match self.purpose:
            case TimerMark(of):
                return of
            case TranscriptMark(timer_of=of):
                return of
        return None


class Wake(Model):
    """The hub's decision that a delivered message starts a turn."""

    reason: str
    """A code of `hubbub.network.wakes.Reason`."""
    reply: ReplyNeed
    turn: str
    """The id of the turn to run; the same if the wake is delivered again."""


class PendingWake(Model):
    """A wake whose turn has not ended yet, sent to an agent that returns."""

    message: Message
    wake: Wake
    started: str | None = None
    """The turn that had begun with this message when the agent went away; None if none had."""


class Card(Model):
    """What a participant says about itself."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: Annotated[str, Field(max_length=64, exclude_if=not_)] = ""
    """What people call it, where that is not its id. It is claimed, not proven, and not unique."""
    # As much as fits into a card, which is small.
    description: CardText = ""
    """What it is and does."""
    skills: Annotated[tuple[CardText, ...], Field(max_length=4096, fail_fast=True)] = ()
    """Words for what it can do."""
    examples: Annotated[tuple[CardText, ...], Field(max_length=64, exclude_if=not_)] = ()
    """What one can ask it, in a person's words."""


class Participant(Model):
    """A member of the network, as others see it."""

    id: str
    kind: Kind
    present: bool
    down: str | None = None
    """Why it does not run, in words that follow its name, if nothing will start it by itself."""
    card: Card = Field(default_factory=Card)


class Channel(Model):
    """A channel, as a participant sees it."""

    name: str
    description: str = ""
    members: tuple[str, ...] = ()
    joined: bool = False
    """Whether the asker is a member."""


class ThreadSummary(Model):
    """A thread with its last messages."""

    id: str
    """Canonical id."""
    type: MessageType
    head: int
    """`tseq` of the last message."""
    last_seq: int
    """`seq` of the last message: the order of activity."""
    read: int = 0
    """`tseq` up to which the reader has read the thread; what is beyond is unread."""
    messages: tuple[Message, ...] = ()
    """The last messages up to the reader's position, oldest first."""


class OperationInfo(Model):
    """An operation: enough to call it or, with its schemas, to offer it to a model as a tool.

    `ready` tells it without the schemas, which are most of what it weighs; `describe_operations`
    has them.
    """

    name: str
    description: str
    permission: Permission
    tool: bool = True
    """Whether it is meant for a model; others are for programs (records of turns, for example)."""
    schemas: str = ""
    """A hash of both schemas: who has seen it knows them."""
    # Read as JSON they are JSON, and looking at each value took most of the time of joining.
    input_schema: dict[str, SkipValidation[JsonValue]] = Field(default_factory=dict)
    output_schema: dict[str, SkipValidation[JsonValue]] = Field(default_factory=dict)


def amended(message: Message, amendments: Iterable[Message]) -> Message:
    """The message as it is shown after these, oldest first, which all amend it: with the content of
    the last edit, or with none once it was deleted."""
    for amendment in amendments:
        if amendment.amends is None or message.amended == "deleted":
            continue
        if amendment.amends.kind == "deleted":
            return _deleted(message)
        message = message.model_copy(
            update={
                "content": amendment.content,
                "text_representation": amendment.text_representation,
                "outside": message.outside or amendment.outside,
                "amended": "edited",
            }
        )
    return message


def _deleted(message: Message) -> Message:
    empty = {"content": "", "text_representation": None, "quote": None, "attachments": ()}
    return message.model_copy(update={**empty, "amended": "deleted"})
