"""Answers in the format of an OpenAI-compatible endpoint: a JSON object, or chunks of a stream."""

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
"""Fixed, so that two runs of a script give the same bytes."""


def whole(request: ChatRequest, answer: ScriptedAnswer, number: int) -> dict[str, JsonValue]:
    """The answer to request `number`, as one object."""
    completion = _completion(request, answer, number)
    return response(completion) if request.is_responses_api else completion


def stream(request: ChatRequest, answer: ScriptedAnswer, number: int) -> Iterator[str]:
    """The answer as server-sent events."""
    if request.is_responses_api:
        for event in events(whole(request, answer, number), answer.piece):
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
        return
    for chunk in _chunks(request, answer, number):
        yield f"data: {json.dumps(chunk)}\n\n"


def embeddings(
    body: JsonValue, vectors: Mapping[str, list[float]]
) -> tuple[list[str], dict[str, JsonValue]]:
    """The texts of a request for embeddings, and its answer. Raises ValueError for an invalid body,
    and `ScriptMistake` for a text that no pattern matches."""
    given = body.get("input") if isinstance(body, dict) else None
    given = [given] if isinstance(given, str) else given
    texts = [text for text in given if isinstance(text, str)] if isinstance(given, list) else []
    if not texts:
        raise ValueError("`input` is neither a text nor a list of texts")
    rows: list[JsonValue] = []
    for n, text in enumerate(texts):
        vector = next((v for pattern, v in vectors.items() if re.search(pattern, text)), None)
        if vector is None:
            raise ScriptMistake(f"no pattern of `embeddings` matches {text[:200]!r}")
        rows.append({"object": "embedding", "index": n, "embedding": [*vector]})
    usage: JsonValue = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return texts, {"object": "list", "model": "scripted", "data": rows, "usage": usage}


def _completion(request: ChatRequest, answer: ScriptedAnswer, number: int) -> dict[str, JsonValue]:
    """The answer as a `chat.completion`."""
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
    """The answer as `chat.completion.chunk`s: first the text, then call after call."""
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
        prompt, completion = answer.usage.prompt_tokens, answer.usage.completion_tokens
    else:
        prompt = sum(len(m.text) for m in request.messages) // 4 + 1
        characters = len(answer.text or "") + sum(len(str(c.arguments)) for c in answer.calls)
        completion = characters // 4 + 1
    total = prompt + completion
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def model_list(names: list[str]) -> dict[str, JsonValue]:
    data: list[JsonValue] = [
        {"id": name, "object": "model", "created": _CREATED, "owned_by": "hubbub"} for name in names
    ]
    return {"object": "list", "data": data}


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, JsonValue]:
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
