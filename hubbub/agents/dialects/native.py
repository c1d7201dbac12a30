"""The dialect of endpoints that know tools: `tools` in the request, `tool_calls` in the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hubbub.agents.dialects.base import clean, tidied
from hubbub.agents.dialects.scan import without_thoughts
from hubbub.agents.models.base import Answer, Question, ToolSpec
from hubbub.agents.tools.ways_out import SHOW_PLAN
from hubbub.agents.turn.chat import Kept, chat_messages
from hubbub.config.agents import DialectName

__all__ = ["Native"]


class Native:
    """Tools and calls are the endpoint's business; thoughts in the text are told apart from it."""

    name: DialectName = "native"
    hides = frozenset({SHOW_PLAN})
    beside: frozenset[str] = frozenset()

    def system(self, system: str, tools: Sequence[ToolSpec]) -> str:
        return system

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
