"""Opens the model of a config: the only module that knows every model class."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

from hubbub.agents.models.base import ChatModel
from hubbub.config.agents import ModelConfig

__all__ = ["OPENER", "open_endpoint", "open_model"]

OpenModel: TypeAlias = Callable[[ModelConfig, str], ChatModel]


def open_endpoint(config: ModelConfig, label: str = "default") -> ChatModel:
    """The real endpoint of a config."""
    from hubbub.agents.models.openai import OpenAIModel  # slow to import

    return OpenAIModel(config, label)


OPENER: ContextVar[OpenModel] = ContextVar("OPENER", default=open_endpoint)
"""Opens the models of agents in this context; recordings replace it."""


def open_model(config: ModelConfig, label: str = "default") -> ChatModel:
    """Open the model of a config; the caller must `close` it. `label`: its name in `models`."""
    return OPENER.get()(config, label)
