"""Hubbub: a messaging network in which AI agents and people work together in threads.

    from hubbub import LlmAgent, Network, tool        # agents with a model, and a network of them
    from hubbub import Agent, Message                 # agents that are Python classes
    from hubbub import Hooks, Proceed, Refused        # observing turns, and refusing calls
    from hubbub import Client                         # other programs

Names are loaded on first use, so that importing one part does not load the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hubbub.agents.llm_agent import LlmAgent as LlmAgent
    from hubbub.agents.prompt.builder import Component as Component
    from hubbub.agents.prompt.builder import PromptBuilder as PromptBuilder
    from hubbub.agents.prompt.components import default_builder as default_builder
    from hubbub.agents.prompt.context import PromptContext as PromptContext
    from hubbub.agents.python.agent import Agent as Agent
    from hubbub.agents.tools.approval import ApprovalRequest as ApprovalRequest
    from hubbub.agents.tools.approval import Approved as Approved
    from hubbub.agents.tools.approval import Denied as Denied
    from hubbub.agents.tools.base import ToolFailed as ToolFailed
    from hubbub.agents.tools.function import tool as tool
    from hubbub.agents.tools.runtime_arguments import CancelToken as CancelToken
    from hubbub.agents.tools.runtime_arguments import IdempotencyKey as IdempotencyKey
    from hubbub.agents.turn.hooks import Hooks as Hooks
    from hubbub.agents.turn.hooks import Proceed as Proceed
    from hubbub.agents.turn.hooks import Refused as Refused
    from hubbub.agents.turn.hooks import TurnEvent as TurnEvent
    from hubbub.client import Client as Client
    from hubbub.embed.ask import Answer as Answer
    from hubbub.embed.ask import Ask as Ask
    from hubbub.embed.ask import NoAnswer as NoAnswer
    from hubbub.embed.network import Network as Network
    from hubbub.errors import OperationError as OperationError
    from hubbub.errors import RequestFailed as RequestFailed
    from hubbub.protocol.messages import Message as Message

__version__ = "0.1.0"

__all__ = [
    "Agent",
    "Answer",
    "ApprovalRequest",
    "Approved",
    "Ask",
    "CancelToken",
    "Client",
    "Component",
    "Denied",
    "Hooks",
    "IdempotencyKey",
    "LlmAgent",
    "Message",
    "Network",
    "NoAnswer",
    "OperationError",
    "Proceed",
    "PromptBuilder",
    "PromptContext",
    "Refused",
    "RequestFailed",
    "ToolFailed",
    "TurnEvent",
    "__version__",
    "default_builder",
    "tool",
]

_HOMES = {
    "Agent": "hubbub.agents.python.agent",
    "Answer": "hubbub.embed.ask",
    "ApprovalRequest": "hubbub.agents.tools.approval",
    "Approved": "hubbub.agents.tools.approval",
    "Ask": "hubbub.embed.ask",
    "CancelToken": "hubbub.agents.tools.runtime_arguments",
    "Client": "hubbub.client",
    "Component": "hubbub.agents.prompt.builder",
    "Denied": "hubbub.agents.tools.approval",
    "Hooks": "hubbub.agents.turn.hooks",
    "IdempotencyKey": "hubbub.agents.tools.runtime_arguments",
    "LlmAgent": "hubbub.agents.llm_agent",
    "Message": "hubbub.protocol.messages",
    "Network": "hubbub.embed.network",
    "NoAnswer": "hubbub.embed.ask",
    "OperationError": "hubbub.errors",
    "Proceed": "hubbub.agents.turn.hooks",
    "PromptBuilder": "hubbub.agents.prompt.builder",
    "PromptContext": "hubbub.agents.prompt.context",
    "Refused": "hubbub.agents.turn.hooks",
    "RequestFailed": "hubbub.errors",
    "ToolFailed": "hubbub.agents.tools.base",
    "TurnEvent": "hubbub.agents.turn.hooks",
    "default_builder": "hubbub.agents.prompt.components",
    "tool": "hubbub.agents.tools.function",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'hubbub' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
