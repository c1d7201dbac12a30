"""Turns that have stopped because a call of theirs waits for a person. Pure.

Nothing runs for them, and their thread is free for other turns. Their record at the hub has all
that they need to go on: here is only which they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hubbub.agents.inbox import TurnPlan

__all__ = ["Parking"]


class Parking:
    """The parked turns of one agent. `again` is given each that can go on."""

    def __init__(self, again: Callable[[TurnPlan], None]) -> None:
        self._again = again
        self._parked: dict[str, TurnPlan] = {}
        self._early: set[str] = set()

    def park(self, plan: TurnPlan) -> None:
        """The turn is about to stop."""
        self._parked[plan.id] = plan

    def ended(self, turn: str) -> None:
        """A turn runs no more. One that is parked although something was decided while it still ran
        goes on at once.
        """
        if turn in self._early:
            self._early.remove(turn)
            self._go_on(turn)

    def decided(self, turn: str, *, running: bool) -> None:
        """Something that the turn waits for is decided: it goes on, as soon as it has stopped."""
        if running:
            self._early.add(turn)
        else:
            self._go_on(turn)

    def look_again(self, running: Iterable[TurnPlan]) -> None:
        """Anything may have been decided that was not heard of: all go on, and those that run do
        not stop before they have asked once more.
        """
        for turn in list(self._parked):
            self._go_on(turn)
        self._early.update(plan.id for plan in running)

    def drop(self, turn: str) -> bool:
        """The turn will not go on. Whether it was parked."""
        return self._parked.pop(turn, None) is not None

    def clear(self) -> None:
        """Forget them: they belong to a log that is no more."""
        self._parked.clear()
        self._early.clear()

    def _go_on(self, turn: str) -> None:
        plan = self._parked.pop(turn, None)
        if plan is not None:
            self._again(plan)
