"""Trying a recorded turn again: its model is asked once more, and nothing comes of it."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from hubbub.protocol.messages import Model, Name, TurnRef
from hubbub.protocol.operations import Input
from hubbub.protocol.turns import Label, Step

__all__ = ["Trial", "TriedTurn", "TryTurn", "TurnTried"]


class TryTurn(Input):
    turn: TurnRef
    """The id of the recorded turn."""
    system_prompt: str | None = None
    """In place of the recorded system message, all of it; left out: that one."""
    model: Name | None = None
    """Its name in the network's `models`; left out: the one that the agent uses."""


class TriedTurn(Model):
    """How a model would begin a recorded turn now."""

    turn: str
    model: str
    """The model's name at its endpoint, as in a turn's record."""
    step: Step
    """As it would be recorded; none of its calls was carried out."""


class Trial(Model):
    """What the hub asks of the agent that ran the turn: the data of the signal `try_turn`."""

    request: str
    """To be repeated in `turn_tried`."""
    turn: str
    system_prompt: str | None = None
    model: str | None = None
    within_s: float
    """Seconds after which nobody waits for the answer any more."""


class TurnTried(Input):
    request: Name
    """That of the signal."""
    model: Label = ""
    """With `step`: the name of the model that was asked, at its endpoint."""
    step: Step | None = None
    """What the model has answered."""
    error: Annotated[str | None, Field(min_length=1)] = None
    """Why there is no answer."""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.step is None) == (self.error is None):
            raise ValueError("either step or error")
        return self
