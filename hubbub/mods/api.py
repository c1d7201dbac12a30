"""The mod API: a class with hooks around messages and operations of its own.

A hook answers with a verdict, a closed union: there is no way to say nothing by accident.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from hubbub.mods.operation import Operation
from hubbub.protocol.messages import Draft

__all__ = ["PASS", "Mod", "ModConfig", "Pass", "Reject", "Replace", "Verdict"]


@dataclass(frozen=True, slots=True)
class Pass:
    """The message goes on as it is."""


@dataclass(frozen=True, slots=True)
class Replace:
    """Another message goes on in its place. Sender and thread cannot be replaced."""

    draft: Draft


@dataclass(frozen=True, slots=True)
class Reject:
    """The message stops here; the sender is told `reason` (error code `rejected`)."""

    reason: str


Verdict = Pass | Replace | Reject

PASS = Pass()


class ModConfig(BaseModel):
    """Base of a mod's settings in YAML: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class Mod:
    """An extension of the hub.

    A subclass sets `name` and `Config`, and overrides the hooks it needs. Hooks are plain functions
    that decide from what they are given: they run inside the hub's loop and must not block.
    """

    name: ClassVar[str]
    Config: ClassVar[type[ModConfig]] = ModConfig

    def __init__(self, config: ModConfig):
        self.config = config

    def on_message(self, draft: Draft) -> Verdict:
        """Called for each message before the hub routes it."""
        return PASS

    def operations(self) -> Sequence[Operation]:
        """Operations that the mod adds to the network."""
        return ()
