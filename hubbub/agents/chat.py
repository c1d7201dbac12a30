"""A turn's steps as an OpenAI chat: messages are a projection of the steps, never kept. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NotRequired, TypedDict

from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["CORRECTION", "ChatMessage", "chat_messages"]

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")

CORRECTION = (
    "Nobody has read that: text outside a tool call reaches no one. Call a tool to say or do "
    "something, or call `finish` if you are done."
)
"""What a model is told that answered without a tool call."""


class ChatFunction(TypedDict):
    name: str
    arguments: str


class ChatToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatMessage(TypedDict):
    """A message of the chat completions format."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    tool_calls: NotRequired[list[ChatToolCall]]
    tool_call_id: NotRequired[str]


def chat_messages(system: str, prompt: str, steps: Sequence[Step]) -> list[ChatMessage]:
    """The chat before the next answer: every call is followed by its result, in order."""
    chat: list[ChatMessage] = [
        {"role": "system", "content": system},
        {"role": "user", "content": prompt},
    ]
    for step in steps:
        chat.extend(_step_messages(step))
    return chat


def _step_messages(step: Step) -> Iterator[ChatMessage]:
    if not step.calls:
        if step.text:  # endpoints refuse an assistant message that says nothing
            yield {"role": "assistant", "content": step.text}
        yield {"role": "user", "content": CORRECTION}
        return
    yield {
        "role": "assistant",
        "content": step.text,
        "tool_calls": [_tool_call(call) for call in step.calls],
    }
    for call in step.calls:
        yield {"role": "tool", "content": call.result or "", "tool_call_id": call.id}


def _tool_call(call: ToolCallRecord) -> ChatToolCall:
    given = call.arguments
    if isinstance(given, str):
        given = {"not_json": given}  # endpoints read the history too, and some insist on JSON
    arguments = json.dumps(given, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        # A model may have called a tool by a name that the endpoint does not take back.
        "function": {"name": _ILLEGAL.sub("_", call.name)[:64] or "_", "arguments": arguments},
    }
