"""Inputs and outputs of the mod `digest`, and what other mods tell it.

A mod with things that wait for people or come to an end (tasks, polls) is a `DigestSource`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

from pydantic import AwareDatetime, Field

from hubbub.mods.fields import BEYOND, Time
from hubbub.mods.operation import Calling
from hubbub.protocol.messages import MessageType, Model, ThreadRef
from hubbub.protocol.operations import Input


class DigestFor(Input):
    since: Annotated[Literal["last_visit"] | Time, Field(union_mode="left_to_right")] = "last_visit"
    """`last_visit`: what you have neither read nor had in a digest that you marked. Or a time, such
    as 2026-03-01 or 2026-03-01T12:00; UTC if no zone is given."""
    threads: Annotated[tuple[ThreadRef, ...], Field(max_length=50, fail_fast=True)] = ()
    """Only these threads of yours; left out: all."""
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    """How many threads at most."""
    summaries: bool = True
    """Whether a model sums the threads up, if the network has one for that."""


class MarkVisit(Input):
    upto: Annotated[int, Field(ge=0, le=BEYOND)]
    """What the digest gave as `upto`."""


class Line(Model):
    """A message, in short."""

    id: str
    by: str
    at: AwareDatetime
    text: str
    """How it begins, in one line."""
    outside: bool = False
    """Whether it carries content from outside the network."""


class SpeakerCount(Model):
    id: str
    count: int
    """Messages of it."""


WaitingKind = Literal["approval", "request", "question", "other"]


class WaitingItem(Model):
    """Something that waits for you."""

    kind: WaitingKind
    """approval: a tool call that you may decide about. request: work that you were asked for and
    have not reported. question: a message to you with a question mark, after which you said
    nothing. other: a task or poll, for example."""
    id: str
    """Of the approval, the request, the message with the question, or the thing."""
    thread_id: str
    by: str
    """Who waits; empty where nobody in particular does."""
    text: str


class ThreadDigest(Model):
    """What is new in a thread."""

    thread_id: str
    type: MessageType
    count: int
    """New messages of others."""
    counted: bool
    """False: there are more; the figures tell of the last ones."""
    speakers: tuple[SpeakerCount, ...]
    """Who said most comes first."""
    mentions: int
    """Messages that mention you."""
    first: Line
    last: Line
    summary: str = ""
    """Written by a model from the messages; empty without one."""


class Digest(Model):
    threads: tuple[ThreadDigest, ...]
    """Those with mentions of you first, then direct ones, then by activity."""
    more: bool
    """Whether there is something new in other threads, too."""
    waiting: tuple[WaitingItem, ...]
    """What waits for you, whenever it was asked."""
    decided: tuple[str, ...]
    """What was closed or finished meanwhile, such as polls and tasks."""
    since: AwareDatetime | None = None
    """Your last visit, or the time that you gave; left out if there was no visit."""
    upto: int
    """The position of the log that this tells of: mark_visit remembers it."""
    note: str = ""
    """Why summaries, or what other mods know, are missing, if they are."""
    outside: bool = False
    """Whether one of the new messages carries content from outside the network."""


class Visit(Model):
    upto: int
    """The next digest begins behind this position of the log."""


# What other mods tell --------------------------------------------------------------------------


class DigestItem(NamedTuple):
    """One line of a digest."""

    kind: Literal["waiting", "decided"]
    """waiting: for the reader, now. decided: closed or finished, since the time asked for."""
    thread: str
    """Canonical id of the thread that it belongs to: one that the reader reads."""
    id: str
    """Of the task, poll or whatever it is."""
    text: str
    """What it is, in one line."""


@runtime_checkable
class DigestSource(Protocol):
    """A mod that has news for digests."""

    name: ClassVar[str]

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """What waits for the caller now, and what was decided since `after` (seconds since the
        epoch) where the caller reads it; the latest first, at most `limit` of each kind."""
        ...
