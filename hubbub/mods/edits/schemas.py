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
    """The new text."""
    content: JsonValue = None
    """The new content as JSON, instead of `text`."""
    text_representation: str | None = None
    """A text rendering of `content`."""
    cause: TurnRef | None = None
    """The message (m42) or turn that caused you to edit it."""
    untrusted: bool = False
    """Whether the new text carries content from outside the network."""


class DeleteMessage(Input):
    message_id: MessageId
    """The message, for example m42."""
    cause: TurnRef | None = None
    """The message (m42) or turn that caused you to delete it."""


class MessageHistory(Input):
    message_id: MessageId
    """The message, for example m42."""
    before: Position | None = None
    """Only versions before this log position: pass `seq` of the oldest one that you have."""
    limit: Annotated[int, Field(ge=1, le=50)] = 20
    """Maximum number of results."""


class MessageVersion(Model):
    """One version of a message."""

    seq: int
    """Log position of the message, edit or deletion that created this version."""
    kind: Literal["sent", "edited", "deleted"]
    by: str
    """The participant who sent, edited or deleted it."""
    sent_by: str | None = None
    """The person who acted on behalf of the agent `by`."""
    at: AwareDatetime
    content: JsonValue
    """The content. Empty if this version is the deletion."""
    text_representation: str | None = None
    """A text rendering of `content`."""

    @property
    def text(self) -> str:
        """The content as text."""
        if self.text_representation is not None:
            return self.text_representation
        return self.content if isinstance(self.content, str) else to_json(self.content).decode()


class MessageVersions(Model):
    message_id: str
    versions: tuple[MessageVersion, ...]
    """Oldest first."""
    more: bool
    """Whether there are older ones."""
