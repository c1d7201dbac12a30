"""Coding agents that join by the Agent Client Protocol (ACP), in the YAML."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from hubbub.config.units import Section, Span

__all__ = ["USUAL_OF_ACP", "AcpConfig"]

USUAL_OF_ACP: Mapping[str, JsonValue] = MappingProxyType(
    {"permission_mode": "ask", "final_text": "send", "turn_timeout": 3600.0, "max_steps": 100}
)
"""What holds for an agent of the kind `acp` where its section says nothing else: a coding agent
changes files, works for a long time, and ends with a text that is its answer."""


class AcpConfig(Section):
    """The program of a coding agent, which speaks ACP on its stdin and stdout."""

    command: Annotated[list[str], Field(min_length=1)]
    """Program and arguments, for example `[opencode, acp]`."""
    cwd: str = "."
    """Its workspace: the folder in which it works; left out: the file's."""
    env: dict[str, str] = {}
    """Besides HOME, LOGNAME, PATH, SHELL, TERM and USER: it gets nothing else of the agent's
    environment. A key of its own goes here: `{ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}"}`."""
    login: str | None = None
    """How the program logs in, of the ways that it offers, where it wants that before a session:
    `openai-api-key` for Codex. Left out: it has logged in already, or needs no account."""
    session: Literal["thread", "agent"] = "thread"
    """thread: what the program remembers of one thread it does not know in another; agent: one
    memory for all threads, which it works on one after the other."""
    start_timeout: Span = 60.0
    """Until it has started, or has begun or loaded a session."""
