"""Inputs and outputs of the mod `directory`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.protocol.messages import Id, Kind, Model, Name
from hubbub.protocol.operations import Input

Line = Annotated[str, Field(max_length=200)]
Skill = Annotated[str, Field(min_length=1, max_length=100)]


class FindAgent(Input):
    need: Annotated[str, Field(min_length=1, max_length=500)]
    """What must be done, in a few words: `translate a contract into German`."""
    people: bool = False
    """Whether to look among people, too."""
    present: bool = False
    """Only those that are connected now."""
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    """How many at most."""


class ListAgents(Input):
    people: bool = False
    """Whether to list people, too."""
    present: bool = False
    """Only those that are connected now."""
    after: Id | None = None
    """Only those whose names come after this one."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """How many at most."""


class ReadCard(Input):
    participant: Name
    """Whose card."""


class UpdateCard(Input):
    description: Annotated[str, Field(max_length=2000)] | None = None
    """What you are and do. Of each field: left out, it stays; empty, it is again what you came
    with."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=50, fail_fast=True)] | None = None
    """Words for what you can do."""
    inputs: Annotated[str, Field(max_length=1000)] | None = None
    """What you need to be given to begin."""
    cost: Line | None = None
    """What your work costs, for those who choose."""
    availability: Line | None = None
    """When you can be reached, or why not."""


class AgentCard(Model):
    """What a participant says of itself, and how it stands with it."""

    id: str
    kind: Kind
    present: bool
    """Whether it is connected. One that is not gets its messages when it comes back."""
    description: str = ""
    skills: tuple[str, ...] = ()
    inputs: str = ""
    """What it needs to be given."""
    cost: str = ""
    availability: str = ""
    more: dict[str, JsonValue] = Field(default_factory=dict)
    """What else its card says."""
    running: int = 0
    """Turns of it that run now."""
    open: int = 0
    """Messages that it works on, or that wait for it."""


class Agents(Model):
    agents: tuple[AgentCard, ...]
    """By name."""
    more: bool
    """Whether there are others: ask again with `after`."""


class FoundAgent(AgentCard):
    why: tuple[str, ...]
    """Words of the need that stand in its card."""


class FoundAgents(Model):
    agents: tuple[FoundAgent, ...]
    """Who fits best comes first; among equals those who are present and have less to do."""
    more: bool
    """Whether others fit, too, only less well."""
    advice: str = ""
    """What to do if nobody fits."""
