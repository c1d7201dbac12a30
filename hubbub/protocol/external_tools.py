"""Tools of who asks: a direct message brings them, the turn that it starts may call them, and who
asks runs them.

    question   content {"text", "external_tools": [...]}     the turn may use these tools
    call       content {"external_call": {...}}              the turn ends, and waits
    results    content {"external_results": [...]}           the next turn goes on with them

All of it stands in the log as messages, so nothing else has to be kept while a call is out, and
results that come twice mean the same. A message's `text_representation` says it to people.
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

MOST_TOOLS = 128


class ExternalTool(Model):
    """A tool that its owner runs."""

    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")]
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=dict)
    """JSON Schema of its arguments, an object."""


class ExternalCall(Model):
    """A call that who asked shall run."""

    id: Annotated[str, Field(max_length=200)]
    """Names the call in its result: the `cid` of the message that hands it over."""
    name: str
    """The tool, as its owner calls it."""
    arguments: dict[str, JsonValue]


class ExternalResult(Model):
    """What came of a call."""

    id: str
    output: str


class _Content(Model):
    external_tools: Annotated[tuple[ExternalTool, ...], Field(max_length=MOST_TOOLS)] = ()
    external_call: ExternalCall | None = None
    external_results: Annotated[tuple[ExternalResult, ...], Field(max_length=MOST_TOOLS)] = ()


_NOTHING = _Content()


def _read(message: Message) -> _Content:
    """What a direct message brings; nothing where that is not well-formed."""
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
    """The tools that these messages bring; of several with one name the last."""
    found = {tool.name: tool for message in messages for tool in _read(message).external_tools}
    return list(found.values())


def call_in(message: Message) -> ExternalCall | None:
    """The call that the message asks for."""
    return _read(message).external_call


def results_in(messages: Iterable[Message]) -> Mapping[str, str]:
    """What came of calls, by their ids, as these messages (oldest first) say."""
    return {r.id: r.output for message in messages for r in _read(message).external_results}


def call_text(call: ExternalCall) -> str:
    """How a call reads."""
    return f"Run your tool {call.name}: {json.dumps(call.arguments, ensure_ascii=False)}"
