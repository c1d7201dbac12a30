"""Dialects: they present tools and earlier steps to a model, and parse its answers.

    native        the endpoint's own tool calls
    tool_call     lines that begin with TOOL_CALL
    final_output  one JSON object between <final_output> tags

All produce the same kind of steps, and each can present steps that another produced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from hubbub.agents.dialects.scan import MOST_CALLS, without_thoughts
from hubbub.agents.models.base import Completion, CompletionRequest, ToolSpec
from hubbub.agents.prompt.context import native_calls
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.standard_tools import SHOW_PLAN
from hubbub.agents.tools.tidy_steps import TIDY_STEPS, TidyArguments
from hubbub.agents.turn.chat import NOT_UNDERSTOOD, ShownStep, chat_messages
from hubbub.agents.turn.steps import read_arguments
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Compressed, Step

__all__ = ["MOST_NAME", "Dialect", "Native", "clean", "mark_unparsed", "with_step_marks"]

MOST_NAME = 128
"""Maximum characters of a tool's name or a call's id; no real one is longer."""


class Dialect(Protocol):
    """Pure: the output depends only on the arguments."""

    @property
    def name(self) -> DialectName: ...

    @property
    def hides(self) -> frozenset[str]:
        """Tools that the dialect makes redundant: neither described nor callable."""
        ...

    @property
    def beside(self) -> frozenset[str]:
        """Tools that this dialect expresses as fields next to calls, if the tool exists."""
        ...

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The default description of the tools and how to call them, for the end of a system
        message; empty for native calls.
        """
        ...

    def question(
        self, system: str, prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        """Build the request that follows `steps`; `system` is the whole system message."""
        ...

    def calls(self, step: Step) -> str:
        """The calls of a step as text, in the syntax that the model would use."""
        ...

    def read(self, answer: Completion) -> Completion:
        """Parse the model's text into calls and the remaining text.

        An ambiguous answer has no calls, and a note with the reason.
        """
        ...


def clean(answer: Completion) -> Completion:
    """Shorten the names and ids of calls so that they can be recorded.

    If there are too many calls, all are removed.
    """
    if len(answer.calls) > MOST_CALLS:
        reason = f"{len(answer.calls)} calls at once; at most {MOST_CALLS} are carried out"
        return mark_unparsed(replace(answer, calls=()), reason)
    calls = (
        replace(c, id=reveal(c.id)[:MOST_NAME], name=reveal(c.name)[:MOST_NAME])
        for c in answer.calls
    )
    return replace(answer, calls=tuple(calls))


def mark_unparsed(answer: Completion, reason: str) -> Completion:
    """Add a note with the reason why the answer had no effect."""
    notes = (*answer.notes, f"{NOT_UNDERSTOOD}{reveal(reason)}")
    return replace(answer, notes=notes, understood=False)


def with_step_marks(answer: Completion) -> Completion:
    """Add the discards and compressions requested by calls of `tidy_steps`."""
    calls = [call for call in answer.calls if call.name == TIDY_STEPS]
    if not calls:
        return answer
    discards, compresses = list(answer.discards), list(answer.compresses)
    for marks in (_marks(call.arguments) for call in calls):
        discards += marks.discard
        compresses += [Compressed(n=c.step, text=reveal(c.text)) for c in marks.compress]
    return replace(answer, discards=tuple(discards), compresses=tuple(compresses))


def _marks(arguments: str) -> TidyArguments:
    """The arguments; empty if invalid, which the tool itself reports."""
    try:
        return TidyArguments.model_validate(read_arguments(arguments))
    except ValueError:  # includes pydantic's ValidationError
        return TidyArguments()


class Native:
    """The endpoint's own tool calls: `tools` in the request, `tool_calls` in the answer.

    Only separates reasoning from the rest of the text.
    """

    name: DialectName = "native"
    hides = frozenset({SHOW_PLAN})
    beside: frozenset[str] = frozenset()

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        return ""

    def calls(self, step: Step) -> str:
        return native_calls(step)

    def question(
        self, system: str, prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        return CompletionRequest(chat_messages(system, prompt, steps), tools)

    def read(self, answer: Completion) -> Completion:
        answer = with_step_marks(clean(answer))
        if not answer.text or "<" not in answer.text:
            return answer
        text, thoughts = without_thoughts(answer.text)
        if not thoughts:
            return answer
        reasoning = "\n\n".join(filter(None, (answer.reasoning, thoughts)))
        return replace(answer, text=text or None, reasoning=reasoning)
