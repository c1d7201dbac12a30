"""Tools that come and go while the agent runs, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hubbub.agents.tools.base import Tool

__all__ = ["NoSource", "ToolSource"]


class ToolSource(Protocol):
    """Where such tools come from: `hubbub.agents.tools.mcp.McpServers`."""

    def tools(self) -> Sequence[Tool]:
        """Those that can be called at present."""
        ...

    def absences(self) -> Mapping[str, str]:
        """By its name, why something cannot be reached at present whose tools should be here."""
        ...


class NoSource:
    """All tools stay."""

    def tools(self) -> Sequence[Tool]:
        return ()

    def absences(self) -> Mapping[str, str]:
        return {}
