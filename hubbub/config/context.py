"""The context window in the YAML: what a model is shown, and what goes when that is too much."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from hubbub.config.units import Section, Size

__all__ = ["CompressionName", "ContextConfig"]

CompressionName = Literal["importance", "window", "summary"]


class ContextConfig(Section):
    """How an agent's questions fill the context window of its model. Sizes are tokens."""

    window: Size | None = None
    """Tokens that a question and its answer may have, for example 16k; left out, or more than that:
    the model's `context_window`. If neither is known, nothing is cut."""
    reserve: Size | None = None
    """Tokens of the window that are kept free for the answer. Left out: the model's
    `max_output_tokens` or 4k, and at most a quarter of the window."""
    compression: CompressionName = "importance"
    """What becomes of earlier steps of a turn for which there is no room. importance: those that
    only read go first, errors and writes stay as a line; window: the oldest go first; summary: the
    model puts them into fewer words, which costs a request."""
    keep_steps: Annotated[int, Field(ge=1, le=50)] = 5
    """The last steps, which stay as they are as long as anything else can go."""
