"""What becomes of a message that comes while a turn runs."""

from __future__ import annotations

from typing import Literal

from hubbub.agents.inbox import by_person
from hubbub.protocol.messages import Message

__all__ = ["Steer", "wished"]

Steer = Literal["steer", "queue", "interrupt"]
"""What becomes of what a person says in the thread of a turn that runs."""


def wished(message: Message, config: Steer) -> Steer:
    """What is to become of a message that comes while a turn runs: as its sender says, if that is a
    person, else as the agent's config does. What agents say waits for the next turn.
    """
    if not by_person(message):
        return "queue"
    return message.mode or config
