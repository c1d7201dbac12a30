"""An answer as an OpenAI-compatible endpoint writes it: one JSON object, or chunks of a stream."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_responses import events, response
from hubbub.testing.model_script import ScriptedAnswer, ScriptMistake

__all__ = ["embeddings", "error_body", "model_list", "stream", "whole"]

_CREATED = 1_700_000_000
"""A fixed date: two runs of a script give the same bytes."""


def whole(request: ChatRequest, answer: ScriptedAnswer, number: int) -> dict[str, JsonValue]:
    """The answer to the `number`th request, in one piece."""
    completion = _completion(request, answer, number)
    return response(completion) if request.by_responses else completion


def stream(request: ChatRequest, answer: ScriptedAnswer, number: int) -> Iterator[str]:
    """The same as server-sent events."""
    if request.by_responses:
        for event in events(whole(request, answer, number), answer.piece):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        return
    for chunk in _chunks(request, answer, number):
        yield f"data: {json.dumps(chunk)}\n\n"


def embeddings(
    body: JsonValue, vectors: Mapping[str, list[float]]
) -> tuple[list[str], dict[str, JsonValue]]:
    """The texts of a request for embeddings, and its answer. Raises ValueError for another body,
    and `ScriptMistake` for a text that no pattern is found in."""
    given = body.get("input") if isinstance(body, dict) else None
    given = [given] if isinstance(given, str) else given
    texts = [text for text in given if isinstance(text, str)] if isinstance(given, list) else []
    if not texts:
        raise ValueError("`input` is no text and no list of texts")
    rows: list[JsonValue] = []
    for n, text in enumerate(texts):
        found = next((vector for like, vector in vectors.items() if re.search(like, text)), None)
        if found is None:
            raise ScriptMistake(f"no pattern of `embeddings` is found in {text[:200]!r}")
        rows.append({"object": "embedding", "index": n, "embedding": [*found]})
    usage: JsonValue = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return texts, {"object": "list", "model": "scripted", "data": rows, "usage": usage}


def _completion(request: ChatRequest, answer: ScriptedAnswer, number: int) -> dict[str, JsonValue]:
    """As a `chat.completion`."""
    message: dict[str, JsonValue] = {"role": "assistant", "content": answer.text}
    if answer.calls:
        message["tool_calls"] = list(_calls(answer, number))
    choice: JsonValue = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(answer),
    }
    head = _head(request, number, "chat.completion")
    return {**head, "choices": [choice], "usage": _usage(request, answer)}


def _chunks(
    request: ChatRequest, answer: ScriptedAnswer, number: int
) -> Iterator[dict[str, JsonValue]]:
    """As `chat.completion.chunk`s, text before calls, call after call."""
    head = _head(request, number, "chat.completion.chunk")
    for delta in _deltas(answer, number):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last: JsonValue = {"index": 0, "delta": {}, "finish_reason": _finish_reason(answer)}
    yield {**head, "choices": [last]}
    options = request.body.stream_options
    if options is not None and options.include_usage:
        yield {**head, "choices": [], "usage": _usage(request, answer)}


def _deltas(answer: ScriptedAnswer, number: int) -> Iterator[dict[str, JsonValue]]:
    yield {"role": "assistant", "content": "" if answer.text is not None else None}
    for text in _pieces(answer.text or "", answer.piece):
        yield {"content": text}
    for index, call in enumerate(_calls(answer, number)):
        function = call["function"]
        assert isinstance(function, dict)
        arguments = str(function["arguments"])
        opening: JsonValue = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield {"tool_calls": [opening]}
        for text in _pieces(arguments, answer.piece):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text}}]}


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[at : at + size] for at in range(0, len(text), size))


def _calls(answer: ScriptedAnswer, number: int) -> Iterator[dict[str, JsonValue]]:
    for call, index in zip(answer.calls, itertools.count(1), strict=False):
        arguments = (
            call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        )
        yield {
            "id": call.id or f"call_{number}_{index}",
            "type": "function",
            "function": {"name": call.tool, "arguments": arguments},
        }


def _head(request: ChatRequest, number: int, kind: str) -> dict[str, JsonValue]:
    return {
        "id": f"chatcmpl-{number}",
        "object": kind,
        "created": _CREATED,
        "model": request.model,
    }


def _finish_reason(answer: ScriptedAnswer) -> str:
    return answer.finish_reason or ("tool_calls" if answer.calls else "stop")


def _usage(request: ChatRequest, answer: ScriptedAnswer) -> dict[str, JsonValue]:
    if answer.usage is not None:
        sent, said = answer.usage.prompt_tokens, answer.usage.completion_tokens
    else:
        sent = sum(len(m.text) for m in request.messages) // 4 + 1
        said = (len(answer.text or "") + sum(len(str(c.arguments)) for c in answer.calls)) // 4 + 1
    return {"prompt_tokens": sent, "completion_tokens": said, "total_tokens": sent + said}


def model_list(names: list[str]) -> dict[str, JsonValue]:
    data: list[JsonValue] = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "hubbub"} for name in names
    ]
    return {"object": "list", "data": data}


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, JsonValue]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
