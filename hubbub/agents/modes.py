"""How a model's turn begins, and after what it asks: `begin_with` and `mode` of an agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hubbub.agents.asking import Offers
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.tidy import TIDY_STEPS
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.first_call import begun
from hubbub.agents.turn.loop import FINISH
from hubbub.protocol.turns import Step

__all__ = ["beginning", "first_tool", "quiet_tools"]


@dataclass(frozen=True, slots=True)
class _Beginning:
    """A toolbox of which a model may call just one tool, until it has."""

    toolbox: Toolbox
    tool: ToolSpec

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """That tool alone, or what the toolbox describes."""
        return self.toolbox.described(steps) if begun(steps) else (self.tool,)


def first_tool(toolbox: Toolbox, begin_with: str | None) -> str | None:
    """The tool that a turn must begin with, or None: one that is absent for the moment is nothing
    to begin with.
    """
    entry = toolbox.registry.get(begin_with) if begin_with is not None else None
    return None if entry is None or entry.absent is not None else entry.name


def beginning(toolbox: Toolbox, first: str | None) -> Offers:
    """What a model is told of when a turn must begin with that tool: see `first_tool`."""
    entry = toolbox.registry.get(first) if first is not None else None
    return toolbox if entry is None else _Beginning(toolbox, entry.tool.spec)


def quiet_tools(toolbox: Toolbox) -> frozenset[str]:
    """The tools after which the mode `interactive` asks nobody: they do nothing, or speak."""
    return toolbox.speaking | {FINISH, SELECT, TIDY_STEPS}
