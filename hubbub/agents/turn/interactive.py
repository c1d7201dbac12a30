"""The mode `interactive`: after each step that does something, a person is asked whether to go on.

The question is a step that the runtime makes, with a call of `ask_human`; the turn ends with it,
and the answer begins a turn that goes on with the same steps (`waiting.py`). Models are
not shown the question: they read the answer. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from pydantic import JsonValue

from hubbub.agents.tools.ways_out import ASK_HUMAN
from hubbub.agents.turn.first_call import NOT_FIRST, NOT_RUN
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["acted", "is_question", "question", "without_questions"]

_MOST = 300
"""Characters of a call's arguments, and of its result, that the question shows."""


def acted(step: Step, quiet: Collection[str]) -> bool:
    """Whether a call of the step did something that a person should know of: one that ran, of a
    tool that is not `quiet`. A person who was asked in the same step knows.
    """
    if any(call.name == ASK_HUMAN and call.error is None for call in step.calls):
        return False
    return any(call.name not in quiet and call.error not in NOT_RUN for call in step.calls)


def question(step: Step, quiet: Collection[str], n: int) -> Step:
    """Step `n`: whether to go on after `step`."""
    lines = [_told(c) for c in step.calls if c.name not in quiet and c.error != NOT_FIRST]
    asked: dict[str, JsonValue] = {
        "question": "\n".join([*lines, "Shall I go on?"]),
        "options": ["go on", "stop"],
    }
    call = ToolCallRecord(id=f"ask_{n}", name=ASK_HUMAN, arguments=asked)
    return Step(n=n, calls=(call,), made="confirm")


def is_question(step: Step) -> bool:
    return step.made == "confirm"


def without_questions(steps: Sequence[Step]) -> list[Step]:
    """The steps as a model is shown them."""
    return [step for step in steps if not is_question(step)]


def _told(call: ToolCallRecord) -> str:
    arguments = _cut(json.dumps(call.ran_with, ensure_ascii=False))
    outcome = "has failed" if call.error else "gives"
    return f"`{call.name}` with `{arguments}` {outcome}: {_cut(call.result or '')}"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST else f"{text[:_MOST]}…"
