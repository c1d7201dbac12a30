"""Inputs and outputs of the mod `digest`, and the interface for mods that contribute to digests.

A mod whose items wait for people or come to an end (tasks, polls) is a `DigestSource`.
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
    since: Annotated[Time | Literal["last_visit"], Field(union_mode="left_to_right")] = "last_visit"
    """`last_visit`: messages that you have not read and that no digest you marked has covered. Or
    a time, such as 2026-03-01 or 2026-03-01T12:00; UTC if no zone is given."""
    threads: Annotated[tuple[ThreadRef, ...], Field(max_length=50, fail_fast=True)] = ()
    """Only these of your threads. Default: all."""
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    """Maximum number of threads."""
    summaries: bool = True
    """Whether a model summarizes the threads, if the network has one configured for it."""


class MarkVisit(Input):
    upto: Annotated[int, Field(ge=0, le=BEYOND)]
    """The `upto` of the digest."""


class Line(Model):
    """A message, abridged."""

    id: str
    by: str
    at: AwareDatetime
    text: str
    """Its beginning, in one line."""
    untrusted: bool = False
    """Whether it carries content from outside the network."""


class SpeakerCount(Model):
    id: str
    count: int
    """Number of messages from this participant."""


WaitingKind = Literal["approval", "request", "question", "other"]


class WaitingItem(Model):
    """Something that is waiting for you."""

    kind: WaitingKind
    """approval: a tool call that you can approve or deny. request: work requested from you that you
    have not reported on. question: a message to you with a question mark that you have not
    answered. other: for example, a task or a poll."""
    id: str
    """Id of the approval, the request, the message with the question, or the other item."""
    thread_id: str
    by: str
    """The participant who is waiting. Empty if no particular one is."""
    text: str
    untrusted: bool = False


class ThreadDigest(Model):
    """New activity in a thread."""

    thread_id: str
    type: MessageType
    count: int
    """Number of new messages from others."""
    counted: bool
    """False if there are more new messages; the figures then cover only the latest ones."""
    speakers: tuple[SpeakerCount, ...]
    """The most active first."""
    mentions: int
    """Number of messages that mention you."""
    first: Line
    last: Line
    summary: str = ""
    """Written by a model from the messages. Empty if there is none."""


class Digest(Model):
    threads: tuple[ThreadDigest, ...]
    """Threads that mention you first, then direct ones, then by activity."""
    more: bool
    """Whether other threads have new activity, too."""
    waiting: tuple[WaitingItem, ...]
    """Everything that is waiting for you, regardless of `since`."""
    decided: tuple[str, ...]
    """Items closed or finished since then, such as polls and tasks."""
    since: AwareDatetime | None = None
    """Your last visit, or the time that you gave. Omitted if you have not visited yet."""
    upto: int
    """The log position that this digest covers. Pass it to mark_visit."""
    note: str = ""
    """Why summaries or contributions of other mods are missing, if they are."""
    untrusted: bool = False
    """Whether anything in it carries content from outside the network."""


class Visit(Model):
    upto: int
    """The next digest starts after this log position."""


# Contributions of other mods -------------------------------------------------------------------


class DigestItem(NamedTuple):
    """One line of a digest."""

    kind: Literal["waiting", "decided"]
    """waiting: for the reader, now. decided: closed or finished since the requested time."""
    thread: str
    """Canonical id of its thread, which the reader must be able to read."""
    id: str
    """Id of the task, poll or other item."""
    text: str
    """A one-line description."""
    untrusted: bool = False
    """Whether it carries content from outside the network."""


@runtime_checkable
class DigestSource(Protocol):
    """A mod that contributes items to digests."""

    name: ClassVar[str]

    async def news(self, call: Calling, after: float, limit: int) -> Sequence[DigestItem]:
        """Items waiting for the caller now, and items decided since `after` (seconds since the
        epoch) in threads that the caller reads. Latest first, at most `limit` of each kind."""
        ...
