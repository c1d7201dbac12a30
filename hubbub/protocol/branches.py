"""Branches: what would have come of a message, had the network been another one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.protocol.messages import MessageRef, Model, Name
from hubbub.protocol.operations import Input

__all__ = ["Branch", "BranchSide", "Branched", "BranchedText", "LackingResult"]

Text = Annotated[str, Field(max_length=65_536)]


class Branch(Input):
    message: MessageRef
    """What it begins with; of an answer, the message that it answers."""
    instructions: Annotated[dict[Name, Text], Field(default_factory=dict, max_length=16)]
    """By agent: an instruction in place of its own. Without any, all models are asked again."""
    models: Annotated[dict[Name, Name], Field(default_factory=dict, max_length=16)]
    """By agent: another of the config's models."""
    results: Annotated[dict[Name, Text], Field(default_factory=dict, max_length=64)]
    """By tool: what it answers, where that is not on record."""


class BranchedText(Model):
    sender: str
    thread_id: str
    text: str


class BranchSide(Model):
    """What came of the message."""

    messages: int
    turns: int
    tokens_in: int
    tokens_out: int
    cost_usd: float | None = None
    """None: it is not known."""
    seconds: float
    """From the begin of the first turn to the end of the last."""
    said: tuple[BranchedText, ...] = ()
    """In order."""


class LackingResult(Model):
    """A call that has no result: tools that reach out of the network are not carried out."""

    tool: str
    arguments: dict[str, JsonValue]


class Branched(Model):
    """Two courses of the network from one message on."""

    message: str
    """Id of the message that both begin with."""
    then: BranchSide
    """In the network."""
    now: BranchSide
    """In the branch."""
    lacking: LackingResult | None = None
    """Why the branch broke off."""
