"""Which class asks an endpoint: the one place that knows them all."""

from __future__ import annotations

from hubbub.agents.models.base import Model
from hubbub.config.agents import ModelConfig

__all__ = ["open_model"]


def open_model(config: ModelConfig, label: str = "default") -> Model:
    """The model of a config; `close` it at the end. `label` is its name in the section `models`."""
    from hubbub.agents.models.openai import OpenAIModel  # slow to import

    return OpenAIModel(config, label)
