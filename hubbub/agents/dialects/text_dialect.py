"""The base class of text dialects: tools, calls and results as text."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from hubbub.agents.dialects.base import clean, mark_unparsed, with_step_marks
from hubbub.agents.dialects.scan import AmbiguousText
from hubbub.agents.models.base import CallRequest, Completion, CompletionRequest, ToolSpec
from hubbub.agents.turn.chat import (
    ChatMessage,
    ShownStep,
    compressed_text,
    cut_answer,
    lost_calls,
    result_text,
)
from hubbub.config.agents import DialectName
from hubbub.protocol.turns import Compressed, Steering, Step, ToolCallRecord, WaitStrategy

__all__ = ["Parsed", "TextDialect", "arguments_text", "results_tag", "tools_as_json"]

_RESULT_END = re.compile(r"<(?=/tool_result)", re.IGNORECASE)
_EMPTY_ANSWER = "(no words)"
"""Replaces an empty answer, which endpoints reject: chat templates need alternating roles."""
_CUT = "it was cut off at its length limit; be shorter"


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parsed answer."""

    calls: tuple[CallRequest, ...] = ()
    text: str = ""
    reasoning: str = ""
    wait: WaitStrategy = "all"
    discards: tuple[int, ...] = ()
    compresses: tuple[Compressed, ...] = ()


class TextDialect(ABC):
    """Describes tools in the system message, and returns results as user messages."""

    name: DialectName
    form: tuple[str, ...]
    """The syntax of a call; any description of how to call tools must mention these."""
    hides: frozenset[str] = frozenset()
    beside: frozenset[str] = frozenset()

    @abstractmethod
    def instructions(self, tools: Sequence[ToolSpec]) -> str:
        """Describe the tools and how to call them."""

    @abstractmethod
    def parse(self, text: str) -> Parsed:
        """Parse the text. Raises `AmbiguousText`."""

    @abstractmethod
    def calls(self, step: Step) -> str:
        """The calls of a step, in the syntax that the model would use."""

    @property
    @abstractmethod
    def reminder(self) -> str:
        """The format of an answer, in a sentence or two."""

    # Requests ------------------------------------------------------------------------------------

    def question(
        self, system: str, prompt: str, steps: Sequence[ShownStep], tools: Sequence[ToolSpec]
    ) -> CompletionRequest:
        chat: list[ChatMessage] = [
            {"role": "system", "content": system},
            {"role": "user", "content": prompt},
        ]
        for step in steps:
            for message in self._shown(step):
                _add(chat, message)
        return CompletionRequest(chat)

    def _shown(self, step: ShownStep) -> Iterator[ChatMessage]:
        if isinstance(step, Steering):
            yield {"role": "user", "content": step.text}
        elif isinstance(step, Compressed):
            yield {"role": "assistant", "content": compressed_text(step)}
        elif step.calls:
            text = "\n\n".join(filter(None, (step.text, self.calls(step))))
            yield {"role": "assistant", "content": text}
            yield {"role": "user", "content": _results(step)}
        else:
            yield {"role": "assistant", "content": cut_answer(step.text or _EMPTY_ANSWER)}
            yield {"role": "user", "content": self._correction(step)}

    def _correction(self, step: Step) -> str:
        if lost := lost_calls(step):
            return f"Your answer was not understood, nothing was done: {lost}. {self.reminder}"
        try:
            self.parse(step.text or "")
        except AmbiguousText as exc:
            return f"Your answer was not understood, nothing was done: {exc}. {self.reminder}"
        return f"Nobody has read that: only calls have an effect. {self.reminder}"

    # Answers -------------------------------------------------------------------------------------

    def read(self, answer: Completion) -> Completion:
        if answer.calls or not answer.text:  # the endpoint supports tool calls after all
            return with_step_marks(clean(answer))
        try:
            parsed = self.parse(answer.text)
        except AmbiguousText as exc:
            return mark_unparsed(answer, _CUT if answer.finish_reason == "length" else str(exc))
        reasoning = "\n\n".join(filter(None, (answer.reasoning, parsed.reasoning)))
        answer = replace(
            answer,
            calls=parsed.calls,
            text=parsed.text or None,
            reasoning=reasoning or None,
            wait=parsed.wait,
            discards=parsed.discards,
            compresses=parsed.compresses,
        )
        return with_step_marks(clean(answer))


def arguments_text(parameters: JsonValue) -> str:
    """The arguments as JSON. A string is returned unchanged, so that it is parsed or rejected like
    the arguments of any other call.
    """
    if isinstance(parameters, str):
        return parameters
    return json.dumps({} if parameters is None else parameters)


def tools_as_json(tools: Sequence[ToolSpec]) -> str:
    """The tools as lines of JSON."""
    lines = (
        {"name": tool.name, "description": tool.description, "parameters": tool.offered}
        for tool in tools
    )
    return "\n".join(json.dumps(line, ensure_ascii=False) for line in lines)


def results_tag(step: Step) -> str:
    """The line that begins the results of a step."""
    return f'<tool_results step="{step.n}">'


def _results(step: Step) -> str:
    lines = [results_tag(step), *map(_result, step.calls), "</tool_results>"]
    return "\n".join(lines)


def _result(call: ToolCallRecord) -> str:
    """One result. Its text cannot close the tag."""
    text = _RESULT_END.sub(r"<\\", result_text(call))
    name = json.dumps(call.name, ensure_ascii=False)
    id = json.dumps(call.id, ensure_ascii=False)
    return f"<tool_result tool_name={name} id={id}>{text}</tool_result>"


def _add(chat: list[ChatMessage], message: ChatMessage) -> None:
    """Append the message, or join it to one of the same role, as many chat templates require."""
    if chat[-1]["role"] != message["role"]:
        chat.append(message)
        return
    chat[-1]["content"] = f"{chat[-1]['content']}\n\n{message['content']}"
