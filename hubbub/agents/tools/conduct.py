"""How an agent's tool calls are carried out: what its operator has set for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pydantic import JsonValue

from hubbub.agents.tools.approval import Approver
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.tools.policy import PermissionMode
from hubbub.agents.tools.results import DEFAULT_BUDGET, ByCharacters, Counter
from hubbub.agents.tools.tuning import Tuning

__all__ = ["SELECT_OVER", "Conduct", "Perform", "perform"]

Perform = Callable[[Tool, Mapping[str, JsonValue], CallSite], Awaitable[str]]
"""Carries out a call that may run, and gives its result; as `Tool.run`."""

SELECT_OVER = 24
"""Tools that are all described; of more the model picks first."""


async def perform(tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
    """The tool does it itself."""
    return await tool.run(arguments, site)


@dataclass(frozen=True, slots=True)
class Conduct:
    """For all tools of an agent, where a tool does not say otherwise."""

    timeout: float = 60.0
    """Seconds of one attempt."""
    mode: PermissionMode = "full"
    disabled: frozenset[str] = frozenset()
    """Names of tools that do not exist for this agent."""
    tuning: Mapping[str, Tuning] = field(default_factory=lambda: MappingProxyType({}))
    """What the operator says of single tools, by name."""
    budget: int = DEFAULT_BUDGET
    """Tokens of a result."""
    counter: Counter = field(default_factory=ByCharacters)
    approver: Approver | None = None
    """Who is asked; None: what needs approval is refused."""
    select_over: int = SELECT_OVER
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds between two attempts."""
    perform: Perform = perform
    """What carries out a call that has passed the gate; a rehearsal carries out none."""
