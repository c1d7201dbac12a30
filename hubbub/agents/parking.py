"""Turns that have stopped because a call of theirs waits for a person. Pure.

Nothing runs for them, and their thread is free for other turns. Their record at the hub has all
that they need to go on: here is only which they are.
"""

from __future__ import annotations

from hubbub.agents.inbox import TurnPlan

__all__ = ["Parking"]


class Parking:
    """The parked turns of one agent."""

    def __init__(self) -> None:
        self._parked: dict[str, TurnPlan] = {}
        self._early: set[str] = set()

    def park(self, plan: TurnPlan) -> None:
        """The turn is about to stop."""
        self._parked[plan.id] = plan

    def ended(self, turn: str) -> TurnPlan | None:
        """A turn runs no more. One that is parked although something was decided while it still
        ran is given back: it goes on at once.
        """
        if turn not in self._early:
            return None
        self._early.discard(turn)
        return self._parked.pop(turn, None)

    def decided(self, turn: str, *, running: bool) -> TurnPlan | None:
        """Something that the turn waits for is decided. The turn, if it can go on now."""
        if running:
            self._early.add(turn)
            return None
        return self._parked.pop(turn, None)

    def drop(self, turn: str) -> bool:
        """The turn will not go on. Whether it was parked."""
        return self._parked.pop(turn, None) is not None

    def all(self) -> list[TurnPlan]:
        """All of them, which count as parked no more."""
        plans, self._parked = list(self._parked.values()), {}
        return plans

    def clear(self) -> None:
        """Forget them: they belong to a log that is no more."""
        self._parked.clear()
        self._early.clear()
