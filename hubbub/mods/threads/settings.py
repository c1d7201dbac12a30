"""The settings of the mod `threads`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.mods.api import ModConfig

__all__ = ["ThreadsConfig"]


class ThreadsConfig(ModConfig):
    reopen: Literal["all", "people", "nobody"] = "all"
    """Whose new message opens a resolved thread again."""
    excerpt: Annotated[int, Field(ge=20, le=10_000)] = 280
    """Characters of a message that stand in a quote of it which says no words."""
    longest_quote: Annotated[int, Field(ge=20, le=1_000_000)] = 4_000
    """Characters that a quote may have."""
