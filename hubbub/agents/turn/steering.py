"""How a running turn treats a new message in its thread."""

from __future__ import annotations

from typing import Literal

from hubbub.agents.inbox import by_person
from hubbub.protocol.messages import Message

__all__ = ["SteerMode", "steer_mode"]

SteerMode = Literal["steer", "queue", "interrupt"]
"""How a person's message in the thread of a running turn is treated."""


def steer_mode(message: Message, config: SteerMode) -> SteerMode:
    """How to treat a message that comes during a turn: a person's message may say so itself, or
    else the agent's config does. Messages of agents wait for the next turn.
    """
    if not by_person(message):
        return "queue"
    return message.mode or config
