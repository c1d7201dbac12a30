"""Opens the model of a config: the one place that knows all classes of models."""

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
"""Opens the models of agents that run in this context; a recording may replace it."""


def open_model(config: ModelConfig, label: str = "default") -> ChatModel:
    """The model of a config, which the caller must `close`. `label`: its name in `models`."""
    return OPENER.get()(config, label)
