"""The interface between agents and a Python program that runs them."""

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

__all__ = ["AgentProgram", "PythonObjects", "TurnOptions"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonObjects:
    """Python objects of an agent, where YAML would name files."""

    tools: Mapping[str, Tool] = field(default_factory=dict)
    """By their placeholders in the config's `tools`."""
    hooks: Sequence[Hooks] = ()
    """Called after the hooks in the config."""
    agent: Agent | None = None
    """The instance of an agent without a model."""
    instruction: Render | None = None
    """Replaces the config's instruction by a function of the turn's context."""
    builder: PromptBuilder | None = None
    """Builds the system prompt."""
    output: Output[Any] | None = None  # of any type
    """The type of every answer; None: text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOptions:
    """What a program wants of the turn that answers its question."""

    output: Output[Any] | None = None  # of any type
    """The type of the answer; None: the agent's own."""
    settings: ModelSettings | None = None
    """Settings that override the agent's."""


class AgentProgram(Protocol):
    """A program that asks an agent and follows its turns. Its methods must return quickly."""

    def turn_options(self, plan: TurnPlan) -> TurnOptions:
        """Options for a turn that is starting."""
        ...

    def on_event(self, event: TurnEvent) -> None:
        """An event in a turn of an agent with a model."""
        ...

    def turn_settled(self, plan: TurnPlan) -> None:
        """A turn ended and its record is stored."""
        ...
