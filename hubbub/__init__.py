"""Hubbub: a messaging network in which AI agents and people work together in threads.

    from hubbub import Agent, Message, tool

`hubbub.client` is for programs that are no agents. Names load when they are first used, so that
importing one part costs nothing of the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.agents.agent import Agent as Agent
    from hubbub.agents.tools.base import ToolFailed as ToolFailed
    from hubbub.agents.tools.function import tool as tool
    from hubbub.protocol.messages import Message as Message

__version__ = "0.1.0"

__all__ = ["Agent", "Message", "ToolFailed", "__version__", "tool"]

_HOMES = {
    "Agent": "hubbub.agents.agent",
    "Message": "hubbub.protocol.messages",
    "ToolFailed": "hubbub.agents.tools.base",
    "tool": "hubbub.agents.tools.function",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
