"""Turns that end with a question, and go on in the turn that its answer begins.

A turn is recorded as finished and `waits for an answer`. The answer is the next message in its
thread; the turn that it starts finds the question, the agent's own last message there, which names
the turn that asked. So what belongs together follows from the thread and the records alone.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pydantic import JsonValue

from hubbub.agents.inbox import Thread, TurnPlan
from hubbub.errors import OperationError
from hubbub.protocol.turns import Step, Turn

__all__ = ["ReadTurn", "earlier_steps", "goes_on", "last_turn", "waiting", "waits"]

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


async def earlier_steps(
    thread: Thread | None, plan: TurnPlan, me: str, read: ReadTurn
) -> tuple[Step, ...]:
    """The steps of the turns that led to the question which this turn answers, oldest first; none
    if nothing is waited for, or somebody else has written than the one who was asked.
    """
    found: list[Sequence[Step]] = []
    name = last_turn(thread, plan, me)
    while name is not None and len(found) < MOST_TURNS:
        try:
            turn = await read(name)
        except OperationError:
            break  # a record that is no more
        if not found and not (_waits(turn) and _answers(thread, plan, turn)):
            break
        found.insert(0, turn.steps)
        name = _goes_on_with(turn.steps)
    return tuple(step for steps in found for step in steps)


def last_turn(thread: Thread | None, plan: TurnPlan, me: str) -> str | None:
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


def goes_on(turn: str) -> str:
    """The note of a turn's first step that says which turn it goes on with."""
    return f"{_GOES_ON}{turn}"


def _goes_on_with(steps: Sequence[Step]) -> str | None:
    notes = steps[0].notes if steps else ()
    found = next((note for note in notes if note.startswith(_GOES_ON)), None)
    return found.removeprefix(_GOES_ON) if found is not None else None
