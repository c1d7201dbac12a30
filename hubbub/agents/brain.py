"""What an agent does with its turns: a model, several of them, or handlers in Python."""

from __future__ import annotations

import asyncio
from typing import Protocol

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.turn.journal import Journal
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message

__all__ = ["Brain"]


class Brain(Protocol):
    """What the runner of an agent asks, and tells of what happens."""

    async def ready(self, ready: Ready) -> None:
        """A connection stands; called before the inbox takes it in."""
        ...

    async def start(self) -> None:
        """Called once, when the agent has joined."""
        ...

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether somebody waits for just this message: then it starts no turn of its own.

        None: no. The verdict may come later; until then nothing happens with the message.
        """
        ...

    def observes(self, message: Message) -> bool:
        """Whether `observe` wants this message, which wakes nobody here."""
        ...

    async def observe(self, message: Message) -> None: ...

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        """Run the turn and record its end, or that it waits for a person (`Journal.park`). An
        exception is recorded as `handler_error`.
        """
        ...

    async def dropped(self, turn: str) -> None:
        """A turn will not go on, although it may have stopped to wait for a person: it was ended
        by somebody else.
        """
        ...
