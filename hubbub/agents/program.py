"""The Python program that an agent runs in: what it gives the agent, and what it hears of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.output import Output
from hubbub.agents.prompt.builder import PromptBuilder, Render
from hubbub.agents.python.agent import Agent
from hubbub.agents.tools.base import Tool
from hubbub.agents.turn.hooks import Hooks, TurnEvent
from hubbub.config.agents import ModelSettings

__all__ = ["Asked", "Objects", "Program"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objects:
    """Python objects of an agent, where YAML would name files."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    """By what stands for them in the config's `tools`."""
    hooks: Sequence[Hooks] = ()
    """Told of turns after those that the config names."""
    agent: Agent | None = None
    """Of an agent without a model: the instance."""
    instruction: Render | None = None
    """In place of the config's, as a function of the turn's context."""
    builder: PromptBuilder | None = None
    """What the system prompt is built with."""
    output: Output[Any] | None = None  # of whichever type
    """What every answer must be; None: text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a program wants of the turn that answers its question."""

    output: Output[Any] | None = None  # of whichever type
    """What the answer must be; None: as the agent says."""
    settings: ModelSettings | None = None
    """How the model answers, over what the agent says."""


class Program(Protocol):
    """A program that asks an agent, and follows its turns. Nothing here may take long."""

    def asked(self, plan: TurnPlan) -> Asked:
        """What it wants of a turn that begins."""
        ...

    def heard(self, event: TurnEvent) -> None:
        """Something has happened in a turn of an agent with a model."""
        ...

    def settled(self, plan: TurnPlan) -> None:
        """A turn is over, and its record is durable."""
        ...
