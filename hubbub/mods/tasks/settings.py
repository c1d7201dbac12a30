"""The settings of the mod `tasks`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.config.units import Span
from hubbub.mods.api import ModConfig

__all__ = ["TasksConfig"]


class TasksConfig(ModConfig):
    max_active: Annotated[int, Field(ge=1)] = 1000
    """Tasks of one board that are not over."""
    max_boards: Annotated[int, Field(ge=1, le=200)] = 50
    """Boards of one thread."""
    announce: bool = False
    """Whether the thread gets a short message of each task that is done. It wakes nobody."""
    release_after: Span | None = None
    """Seconds that an agent may be away before the tasks that it holds are released."""
