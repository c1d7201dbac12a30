"""The settings of the mod `digest`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from hubbub.config.agents import ModelConfig
from hubbub.config.units import Size, Span
from hubbub.mods.api import ModConfig

__all__ = ["DigestConfig"]


class DigestConfig(ModConfig):
    model: Annotated[str | ModelConfig | None, Field(union_mode="left_to_right")] = None
    """What sums threads up: a name from `models`, or an endpoint (`{model: …, base_url: …, api_key:
    …}`). Left out: nobody does."""
    characters: Size = 12_000
    """Of one thread's messages that the model reads, the last ones."""
    timeout: Span = 20.0
    """For all summaries of one digest; what is not there by then is left out."""
    daily: Annotated[int, Field(ge=0)] = 200
    """Requests to the model in one day (UTC), of the whole network."""
