"""A dialect: how a model is told of tools and of what has happened, and how its answers are read.

    native        the endpoint's own tool calls
    tool_call     lines that begin with TOOL_CALL
    final_output  one JSON object between <final_output> tags

All of them give the loop the same steps, and are shown steps that any of them has made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from hubbub.agents.dialects.scan import MOST_CALLS, without_thoughts
from hubbub.agents.models.base import Answer, Question, ToolSpec
from hubbub.agents.prompt.escape import reveal
from hubbub.agents.tools.tidy import TIDY_STEPS, Tidying
from hubbub.agents.tools.ways_out import SHOW_PLAN
from hubbub.agents.turn.chat import Kept, chat_messages
from hubbub.agents.turn.recording import read_arguments
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Compressed

__all__ = ["MOST_NAME", "Dialect", "Native", "clean", "not_understood", "tidied"]

MOST_NAME = 128
"""Characters of the name of a tool or of the id of a call; no real one is longer."""


class Dialect(Protocol):
    """Pure: what it says and reads depends on its arguments alone."""

    @property
    def name(self) -> DialectName: ...

    @property
    def hides(self) -> frozenset[str]:
        """Tools that the dialect has no use for: they are not described, nor callable."""
        ...

    @property
    def beside(self) -> frozenset[str]:
        """Tools that are no calls in it, but something that may stand beside calls, told as such
        where there is the tool.
        """
        ...

    def told(self, tools: Sequence[ToolSpec]) -> str:
        """How to call tools, and which there are, as Hubbub says it at the end of a system message;
        empty: the endpoint tells."""
        ...

    def question(
        self, system: str, prompt: str, steps: Sequence[Kept], tools: Sequence[ToolSpec]
    ) -> Question:
        """What the model is asked after `steps`, when it may call `tools`. `system` is the whole
        system message."""
        ...

    def read(self, answer: Answer) -> Answer:
        """What the model's words mean: the calls in them, and what it said besides.

        An answer that cannot be read without doubt has no calls; a note tells what was wrong.
        """
        ...


def clean(answer: Answer) -> Answer:
    """The answer with calls that can be recorded, whatever the model wrote: short names and ids.

    One with more calls than anybody means has none.
    """
    if len(answer.calls) > MOST_CALLS:
        words = f"{len(answer.calls)} calls at once; at most {MOST_CALLS} are carried out"
        return not_understood(replace(answer, calls=()), words)
    calls = (
        replace(c, id=reveal(c.id)[:MOST_NAME], name=reveal(c.name)[:MOST_NAME])
        for c in answer.calls
    )
    return replace(answer, calls=tuple(calls))


def not_understood(answer: Answer, why: str) -> Answer:
    """The answer with a note that tells why nothing was done."""
    notes = (*answer.notes, f"the answer was not understood: {reveal(why)}")
    return replace(answer, notes=notes, understood=False)


def tidied(answer: Answer) -> Answer:
    """The answer with the marks that its calls of `tidy_steps` make."""
    discards, compresses = list(answer.discards), list(answer.compresses)
    for call in answer.calls:
        if call.name == TIDY_STEPS:
            marks = _marks(call.arguments)
            discards += marks.discard
            compresses += [Compressed(n=c.step, text=reveal(c.text)) for c in marks.compress]
    return replace(answer, discards=tuple(discards), compresses=tuple(compresses))


def _marks(arguments: str) -> Tidying:
    """What the call asks for; nothing if it does not validate, which the tool itself tells."""
    try:
        return Tidying.model_validate(read_arguments(arguments))
    except ValueError:  # pydantic's is one, too
        return Tidying()


# The dialect of endpoints that know tools: `tools` in the request, `tool_calls` in the answer.


class Native:
    """Tools and calls are the endpoint's business; thoughts in the text are told apart from it."""

    name: DialectName = "native"
    hides = frozenset({SHOW_PLAN})
    beside: frozenset[str] = frozenset()

    def told(self, tools: Sequence[ToolSpec]) -> str:
        return ""

    def question(
        self, system: str, prompt: str, steps: Sequence[Kept], tools: Sequence[ToolSpec]
    ) -> Question:
        return Question(chat_messages(system, prompt, steps), tools)

    def read(self, answer: Answer) -> Answer:
        answer = tidied(clean(answer))
        if not answer.text or "<" not in answer.text:
            return answer
        words, thoughts = without_thoughts(answer.text)
        if not thoughts:
            return answer
        reasoning = "\n\n".join(filter(None, (answer.reasoning, thoughts)))
        return replace(answer, text=words or None, reasoning=reasoning)
