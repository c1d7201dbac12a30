"""Parses an endpoint's responses from plain JSON. Pure.

Endpoints omit fields and use types of their own. Unambiguous deviations are accepted: content in
parts, arguments as an object, numeric ids, calls without a type. Unimportant fields such as usage
and finish reason can have any value. A response whose text or calls would be lost raises
`UnreadableResponse`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import NamedTuple, TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion, Delta
from hubbub.agents.prompt.escape import reveal

__all__ = [
    "Assembly",
    "Object",
    "ResponseAssembly",
    "UnreadableResponse",
    "arguments_of",
    "read_answer",
    "read_response",
    "text_of",
]

Object: TypeAlias = Mapping[str, JsonValue]

_MAX_REASON = 100
_MAX_TOKENS = 10**12
"""The maximum that a record accepts; no model reads as many."""


class UnreadableResponse(Exception):
    """The response is not an answer. The message continues a sentence that begins with the
    endpoint.
    """


def read_answer(body: JsonValue) -> Completion:
    """Parse a chat completion; tokens are 0 if not counted. Raises `UnreadableResponse`."""
    given = body if isinstance(body, dict) else {}
    choice = choice_of(given)
    if choice is None:
        if given.get("error"):
            raise UnreadableResponse(
                f"returned an error instead of an answer: {_error_text(given['error'])}"
            )
        empty = given.get("choices") == []
        raise UnreadableResponse(_NO_CHOICES if empty else _NO_COMPLETION)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise UnreadableResponse("returned an answer without a message")
    return Completion(
        text=text_of(message) or None,
        calls=tuple(map(_call, calls_of(message))),
        **token_usage(given)._asdict(),
        finish_reason=reason_of(choice),
        reasoning=reasoning_of(message) or None,
    )


def read_response(body: JsonValue) -> Completion:
    """Parse a response of the Responses API. Raises `UnreadableResponse`."""
    given = body if isinstance(body, dict) else {}
    output = given.get("output")
    if given.get("error"):
        raise UnreadableResponse(
            f"returned an error instead of an answer: {_error_text(given['error'])}"
        )
    if not isinstance(output, list):
        raise UnreadableResponse("answered with something other than a response; check base_url")
    items = [item for item in output if isinstance(item, dict)]
    calls = [item for item in items if item.get("type") == "function_call"]
    return Completion(
        text="".join(text_of(item) for item in items if item.get("type") == "message") or None,
        calls=tuple(
            CallRequest(string_of(c.get("call_id")), string_of(c.get("name")), arguments_of(c))
            for c in calls
        ),
        **token_usage(given)._asdict(),
        finish_reason=_response_reason(given),
        reasoning="\n\n".join(filter(None, map(_summary, items))) or None,
    )


def _response_reason(response: Object) -> str | None:
    """The finish reason, by its name in Chat Completions."""
    details = response.get("incomplete_details")
    cause = string_of(details.get("reason")) if isinstance(details, dict) else ""
    reason = {"max_output_tokens": "length"}.get(cause, cause) or string_of(response.get("status"))
    return reveal(reason)[:_MAX_REASON] or None


def _summary(item: Object) -> str:
    """The summary of the model's reasoning."""
    summary = item.get("summary")
    return _texts(summary) if item.get("type") == "reasoning" and summary else ""


_NO_CHOICES = "returned a chat completion without choices, that is, without an answer"
_NO_COMPLETION = "answered with something other than a chat completion; check base_url"


def _error_text(error: JsonValue) -> str:
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else json.dumps(error)
    return " ".join(reveal(text).split())[:300]


# Parts of complete answers and of streamed chunks -------------------------------------------------


def choice_of(body: Object) -> Object | None:
    """The first choice, if any. Raises `UnreadableResponse`."""
    choices = body.get("choices")
    if choices is not None and not isinstance(choices, list):
        raise UnreadableResponse(_NO_COMPLETION)
    first = choices[0] if choices else None
    if first is not None and not isinstance(first, dict):
        raise UnreadableResponse(_NO_COMPLETION)
    return first


def text_of(message: Object) -> str:
    """The text of a message, whole or in parts, or its refusal. Raises `UnreadableResponse`."""
    return _texts(message.get("content")) or _texts(message.get("refusal"))


def _texts(content: JsonValue) -> str:
    parts = content if isinstance(content, list) else [content]
    return "".join(map(_text, parts))


