"""What an agent did about a message, by the record of the turn that took it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hubbub.network.stored import StoredTurn
from hubbub.protocol.turns import Step, TurnEnd, TurnStart

__all__ = ["DECLINE", "Answer", "answer_to"]

DECLINE = "decline"
"""The tool by which an agent says that it will not do what it was asked."""


class Answer(NamedTuple):
    """As in `Receipt`."""

    step: int | None = None
    answer: Literal["answered", "declined", "silent"] | None = None
    outcome: str | None = None


def answer_to(seq: int, turn: StoredTurn) -> Answer:
    """What the turn did about the message at `seq`.

    Whatever it says after the message stood in its prompt counts as an answer, to whomever: also
    who hands work on has not been silent.
    """
    steps = [Step.model_validate_json(step) for step in turn.steps]
    end = TurnEnd.model_validate_json(turn.end) if turn.end is not None else None
    shown = _shown(seq, turn, steps)
    if shown is None:
        return Answer(outcome=end.outcome if end else None)
    # What woke the turn stands in its prompt before anything is sent, also what has come since.
    spoken = bool(turn.sent) if shown == 1 else max(turn.sent, default=0) > seq
    answer: Literal["answered", "declined", "silent"] | None = None
    if any(_declines(step) for step in steps if step.n >= shown):
        answer = "declined"
    elif spoken:
        answer = "answered"
    elif end is not None:
        answer = "silent"
    return Answer(shown, answer, end.outcome if end else None)


def _shown(seq: int, turn: StoredTurn, steps: list[Step]) -> int | None:
    """The step in whose prompt the message first stood; None: in none yet."""
    id = f"m{seq}"
    if id in TurnStart.model_validate_json(turn.start).messages:
        return 1
    return next((s.n for s in steps if any(each.message == id for each in s.steered)), None)


def _declines(step: Step) -> bool:
    return any(
        call.name == DECLINE and call.result is not None and call.error is None
        for call in step.calls
    )
