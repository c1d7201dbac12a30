"""What an agent and its sandboxed process say to each other: one request, one answer, as JSON."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from pydantic import JsonValue

__all__ = ["Answer", "Request"]


class Request(TypedDict):
    """What the agent asks of the process."""

    path: list[str]
    """Where modules are looked for."""
    module: str | None
    """The function's module, if it can be imported by name; else it is `file`."""
    file: str
    function: str
    arguments: dict[str, JsonValue]
    site: tuple[str, int, int, str]
    """The call's turn, step, index and thread."""
    limits: dict[str, float]
    read: list[str] | None
    """What it may read; None: all."""
    parent: int
    """Who dies with the sandbox, the other way round."""


class Answer(TypedDict):
    """What comes back: a result, or how the call failed."""

    layers: list[str]
    """What stands between the function and the rest."""
    result: NotRequired[str]
    error: NotRequired[str]
    message: NotRequired[str]
    retry: NotRequired[bool]
    near: NotRequired[list[str]]