def _text(part: JsonValue) -> str:
    if isinstance(part, dict):  # images and reasoning have no text
        part = part.get("text", part.get("refusal"))
    if part is not None and not isinstance(part, str):
        raise UnreadableResponse("returned an answer whose content is not text")
    return part or ""


def reasoning_of(message: Object) -> str:
    """A model's reasoning, in either of the common fields: the API does not define one."""
    for name in ("reasoning_content", "reasoning"):
        reasoning = message.get(name)
        if reasoning and isinstance(reasoning, str):
            return reasoning
    return ""


def calls_of(message: Object) -> Sequence[JsonValue]:
    """The calls or chunks of calls, unparsed. Raises `UnreadableResponse`."""
    calls = message.get("tool_calls") or []
    if not isinstance(calls, list):
        raise UnreadableResponse("returned an answer whose tool_calls are not a list")
    return calls


def _call(call: JsonValue) -> CallRequest:
    function = function_of(call)
    if not isinstance(call, dict) or function is None:
        raise UnreadableResponse(NO_FUNCTION)
    name, arguments = string_of(function.get("name")), arguments_of(function)
    return CallRequest(string_of(call.get("id")), name, arguments)


NO_FUNCTION = "returned an answer with a call without a function"


def function_of(call: JsonValue) -> Object | None:
    """The `function` of a call, or of a chunk of one."""
    function = call.get("function") if isinstance(call, dict) else None
    return function if isinstance(function, dict) else None


def arguments_of(function: Object) -> str:
    """The text of a call's arguments, or of a chunk of them."""
    arguments = function.get("arguments")
    if arguments is None:
        return ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def string_of(value: JsonValue) -> str:
    """A name or id as text, whether string or number; "" for anything else."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value)


def reason_of(choice: Object) -> str | None:
    """The endpoint's finish reason, if any."""
    return reveal(string_of(choice.get("finish_reason")))[:_MAX_REASON] or None


