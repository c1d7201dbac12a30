"""Turns that end with a question, and go on in the turn that its answer begins.

A turn is recorded as finished and `waits for an answer`. The answer is the next message in its
thread; the turn that it starts finds the question, the agent's own last message there, which names
the turn that asked. So what belongs together follows from the thread and the records alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.agents.inbox import Thread, TurnPlan
from hubbub.errors import OperationError
from hubbub.protocol.turns import Step, Turn

__all__ = ["Earlier", "ReadTurn", "earlier_steps", "goes_on_with", "waiting", "waits"]

_WAITS = "waits for an answer"
_GOES_ON = "goes on with "
MOST_TURNS = 20
"""Turns in a row that go on with each other."""

ReadTurn = Callable[[str], Awaitable[Turn]]
"""Reads the record of a turn of the agent's own. Raises `OperationError`."""


def waiting(asked: JsonValue) -> str:
    """The reason of a turn that ends with this question (the arguments of `ask_human`)."""
    question = asked.get("question") if isinstance(asked, dict) else None
    return f"{_WAITS}: {question}" if isinstance(question, str) else _WAITS


@dataclass(frozen=True, slots=True)
class Earlier:
    """The steps of the turns that led to the question which a turn answers."""

    steps: tuple[Step, ...] = ()
    """Oldest first; none if nothing was waited for."""
    turn: str | None = None
    """The turn that has asked."""

    @property
    def first(self) -> int:
        """The number of the first step of the turn that goes on."""
        return self.steps[-1].n + 1 if self.steps else 1

    def noted(self, step: Step) -> Step:
        """The step as it is recorded: the first one of a turn that goes on says with which."""
        if self.turn is None or step.n != self.first:
            return step
        return step.model_copy(update={"notes": (*step.notes, f"{_GOES_ON}{self.turn}")})


async def earlier_steps(
    thread: Thread | None, plan: TurnPlan, me: str, read: ReadTurn, *, below: int = 10**6
) -> Earlier:
    """What this turn goes on with: nothing, unless it answers the question of the agent's last turn
    in this thread, and comes from somebody who had woken that. Steps from number `below` on are
    left out.
    """
    found: list[Sequence[Step]] = []
    name = asked = _last_turn(thread, plan, me)
    while name is not None and len(found) < MOST_TURNS:
        try:
            turn = await read(name)
        except OperationError:
            break  # a record that is no more
        if not found and not (_waits(turn) and _answers(thread, plan, turn)):
            return Earlier()
        steps = [step for step in turn.steps if step.n < below]
        found.insert(0, steps)
        name = goes_on_with(steps)
    return Earlier(tuple(step for steps in found for step in steps), asked if found else None)


def _last_turn(thread: Thread | None, plan: TurnPlan, me: str) -> str | None:
    """The turn in which the agent spoke last before the incoming messages."""
    first = min(message.seq for message in plan.incoming)
    messages = thread.messages if thread is not None else ()
    own = (m.cause_id for m in reversed(messages) if m.seq < first and m.sender_id == me)
    turn = next(own, None)
    return turn if turn is not None and turn.startswith(f"{me}-") else None


def _answers(thread: Thread | None, plan: TurnPlan, turn: Turn) -> bool:
    """Whether somebody has written who had woken that turn; true if that is forgotten."""
    woke = set(turn.start.messages)
    asked = {m.sender_id for m in (thread.messages if thread is not None else ()) if m.id in woke}
    return not asked or any(message.sender_id in asked for message in plan.incoming)


def waits(reason: str) -> bool:
    """Whether a turn that has ended for this reason goes on when somebody answers."""
    return reason.startswith(_WAITS)


def _waits(turn: Turn) -> bool:
    return turn.end is not None and waits(turn.end.reason)


def goes_on_with(steps: Sequence[Step]) -> str | None:
    """The turn that a turn with these steps goes on with; None if it begins anew."""
    notes = steps[0].notes if steps else ()
    found = next((note for note in notes if note.startswith(_GOES_ON)), None)
    return found.removeprefix(_GOES_ON) if found is not None else None
