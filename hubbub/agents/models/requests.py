"""Builds requests for both APIs, Chat Completions and OpenAI's Responses. Pure.

Both carry the same information in different places. Schemas are sent as `strict` where possible, if
the endpoint enforces strict schemas.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import CompletionRequest, ToolSpec
from hubbub.agents.models.portable_schema import strict
from hubbub.agents.turn.chat import ChatMessage
from hubbub.config.agents import ModelConfig

__all__ = ["Request", "chat_request", "is_strict", "responses_request", "tool_of"]

Request: TypeAlias = dict[str, Any]
"""Keyword arguments of the `openai` package's `create` functions, which have too many to type."""

_SHARED = ("temperature", "top_p", "service_tier", "extra_body", "extra_headers")
"""Keys of a config that are keywords of both APIs."""


def is_strict(config: ModelConfig) -> bool:
    """Whether tools are sent as `strict` where possible."""
    return config.is_openai if config.strict is None else config.strict


def tool_of(tool: ToolSpec, config: ModelConfig) -> dict[str, object]:
    """A tool in the API's format."""
    schema = tool.strict if is_strict(config) else None
    function: dict[str, object] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.offered if schema is None else schema,
    }
    if config.api == "responses":  # its default is strict
        return {"type": "function", **function, "strict": schema is not None}
    if schema is not None:
        function["strict"] = True
    return {"type": "function", "function": function}


def chat_request(
    config: ModelConfig, question: CompletionRequest, tools: Sequence[Mapping[str, object]]
) -> Request:
    """A request of Chat Completions."""
    request: Request = {"model": config.model, "messages": question.messages}
    request |= _common(config, question, tools)
    if config.reasoning_effort is not None:
        request["reasoning_effort"] = config.reasoning_effort
    form = _form(config, question)
    if form is not None:
        request["response_format"] = form
    if config.max_output_tokens is not None:
        # OpenAI rejects the older name.
        name = "max_completion_tokens" if config.is_openai else "max_tokens"
        request[name] = config.max_output_tokens
    return request


def responses_request(
    config: ModelConfig, question: CompletionRequest, tools: Sequence[Mapping[str, object]]
) -> Request:
    """A request of the Responses API, stateless: the hub's record is the history."""
    instructions = [m["content"] or "" for m in question.messages if m["role"] == "system"]
    items = [item for message in question.messages for item in _items(message)]
    request: Request = {"model": config.model, "input": items, "store": False}
    request |= _common(config, question, tools)
    if instructions:
        request["instructions"] = "\n\n".join(instructions)
    if config.reasoning_effort is not None:
        request["reasoning"] = {"effort": config.reasoning_effort}
    form = _form(config, question)
    if form is not None:
        inner = form.get("json_schema")
        within = inner if isinstance(inner, dict) else {}
        request["text"] = {"format": {"type": form.get("type"), **within}}
    if config.max_output_tokens is not None:
        request["max_output_tokens"] = config.max_output_tokens
    return request


def _common(
    config: ModelConfig, question: CompletionRequest, tools: Sequence[Mapping[str, object]]
) -> Request:
    request: Request = {}
    if tools:  # endpoints reject an empty list, and `tool_choice` without tools
        request["tools"] = tools
        request["tool_choice"] = "auto" if question.form is not None else config.tool_choice
    for name in _SHARED:
        if (value := getattr(config, name)) not in (None, {}):
            request[name] = value
    return request


def _form(config: ModelConfig, question: CompletionRequest) -> dict[str, JsonValue] | None:
    """The response format."""
    if question.form is None:
        return config.response_format
    schema = strict(question.form)
    json_schema: dict[str, JsonValue] = {
        "name": "answer",
        "schema": question.form if schema is None else schema,
        "strict": schema is not None,
    }
    return {"type": "json_schema", "json_schema": json_schema}


def _items(message: ChatMessage) -> Iterator[dict[str, object]]:
    """The Responses API's items for a message."""
    content = message["content"]
    match message["role"]:
        case "tool":
            id = message["tool_call_id"]
            yield {"type": "function_call_output", "call_id": id, "output": content or ""}
        case "user" | "assistant" as role:
            if content:
                yield {"role": role, "content": content}
            for call in message.get("tool_calls", ()):
                yield {"type": "function_call", "call_id": call["id"], **call["function"]}
