"""Roles in the YAML: routers, planners, executors, reflectors, pipelines of them, and forks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from hubbub.config.units import Id, Section, Span
from hubbub.protocol.turns import Role

__all__ = ["ROLES_OF", "ForkConfig", "RoleModels", "RolesConfig"]

ROLES_OF: Mapping[str, tuple[Role, ...]] = MappingProxyType(
    {
        "router": ("router", "executor"),  # it fills in the arguments of the tool that was chosen
        "planner": ("planner",),
        "executor": ("executor",),
        "reflector": ("reflector",),
        "pipeline": ("router", "planner", "executor", "reflector"),
    }
)
"""The roles that an agent of a kind needs a model for."""
RoleModels = dict[Role, Id]


class RolesConfig(Section):
    """What agents of these kinds keep to."""

    min_confidence: Annotated[float, Field(ge=0, le=1)] = 0.6
    """A router that is less sure than this asks the person."""
    min_score: Annotated[int, Field(ge=1, le=5)] = 3
    """A reflector accepts no results to which it gives less than this, of 5."""
    max_plan_steps: Annotated[int, Field(ge=1, le=50)] = 8
    """Steps of a plan."""
    max_retries: Annotated[int, Field(ge=0, le=20)] = 3
    """How often a step or the plan is tried again before a person is asked."""
    targets: list[Id] | None = None
    """Agents that may be given work; left out: all that are present and have a card."""
    request_timeout: Span = 120.0
    """How long another agent may take for its answer."""
    instructions: dict[Role, str] = {}
    """In place of what a role is told; the agent's own `instruction` follows it."""


class ForkConfig(Section):
    """Lets a model give parts of its work to sub-agents: the tool `fork`."""

    timeout: Span = 120.0
    """The longest that a sub-agent may take; the model may say less."""
    most: Annotated[int, Field(ge=1, le=16)] = 4
    """Sub-agents of one turn, or of one sub-agent."""
    depth: Annotated[int, Field(ge=1, le=2)] = 1
    """2: sub-agents may have sub-agents of their own."""
    max_steps: Annotated[int, Field(ge=1, le=100)] = 10
    """Answers of the model in one sub-agent."""
