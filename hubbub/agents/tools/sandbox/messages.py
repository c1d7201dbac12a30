"""The messages between an agent and its sandboxed process: one request, one answer, as JSON."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from pydantic import JsonValue

__all__ = ["SandboxRequest", "SandboxResponse"]


class SandboxRequest(TypedDict):
    """From the agent to the process."""

    path: list[str]
    """The import path."""
    module: str | None
    """The function's module, if it can be imported by name; otherwise `file` is loaded."""
    file: str
    function: str
    arguments: dict[str, JsonValue]
    site: tuple[str, int, int, str]
    """The call's turn, step, index and thread."""
    limits: dict[str, float]
    read: list[str] | None
    """Paths that it may read; None: all."""
    parent: int
    """Process id of the agent: the sandbox dies with it."""


class SandboxResponse(TypedDict):
    """From the process to the agent: a result, or how the call failed."""

    layers: list[str]
    """The protections that are active."""
    result: NotRequired[str]
    error: NotRequired[str]
    message: NotRequired[str]
    retry: NotRequired[bool]
    near: NotRequired[list[str]]
