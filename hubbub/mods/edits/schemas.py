"""Inputs and outputs of the mod `edits`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field, JsonValue
from pydantic_core import to_json

from hubbub.mods.fields import MessageId, Position
from hubbub.protocol.messages import Model, TurnRef
from hubbub.protocol.operations import Input, Text


class EditMessage(Input):
    message_id: MessageId
    """The message, for example m42."""
    text: Text | None = None
    """What it says from now on."""
    content: JsonValue = None
    """In place of `text`: JSON that it carries from now on."""
    text_representation: str | None = None
    """How `content` reads as text."""
    cause: TurnRef | None = None
    """The message (m42) or turn that made you edit it."""
    outside: bool = False
    """Whether the new text carries content from outside the network."""


class DeleteMessage(Input):
    message_id: MessageId
    """The message, for example m42."""
    cause: TurnRef | None = None
    """The message (m42) or turn that made you delete it."""


class MessageHistory(Input):
    message_id: MessageId
    """The message, for example m42."""
    before: Position | None = None
    """Only versions before this position (seq) of the log: `seq` of the first one that you have."""
    limit: Annotated[int, Field(ge=1, le=50)] = 20
    """How many at most."""


class MessageVersion(Model):
    """What a message said from one moment on."""

    seq: int
    """Position in the log of what made it so."""
    kind: Literal["sent", "edited", "deleted"]
    by: str
    """Who has sent, edited or deleted it."""
    spoken_by: str | None = None
    """The person who did so for the agent `by`."""
    at: AwareDatetime
    content: JsonValue
    """What it said; empty once it was deleted."""
    text_representation: str | None = None
    """How that reads as text."""

    @property
    def text(self) -> str:
        """What it said, as text."""
        if self.text_representation is not None:
            return self.text_representation
        return self.content if isinstance(self.content, str) else to_json(self.content).decode()


class MessageVersions(Model):
    message_id: str
    versions: tuple[MessageVersion, ...]
    """Oldest first, up to the latest one."""
    more: bool
    """Whether there are older ones."""
