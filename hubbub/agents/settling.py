"""Wakes that need no turn: the hub is told so by a turn in which nothing happens."""

from __future__ import annotations

from hubbub.agents.inbox import TurnPlan, Woken
from hubbub.agents.turn.journal import Journal
from hubbub.client import Client

__all__ = ["AWAITED", "IGNORED", "settle"]

AWAITED = "a handler was waiting for this message"
IGNORED = "the agent ignores this sender"


async def settle(client: Client, woken: Woken, reason: str) -> None:
    """Record a turn that has finished for this reason."""
    journal = Journal(client, TurnPlan.of([woken], None))
    await journal.end("finished", reason)
    await journal.settled()
