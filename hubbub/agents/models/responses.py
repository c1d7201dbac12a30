"""Parses an endpoint's responses from plain JSON. Pure.

Endpoints omit fields and use types of their own. Unambiguous deviations are accepted: content in
parts, arguments that are an object, numeric ids, calls without a type. Unimportant fields may be
anything: usage, finish reason. If text or calls of the model would be lost, the answer is
`UnreadableResponse`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion
from hubbub.agents.prompt.escape import reveal

__all__ = [
    "NO_FUNCTION",
    "Object",
    "UnreadableResponse",
    "arguments_of",
    "calls_of",
    "choice_of",
    "function_of",
    "read_answer",
    "read_response",
    "reason_of",
    "reasoning_of",
    "string_of",
    "text_of",
    "token_usage",
]

Object: TypeAlias = Mapping[str, JsonValue]

_MOST_REASON = 100
_MOST_TOKENS = 10**12
"""The maximum that a record accepts, more than any model reads."""


class UnreadableResponse(Exception):
    """The response is no answer. The text continues a sentence that names the endpoint."""


def read_answer(body: JsonValue) -> Completion:
    """The answer in a complete chat completion; tokens that are not counted are 0.

    Raises `UnreadableResponse`.
    """
    given = body if isinstance(body, dict) else {}
    choice = choice_of(given)
    if choice is None:
        if given.get("error"):
            raise UnreadableResponse(
                f"gave an error instead of an answer: {_error_text(given['error'])}"
            )
        raise UnreadableResponse(_NO_COMPLETION)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnreadableResponse("gave an answer without a message")
    tokens_in, tokens_out = token_usage(given)
    return Completion(
        text=text_of(message) or None,
        calls=tuple(map(_call, calls_of(message))),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        finish_reason=reason_of(choice),
        reasoning=reasoning_of(message) or None,
    )


def read_response(body: JsonValue) -> Completion:
    """The answer in a response of the Responses API. Raises `UnreadableResponse`."""
    given = body if isinstance(body, dict) else {}
    output = given.get("output")
    if given.get("error"):
        raise UnreadableResponse(
            f"gave an error instead of an answer: {_error_text(given['error'])}"
        )
    if not isinstance(output, list):
        raise UnreadableResponse("answered with something that is no response; is base_url right?")
    items = [item for item in output if isinstance(item, dict)]
    calls = [item for item in items if item.get("type") == "function_call"]
    tokens_in, tokens_out = token_usage(given)
    return Completion(
        text="".join(text_of(item) for item in items if item.get("type") == "message") or None,
        calls=tuple(
            CallRequest(string_of(c.get("call_id")), string_of(c.get("name")), arguments_of(c))
            for c in calls
        ),
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        finish_reason=_response_reason(given),
        reasoning="\n\n".join(filter(None, map(_summary, items))) or None,
    )


def _response_reason(response: Object) -> str | None:
    """The finish reason, as Chat Completions would name it."""
    details = response.get("incomplete_details")
    why = string_of(details.get("reason")) if isinstance(details, dict) else ""
    reason = {"max_output_tokens": "length"}.get(why, why) or string_of(response.get("status"))
    return reveal(reason)[:_MOST_REASON] or None


def _summary(item: Object) -> str:
    """The summary of the model's thoughts."""
    summary = item.get("summary")
    return _texts(summary) if item.get("type") == "reasoning" and summary else ""


_NO_COMPLETION = "answered with something that is no chat completion; is base_url right?"


def _error_text(error: JsonValue) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else json.dumps(error)
    return " ".join(reveal(text).split())[:300]


# Parts, of complete answers and of the chunks of a stream -----------------------------------------


def choice_of(body: Object) -> Object | None:
    """The first choice; None: there is none. Raises `UnreadableResponse`."""
    choices = body.get("choices")
    if choices is not None and not isinstance(choices, list):
        raise UnreadableResponse(_NO_COMPLETION)
    first = choices[0] if choices else None
    if first is not None and not isinstance(first, dict):
        raise UnreadableResponse(_NO_COMPLETION)
    return first


def text_of(message: Object) -> str:
    """The text of a message, which may be in parts. Raises `UnreadableResponse`."""
    return _texts(message.get("content"))


def _texts(content: JsonValue) -> str:
    parts = content if isinstance(content, list) else [content]
    return "".join(map(_text, parts))


def _text(part: JsonValue) -> str:
    if isinstance(part, dict):  # images and thoughts have none
        part = part.get("text", part.get("refusal"))
    if part is not None and not isinstance(part, str):
        raise UnreadableResponse("gave an answer with content that is no text")
    return part or ""


def reasoning_of(message: Object) -> str:
    """A model's thoughts, in either of the fields in use: the API does not define one."""
    for name in ("reasoning_content", "reasoning"):
        thought = message.get(name)
        if thought and isinstance(thought, str):
            return thought
    return ""


def calls_of(message: Object) -> Sequence[JsonValue]:
    """The calls, or pieces of calls, unparsed. Raises `UnreadableResponse`."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise UnreadableResponse("gave an answer with tool_calls that are no list")
    return calls


def _call(call: JsonValue) -> CallRequest:
    function = function_of(call)
    if not isinstance(call, dict) or function is None:
        raise UnreadableResponse(NO_FUNCTION)
    name, arguments = string_of(function.get("name")), arguments_of(function)
    return CallRequest(string_of(call.get("id")), name, arguments)


NO_FUNCTION = "gave an answer with a call without a function"


def function_of(call: JsonValue) -> Object | None:
    """The `function` of a call, or of a piece of one."""
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else None


def arguments_of(function: Object) -> str:
    """The text of a call's arguments, or of a piece of them."""
    arguments = function.get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def string_of(value: JsonValue) -> str:
    """A name or an id, which may be a number; "" if it is neither string nor number."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)


def reason_of(choice: Object) -> str | None:
    """The endpoint's finish reason; None: there is none."""
    return reveal(string_of(choice.get("finish_reason")))[:_MOST_REASON] or None


def token_usage(body: Object) -> tuple[int, int]:
    """Input and output tokens; 0 where the endpoint does not count them."""
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return 0, 0
    read = usage.get("prompt_tokens", usage.get("input_tokens"))
    return _tokens(read), _tokens(usage.get("completion_tokens", usage.get("output_tokens")))


def _tokens(count: JsonValue) -> int:
    if isinstance(count, str):
        count = int(count) if count.isdecimal() and len(count) < 20 else 0
    if isinstance(count, bool) or not isinstance(count, int | float) or not isfinite(count):
        return 0
    return int(count) if 0 <= count <= _MOST_TOKENS else 0
