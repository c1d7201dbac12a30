"""Whether the context windows of a config leave room for anything."""

from __future__ import annotations

from collections.abc import Iterator

from hubbub.agents.prompt.system import system_prompt
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.window import sizes
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.errors import ConfigError

__all__ = ["check_windows"]


def check_windows(config: LoadedConfig) -> list[ConfigError]:
    """What is wrong with the sizes that models and agents give, each with its line.

    Only what cannot work whatever happens: how much a question has is known when it is asked.
    """
    problems = [
        config.problem(
            ("models", name, "max_output_tokens"),
            f"models.{name}: an answer of {model.max_output_tokens} tokens leaves nothing of a "
            f"window of {model.context_window}: set max_output_tokens to less",
        )
        for name, model in config.file.models.items()
        if model.context_window is not None
        and (model.max_output_tokens or 0) >= model.context_window
    ]
    for name, agent in config.file.agents.items():
        for model in sorted(agent.used_models):
            problems += _wrong(config, name, agent, config.file.models[model])
    return problems


def _wrong(
    config: LoadedConfig, name: str, agent: AgentConfig, model: ModelConfig
) -> Iterator[ConfigError]:
    found = sizes(agent, model)
    if found is None:
        return
    (size, reserve), at = found, ("agents", name, "context")
    if reserve >= size:
        what = f"{reserve} tokens kept for the answer leave nothing of a window of {size}"
        yield config.problem((*at, "reserve"), f"agents.{name}.context.reserve: {what}")
        return
    needed = _least(config, name, agent, model, size - reserve)
    if needed is not None:
        said = f"agents.{name}: what it is always told has {needed} tokens, and of a window of"
        what = f"{said} {size} there are {size - reserve} for a question"
        yield config.problem((*at, "window"), f"{what}: raise the window, or shorten it")


def _least(
    config: LoadedConfig, name: str, agent: AgentConfig, model: ModelConfig, room: int
) -> int | None:
    """The tokens that the system message has at least; None: it fits in `room`."""
    text = agent.instruction
    if agent.prompt is None and agent.kind == "llm":  # else some of the rest may not be in it
        text = system_prompt(text, name, config.file.network.name)
    if len(text.encode()) <= room:
        return None  # no token is less than a byte: the vocabulary need not be loaded
    tokens = counter_for(model.model).count(text)
    return tokens if tokens > room else None
