"""From an agent's config to the rules that keep its prompts within the model's context window."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hubbub.agents.prompt.budget import ContextRules
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.config.agents import AgentConfig, ModelConfig
from hubbub.errors import ConfigError

__all__ = ["context_rules", "window_size", "with_token_budget"]

DEFAULT_RESERVE = 4096
"""Tokens reserved for the completion, where the window is large enough."""
_RESULTS = 8
"""A single result may fill at most one in this many parts of the prompt's budget."""


def window_size(config: AgentConfig, model: ModelConfig) -> tuple[int, int] | None:
    """The agent's window and the tokens reserved in it for the completion; None: not known."""
    context = config.context
    known = [size for size in (context.window, model.context_window) if size is not None]
    if not known:
        return None
    size = min(known)
    if context.reserve is not None:
        return size, context.reserve
    return size, min(model.max_output_tokens or DEFAULT_RESERVE, size // 4)


async def context_rules(config: AgentConfig, name: str, model: ModelConfig) -> ContextRules:
    """The rules for the agent `name`. Loads a vocabulary in a thread if the model's is known.

    Raises `ConfigError` when the reserve leaves no room in the window.
    """
    context = config.context
    found, protect = window_size(config, model), frozenset(context.protect)
    if found is None:
        return ContextRules(
            compression=context.compression, keep_steps=context.keep_steps, protect=protect
        )
    size, reserve = found
    if reserve >= size:
        what = f"{reserve} tokens reserved for the answer leave nothing of a window of {size}"
        raise ConfigError(f"agents.{name}.context.reserve: {what}")
    own = context.window is not None and size == context.window
    key = f"agents.{name}.context.window" if own else f"models.{config.model}.context_window"
    return ContextRules(
        size=size,
        reserve=reserve,
        compression=context.compression,
        keep_steps=context.keep_steps,
        protect=protect,
        counter=await asyncio.to_thread(counter_for, model.model),
        advice=f"raise {key} if the model has more",
    )


def with_token_budget(tool_policy: ToolPolicy, rules: ContextRules) -> ToolPolicy:
    """The policy with results counted by the model's tokens and bounded by its window."""
    if rules.room is None:
        return tool_policy
    most = max(rules.room // _RESULTS, 1)
    return replace(tool_policy, counter=rules.counter, budget=min(tool_policy.budget, most))
