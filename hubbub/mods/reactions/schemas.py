"""Inputs and outputs of the mod `reactions`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.mods.fields import MessageId, Position
from hubbub.protocol.messages import Model, ThreadRef
from hubbub.protocol.operations import Input

Emoji = Annotated[str, Field(min_length=1, max_length=64)]


class ChangeReaction(Input):
    message_id: MessageId
    """The message, for example m42."""
    emoji: Emoji
    """One emoji, for example 👍; or one of the names that this network knows."""


class ListReactions(Input):
    message_ids: Annotated[tuple[MessageId, ...], Field(max_length=100, fail_fast=True)] = ()
    """The messages; left out: those of `thread`."""
    thread: ThreadRef | None = None
    """The thread whose messages are meant."""
    first: Position = 1
    """Of the thread: only messages from this position (tseq) on."""
    last: Position | None = None
    """Of the thread: only messages up to this position (tseq)."""


class Reaction(Model):
    """One emoji under a message."""

    emoji: str
    count: int
    """How many participants have reacted with it."""
    who: tuple[str, ...]
    """The first of them."""
    more: bool
    """Whether there are others besides those in `who`."""
    mine: bool
    """Whether the asker is one of them."""


class MessageReactions(Model):
    """What stands under one message."""

    message_id: str
    thread_id: str
    tseq: int
    reactions: tuple[Reaction, ...]
    """In the order in which they came."""


class Reacted(MessageReactions):
    """What stands under the message now."""

    changed: bool
    """Whether the call has changed anything."""


class Reactions(Model):
    messages: tuple[MessageReactions, ...]
    """Those that have any, oldest first."""
    more: bool
    """Whether there are others in the thread: ask again with `first` after the last of these."""
