"""What `begin_with` asks of a turn: its first call is one of that tool. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.agents.turn.recording import failure
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["NOT_FIRST", "NOT_RUN", "begun", "held_back"]

NOT_FIRST = "not_first"
"""The failure of a call that came before that of the tool to begin with."""
NOT_RUN = ("unknown_tool", "invalid_arguments", NOT_FIRST)
"""Failures of calls that have not been carried out."""


def begun(steps: Sequence[Step]) -> bool:
    """Whether a call of the turn has been carried out: then it was of that tool."""
    return any(call.error not in NOT_RUN for step in steps for call in step.calls)


def held_back(step: Step, before: Sequence[Step], tool: str | None) -> Step:
    """The step that follows `before`, in which calls that must wait for one of `tool` have the
    result that says so. None: nothing must wait.
    """
    if tool is None or begun(before):
        return step
    calls = tuple(call if call.name == tool else _not_yet(call, tool) for call in step.calls)
    return step.model_copy(update={"calls": calls})


def _not_yet(call: ToolCallRecord, tool: str) -> ToolCallRecord:
    if call.error is not None:
        return call
    words = f"{call.name} has not run: this turn begins with {tool}. Call {tool} alone, and the "
    told = failure(NOT_FIRST, f"{words}other tools when you have its result", near=[tool])
    return call.model_copy(update={"result": told, "error": NOT_FIRST})
