"""Agents that run other software: coding agents over ACP, remote agents over A2A."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.config.units import Headers, Secret, Section, Span, WebAddress

__all__ = ["A2aPeerConfig", "AcpConfig"]


class AcpConfig(Section):
    """A coding agent's program, which speaks ACP on stdin and stdout."""

    command: Annotated[list[str], Field(min_length=1)]
    """Program and arguments, for example `[opencode, acp]`."""
    cwd: str = "."
    """Its workspace folder. Default: the config's folder."""
    env: dict[str, str] = {}
    """Environment variables in addition to HOME, LOGNAME, PATH, SHELL, TERM and USER; no others are
    inherited. Put API keys here: `{ANTHROPIC_API_KEY: "${ANTHROPIC_API_KEY}"}`."""
    login: str | None = None
    """The program's login method, if it requires a login before a session: `openai-api-key` for
    Codex. Default: it is logged in already, or needs no account."""
    session: Literal["thread", "agent"] = "thread"
    """thread: a session per thread, with separate memories; agent: one session for all threads,
    which it works on one at a time."""
    start_timeout: Span = 60.0
    """Time to start, or to create or load a session."""


class A2aPeerConfig(Section):
    """A remote agent, called over A2A 1.0."""

    url: WebAddress
    """Its address, for example `https://agents.example.com/lawyer`. Its card is at
    `/.well-known/agent-card.json` below that, or at this address if it ends with `.json`."""
    token: Secret = ""
    """Sent as a bearer token: `${LAWYER_TOKEN}`."""
    headers: Headers = {}
    """Additional headers, for example `{X-API-Key: "${LAWYER_KEY}"}`."""
    hosts: list[str] = []
    """Other hosts to which its card can direct calls. Default: only the host of `url`, because the
    token is sent there."""
