"""External tools: a direct message provides them, the turn it starts can call them, and the
message's sender runs them.

    question   content {"text", "external_tools": [...]}     the turn can use these tools
    call       content {"external_call": {...}}              the turn ends, and waits
    results    content {"external_results": [...]}           the next turn continues with them

Everything is in the log as messages, so no other state is needed while a call is open, and repeated
results have no effect. People see each message's `text_representation`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

from pydantic import Field, JsonValue, ValidationError

from hubbub.protocol.messages import Message, Model

__all__ = [
    "ExternalCall",
    "ExternalResult",
    "ExternalTool",
    "call_in",
    "call_text",
    "results_in",
    "tools_in",
]

MAX_TOOLS = 128


class ExternalTool(Model):
    """A tool that the question's sender runs."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON Schema of its arguments, an object."""


class ExternalCall(Model):
    """A call for the question's sender to run."""

    id: Annotated[str, Field(max_length=200)]
    """Identifies the call in its result: the `cid` of the message with the call."""
    name: str
    """The tool's name."""
    arguments: dict[str, JsonValue]


class ExternalResult(Model):
    """The result of a call."""

    id: str
    output: str


class _Content(Model):
    external_tools: Annotated[tuple[ExternalTool, ...], Field(max_length=MAX_TOOLS)] = ()
    external_call: ExternalCall | None = None
    external_results: Annotated[tuple[ExternalResult, ...], Field(max_length=MAX_TOOLS)] = ()


_NOTHING = _Content()


def _read(message: Message) -> _Content:
    """The external tools, call and results in a direct message; nothing if they are malformed."""
    content = message.content
    if message.type != "direct" or not isinstance(content, dict):
        return _NOTHING
    if not any(key in content for key in _Content.model_fields):
        return _NOTHING
    try:
        return _Content.model_validate(content)
    except ValidationError:
        return _NOTHING


def tools_in(messages: Iterable[Message]) -> Sequence[ExternalTool]:
    """The tools in these messages; the last one for each name."""
    tools = {tool.name: tool for message in messages for tool in _read(message).external_tools}
    return list(tools.values())


def call_in(message: Message) -> ExternalCall | None:
    """The call in the message, if any."""
    return _read(message).external_call


def results_in(messages: Iterable[Message]) -> Mapping[str, str]:
    """The results in these messages (oldest first), by call id."""
    return {r.id: r.output for message in messages for r in _read(message).external_results}


def call_text(call: ExternalCall) -> str:
    """The text of a call for people."""
    return f"Run your tool {call.name}: {json.dumps(call.arguments, ensure_ascii=False)}"
