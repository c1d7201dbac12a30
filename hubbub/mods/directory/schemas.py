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
    """The work to be done, in a few words: `translate a contract into German`."""
    people: bool = False
    """Whether to include people."""
    present: bool = False
    """Only participants that are connected now."""
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    """Maximum number of results."""


class ListAgents(Input):
    people: bool = False
    """Whether to include people."""
    present: bool = False
    """Only participants that are connected now."""
    after: Id | None = None
    """Only participants whose ids sort after this one."""
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    """Maximum number of results."""


class ReadCard(Input):
    participant: Name
    """The participant whose card to read."""


class UpdateCard(Input):
    description: Annotated[str, Field(max_length=2000)] | None = None
    """What you are and do. An omitted field keeps its value; an empty one resets it to the value
    you joined with."""
    skills: Annotated[tuple[Skill, ...], Field(max_length=50, fail_fast=True)] | None = None
    """Your skills, one word or short phrase each."""
    inputs: Annotated[str, Field(max_length=1000)] | None = None
    """The input you need in order to start."""
    cost: Line | None = None
    """The cost of your work, for participants that choose between agents."""
    availability: Line | None = None
    """When you can be reached, or why you cannot."""


class AgentCard(Model):
    """A participant's description of itself, with its presence and workload."""

    id: str
    kind: Kind
    present: bool
    """Whether it is connected. If not, it receives its messages when it reconnects."""
    description: str = ""
    skills: tuple[str, ...] = ()
    inputs: str = ""
    """The input it needs."""
    cost: str = ""
    availability: str = ""
    more: dict[str, JsonValue] = Field(default_factory=dict)
    """Other fields of its card."""
    running: int = 0
    """Number of its turns that are running."""
    open: int = 0
    """Number of messages that it is working on or that are waiting for it."""


class Agents(Model):
    agents: tuple[AgentCard, ...]
    """Sorted by id."""
    more: bool
    """Whether there are more. To get them, call again with `after`."""


class FoundAgent(AgentCard):
    why: tuple[str, ...]
    """Words of `need` that match its card."""


class FoundAgents(Model):
    agents: tuple[FoundAgent, ...]
    """Best match first. Ties go to participants that are present and have less work."""
    more: bool
    """Whether there are further, weaker matches."""
    advice: str = ""
    """What to do if there is no match."""
