"""Which class asks an endpoint: the one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import TypeAlias

from hubbub.agents.models.base import Model
from hubbub.config.agents import ModelConfig

__all__ = ["OPENER", "OpenModel", "open_endpoint", "open_model"]

OpenModel: TypeAlias = Callable[[ModelConfig, str], Model]


def open_endpoint(config: ModelConfig, label: str = "default") -> Model:
    """The endpoint of a config, whoever asks."""
    from hubbub.agents.models.openai import OpenAIModel  # slow to import

    return OpenAIModel(config, label)


OPENER: ContextVar[OpenModel] = ContextVar("OPENER", default=open_endpoint)
"""What opens the models of the agents that run in this context: a recording stands in for them."""


def open_model(config: ModelConfig, label: str = "default") -> Model:
    """The model of a config; `close` it at the end. `label` is its name in the section `models`."""
    return OPENER.get()(config, label)
