"""A dialect: how tools and earlier steps are presented to a model, and how its answers are parsed.

    native        the endpoint's own tool calls
    tool_call     lines that begin with TOOL_CALL
    final_output  one JSON object between <final_output> tags

All of them produce the same kind of steps, and can present steps made by any other.
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
from hubbub.agents.turn.chat import ShownStep, chat_messages
from hubbub.agents.turn.steps import read_arguments
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Compressed, Step

__all__ = ["MOST_NAME", "Dialect", "Native", "clean", "mark_unparsed", "with_step_marks"]

MOST_NAME = 128
"""Characters of the name of a tool or of the id of a call; no real one is longer."""


class Dialect(Protocol):
    """Pure: its output depends on its arguments alone."""

    @property
    def name(self) -> DialectName: ...

    @property
    def hides(self) -> frozenset[str]:
        """Tools that the dialect does not need: they are neither described nor callable."""
        ...

    @property
    def beside(self) -> frozenset[str]:
        """Tools that are no calls in this dialect, but fields that may accompany calls; described
        where the tool exists.
        """
        ...

    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """The shipped description of how to call tools, and which there are, for the end of a
        system message; empty for native calls.
        """
        ...

    def question(
        self, system: str, prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        """The request after `steps` with these tools; `system` is the whole system message."""
        ...

    def calls(self, step: Step) -> str:
        """The calls of a step in words, as the model would have written them if it could."""
        ...

    def read(self, answer: Completion) -> Completion:
        """Parse the model's text: the calls in it, and the rest.

        An ambiguous answer has no calls; a note says what was wrong.
        """
        ...


def clean(answer: Completion) -> Completion:
    """The answer with names and ids of calls short enough to be recorded.

    An answer with too many calls has none.
    """
    if len(answer.calls) > MOST_CALLS:
        words = f"{len(answer.calls)} calls at once; at most {MOST_CALLS} are carried out"
        return mark_unparsed(replace(answer, calls=()), words)
    calls = (
        replace(c, id=reveal(c.id)[:MOST_NAME], name=reveal(c.name)[:MOST_NAME])
        for c in answer.calls
    )
    return replace(answer, calls=tuple(calls))


def mark_unparsed(answer: Completion, why: str) -> Completion:
    """The answer with a note on why nothing was done."""
    notes = (*answer.notes, f"the answer was not understood: {reveal(why)}")
    return replace(answer, notes=notes, understood=False)


def with_step_marks(answer: Completion) -> Completion:
    """The answer with the marks from its calls of `tidy_steps`."""
    discards, compresses = list(answer.discards), list(answer.compresses)
    for call in answer.calls:
        if call.name == TIDY_STEPS:
            marks = _marks(call.arguments)
            discards += marks.discard
            compresses += [Compressed(n=c.step, text=reveal(c.text)) for c in marks.compress]
    return replace(answer, discards=tuple(discards), compresses=tuple(compresses))


def _marks(arguments: str) -> TidyArguments:
    """The arguments; empty if they are invalid, which the tool itself reports."""
    try:
        return TidyArguments.model_validate(read_arguments(arguments))
    except ValueError:  # includes pydantic's ValidationError
        return TidyArguments()


# The dialect of endpoints with tool calls: `tools` in the request, `tool_calls` in the answer.


class Native:
    """Native tool calls; only thoughts in the text are separated from the rest."""

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
        words, thoughts = without_thoughts(answer.text)
        if not thoughts:
            return answer
        reasoning = "\n\n".join(filter(None, (answer.reasoning, thoughts)))
        return replace(answer, text=words or None, reasoning=reasoning)
