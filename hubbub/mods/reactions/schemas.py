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
    """One emoji, for example 👍, or one of the names defined in this network."""


class ListReactions(Input):
    message_ids: Annotated[tuple[MessageId, ...], Field(max_length=100, fail_fast=True)] = ()
    """The messages. Default: those of `thread`."""
    thread: ThreadRef | None = None
    """The thread whose messages to list reactions for."""
    first: Position = 1
    """With `thread`: first message, by its position in the thread (tseq)."""
    last: Position | None = None
    """With `thread`: last message, by its position in the thread (tseq)."""


class Reaction(Model):
    """One emoji on a message."""

    emoji: str
    count: int
    """Number of participants who reacted with it."""
    who: tuple[str, ...]
    """The first participants who reacted with it."""
    more: bool
    """Whether there are participants besides those in `who`."""
    mine: bool
    """Whether the caller reacted with it."""


class MessageReactions(Model):
    """The reactions to one message."""

    message_id: str
    thread_id: str
    tseq: int
    reactions: tuple[Reaction, ...]
    """In the order in which each emoji was first used."""


class Reacted(MessageReactions):
    """The reactions to the message after the call."""

    changed: bool
    """Whether the call changed anything."""


class Reactions(Model):
    messages: tuple[MessageReactions, ...]
    """Messages that have reactions, oldest first."""
    more: bool
    """Whether there are more. To get them, call again with `first` after the last of these."""