class TokenUsage(NamedTuple):
    """Tokens of an answer, as a `Completion` has them; 0 where the endpoint does not count them."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0


def token_usage(body: Object) -> TokenUsage:
    usage = body.get("usage")
    if not isinstance(usage, dict):
        return TokenUsage()
    read = _tokens(usage.get("prompt_tokens", usage.get("input_tokens")))
    written = _tokens(usage.get("completion_tokens", usage.get("output_tokens")))
    details = usage.get("prompt_tokens_details", usage.get("input_tokens_details"))
    cached = _tokens(details.get("cached_tokens")) if isinstance(details, dict) else 0
    return TokenUsage(read, written, min(cached, read))


def _tokens(count: JsonValue) -> int:
    if isinstance(count, str):
        count = int(count) if count.isdecimal() and len(count) < 20 else 0
    if isinstance(count, bool) or not isinstance(count, int | float) or not isfinite(count):
        return 0
    return int(count) if 0 <= count <= _MAX_TOKENS else 0


# Assembles answers that arrive in chunks. Pure.


@dataclass(slots=True)
class _PartialCall:
    """A call that arrives in chunks: number `n` of the answer, from 0."""

    n: int
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)

    def add(self, piece: _CallDelta) -> None:
        self.id = self.id or piece.id
        self.name = self.name or piece.name
        self.arguments.append(piece.arguments)

    def is_followed_by(self, piece: _CallDelta) -> bool:
        """Whether the chunk, which has this call's index, starts another call.

        Some endpoints use the same index for all calls, or none; some repeat the name in every
        chunk, some invent an id for every chunk.
        """
        if piece.id and self.id:
            return piece.id != self.id and bool(piece.name or not piece.arguments)
        # Parsing at every chunk would take quadratic time.
        starts = bool(piece.name) and piece.arguments.lstrip().startswith("{")
        return bool(self.name) and starts and self._is_complete()

    def _is_complete(self) -> bool:
        try:
            return isinstance(json.loads("".join(self.arguments)), dict)
        except (ValueError, RecursionError):
            return False

    def build(self) -> CallRequest:
        return CallRequest(self.id, self.name, "".join(self.arguments))


@dataclass(frozen=True, slots=True)
class _CallDelta:
    """A chunk of a call."""

    index: int | None
    """None if the endpoint sends none."""
    id: str
    name: str
    arguments: str

    @classmethod
    def read(cls, given: JsonValue) -> _CallDelta:
        if not isinstance(given, dict):
            raise UnreadableResponse(NO_FUNCTION)
        function = function_of(given) or {}
        index = given.get("index")
        return cls(
            index=index if isinstance(index, int) else None,
            id=string_of(given.get("id")),
            name=string_of(function.get("name")),
            arguments=arguments_of(function),
        )


class Assembly:
    """Assembles one chat completion. `attempt` counts the requests for it."""

    def __init__(self, attempt: int = 1):
        self.is_complete = False
        """Whether a finish reason has arrived; without one the answer was interrupted."""
        self._attempt = attempt
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._by_id: dict[str, _PartialCall] = {}
        self._used = TokenUsage()
        self._reason: str | None = None

    def add(self, chunk: JsonValue) -> list[Delta]:
        """Add a chunk, possibly empty. Raises `UnreadableResponse`."""
        if not isinstance(chunk, dict):
            return []
        self._count(chunk)
        choice = choice_of(chunk)
        if choice is None:
            return []
        self.is_complete = self.is_complete or choice.get("finish_reason") is not None
        self._reason = reason_of(choice) or self._reason
        delta = choice.get("delta")
        return self._add_delta(delta) if isinstance(delta, dict) else []

    def answer(self) -> Completion:
        """The complete answer; tokens are 0 if not counted."""
        return Completion(
            text="".join(self._text) or None,
            calls=tuple(call.build() for call in self._calls),
            **self._used._asdict(),
            finish_reason=self._reason,
            reasoning="".join(self._reasoning) or None,
        )

    def _count(self, chunk: Object) -> None:
        """Use the last count: some endpoints send running counts."""
        counts = zip(token_usage(chunk), self._used, strict=True)
        self._used = TokenUsage(*(now or before for now, before in counts))

    def _add_delta(self, delta: Object) -> list[Delta]:
        text = text_of(delta)
        self._text.append(text)
        self._reasoning.append(reasoning_of(delta))
        deltas = [Delta(text, attempt=self._attempt)] if text else []
        for given in calls_of(delta):
            piece = _CallDelta.read(given)
            call = self._call(piece)
            call.add(piece)
            self._by_id[call.id] = call
            deltas.append(Delta(piece.arguments, call.n, call.name, self._attempt))
        return deltas

    def _call(self, piece: _CallDelta) -> _PartialCall:
        """The call that the chunk continues or starts."""
        call = self._at(piece)
        if call is None or call.is_followed_by(piece):
            call = _PartialCall(len(self._calls), piece.id)
            self._calls.append(call)
            if piece.index is not None:
                self._by_index[piece.index] = call
        return call

    def _at(self, piece: _CallDelta) -> _PartialCall | None:
        """The last call with the chunk's index, else with its id, else the last one."""
        if piece.index is not None:
            return self._by_index.get(piece.index)
        same = self._by_id.get(piece.id) if piece.id else None
        return same or (self._calls[-1] if self._calls else None)


class ResponseAssembly:
    """Assembles one answer of the Responses API, which sends the complete response last."""

    def __init__(self, attempt: int = 1):
        self.is_complete = False
        """Whether the complete response has arrived; without it the answer was interrupted."""
        self._attempt = attempt
        self._calls: dict[str, tuple[int, str]] = {}
        """Number and tool of each call, by its index in the output."""
        self._answer = Completion()

    def add(self, event: JsonValue) -> list[Delta]:
        """Add an event. Raises `UnreadableResponse`."""
        match event:
            case {"type": "response.output_item.added", "output_index": place, "item": dict(item)}:
                if item.get("type") == "function_call":
                    self._calls[str(place)] = len(self._calls), string_of(item.get("name"))
            case {"type": "response.output_text.delta", "delta": str(text)}:
                return [Delta(text, attempt=self._attempt)]
            case {
                "type": "response.function_call_arguments.delta",
                "output_index": place,
                "delta": str(text),
            } if str(place) in self._calls:
                n, name = self._calls[str(place)]
                return [Delta(text, n, name, self._attempt)]
            case {
                "type": "response.completed" | "response.incomplete" | "response.failed",
                "response": response,
            }:
                self._answer, self.is_complete = read_response(response), True
            case {"type": "error"}:
                read_response({"error": event})
        return []

    def answer(self) -> Completion:
        """The complete answer; tokens are 0 if not counted."""
        return self._answer
