"""Branches: what would have come of a message, had the network been another one."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.protocol.messages import MessageRef, Model, Name
from hubbub.protocol.operations import Input

__all__ = [
    "AgentChange",
    "Branch",
    "BranchSide",
    "Branched",
    "BranchedText",
    "Case",
    "GivenResult",
    "LackingResult",
    "MakeCase",
]

Text = Annotated[str, Field(max_length=16_384)]


class AgentChange(Model):
    """Of an agent in a branch; what is left out stays."""

    agent: Name
    instruction: Text | None = None
    """In place of its own."""
    model: Name | None = None
    """Another of the config's models."""


class GivenResult(Model):
    """What a tool answers where that is not on record."""

    tool: Name
    text: Text


class Branch(Input):
    message: MessageRef
    """What it begins with; of an answer, the message that it answers."""
    changes: Annotated[tuple[AgentChange, ...], Field(max_length=16)] = ()
    """Without any, all models are asked again."""
    results: Annotated[tuple[GivenResult, ...], Field(max_length=64)] = ()


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


class MakeCase(Input):
    message: MessageRef


class Case(Model):
    yaml: str
    """For a file of cases, as `hubbub test` reads it."""
