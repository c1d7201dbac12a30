"""Inputs and outputs of the operations for a participant's memories."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, JsonValue
from pydantic_core import from_json

from hubbub.protocol.messages import Model
from hubbub.protocol.operations import Input

__all__ = ["Forget", "MemoryEntry", "Recall", "Recalled", "Remember"]

Key = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,64}$")]


class Remember(Input):
    key: Key
    """The key to recall it by: letters, digits, `_`, `.` and `-`."""
    value: JsonValue
    """A text or any JSON, up to 16 KiB."""


class Forget(Input):
    key: Key


class Recall(Input):
    key: Key | None = None
    """Left out: all keys."""


class MemoryEntry(Model):
    """One of the caller's keys."""

    key: str
    size: int
    """Bytes of the value as JSON."""
    value: JsonValue = None
    """Left out if it has more than 256 bytes."""

    @property
    def long(self) -> bool:
        """Whether the value is left out."""
        return self.value is None and self.size != len("null")

    @classmethod
    def of(cls, key: str, size: int, value: bytes | None) -> Self:
        """`value` is JSON; None if it is too long."""
        return cls(key=key, size=size, value=None if value is None else from_json(value))


class Recalled(Model):
    """The caller's memories: a value, or the keys."""

    key: str | None = None
    value: JsonValue = None
    entries: tuple[MemoryEntry, ...] = ()
    """By key."""

    @classmethod
    def of(cls, key: str, value: bytes) -> Self:
        """`value` is JSON."""
        return cls(key=key, value=from_json(value))
