"""Which of an agent's tools the program at the other end of a door is offered."""

from __future__ import annotations

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import ASK_HUMAN, DECLINE, FINISH, SHOW_PLAN
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.agents.tools.toolbox import Toolbox

__all__ = ["offered"]

_OF_LOOPS = frozenset({ASK_HUMAN, DECLINE, FINISH, SELECT, SHOW_PLAN, TIDY_STEPS})
"""Tools of a loop that asks a model: a program has a loop of its own."""


def offered(toolbox: Toolbox, *hidden: str) -> list[ToolSpec]:
    """All that the agent has, without the tools of a loop and `hidden`: programs cannot pick some
    first.
    """
    specs = toolbox.registry.definitions()
    return [spec for spec in specs if spec.name not in _OF_LOOPS.union(hidden)]
