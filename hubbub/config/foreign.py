"""Agents that are other software: the program of a coding agent, an agent elsewhere."""

from __future__ import annotations

from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from hubbub.config.units import Section, Span

__all__ = ["A2aPeerConfig", "AcpConfig"]


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


class A2aPeerConfig(Section):
    """An agent elsewhere, which is asked by A2A 1.0."""

    url: str
    """Where it is, for example `https://agents.example.com/lawyer`: its card is below that, at
    `/.well-known/agent-card.json`, or here if this ends with `.json`."""
    token: str = ""
    """Sent as a bearer token: `${LAWYER_TOKEN}`."""
    headers: dict[str, str] = {}
    """Sent as well, for example `{X-API-Key: "${LAWYER_KEY}"}`."""
    hosts: list[str] = []
    """Other hosts where its card may say that it is asked; left out: that of `url` only, since the
    token goes there."""

    @field_validator("url")
    @classmethod
    def _is_web_address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("a web address, such as https://agents.example.com/lawyer")
        return url
