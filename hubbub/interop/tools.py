"""The tools of an agent that are offered to an external program."""

from __future__ import annotations

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import ASK_HUMAN, DECLINE, FINISH, SHOW_PLAN
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.agents.tools.toolbox import Toolbox

__all__ = ["offered"]

_OF_LOOPS = frozenset({ASK_HUMAN, DECLINE, FINISH, SELECT, SHOW_PLAN, TIDY_STEPS})
"""Tools of our own model loop: a program has its own loop."""


def offered(toolbox: Toolbox, *hidden: str) -> list[ToolSpec]:
    """All tools of the agent except those of the model loop and `hidden`. Programs have no step in
    which to select tools first.
    """
    specs = toolbox.registry.definitions()
    return [spec for spec in specs if spec.name not in _OF_LOOPS.union(hidden)]
