"""Converts between the Responses API and Chat Completions, so that one script plays both."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

__all__ = ["as_chat", "events", "response"]


def as_chat(raw: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The body of a request as in Chat Completions. Invalid parts stay, and are refused there."""
    shared = ("model", "tool_choice", "stream")
    chat: dict[str, JsonValue] = {key: raw[key] for key in shared if key in raw}
    messages: list[JsonValue] = []
    if raw.get("instructions"):
        messages.append({"role": "system", "content": raw["instructions"]})
    given = raw.get("input")
    text: list[JsonValue] = [{"role": "user", "content": given}]
    for item in given if isinstance(given, list) else text:
        _add(messages, item)
    tools = raw.get("tools")
    if isinstance(tools, list):
        chat["tools"] = [
            {"type": "function", "function": tool} for tool in tools if isinstance(tool, dict)
        ]
    match raw.get("text"):
        case {"format": {"type": "json_schema"} as form}:
            chat["response_format"] = {"type": "json_schema", "json_schema": form}
    return {**chat, "messages": messages}


def _add(messages: list[JsonValue], item: JsonValue) -> None:
    match item:
        case {"type": "function_call", "call_id": id, "name": name, "arguments": arguments}:
            function: JsonValue = {"name": name, "arguments": arguments}
            call: JsonValue = {"id": id, "type": "function", "function": function}
            last = messages[-1] if messages else None
            if isinstance(last, dict) and last.get("role") == "assistant":
                calls = last.setdefault("tool_calls", [])
                assert isinstance(calls, list)
                calls.append(call)
            else:
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        case {"type": "function_call_output", "call_id": id, "output": output}:
            messages.append({"role": "tool", "tool_call_id": id, "content": output})
        case _:
            messages.append(item)


def response(completion: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """A whole `chat.completion` as a `response`."""
    (choice,) = _list(completion["choices"])
    message, output = _map(choice["message"]), list[JsonValue]()
    number = str(completion["id"]).removeprefix("chatcmpl-")
    if message["content"] is not None:
        part: JsonValue = {"type": "output_text", "text": message["content"], "annotations": []}
        item: JsonValue = {
            "id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed",
            "content": [part],
        }  # fmt: skip
        output.append(item)
    for call, n in zip(_list(message.get("tool_calls", [])), itertools.count(1), strict=False):
        function: dict[str, JsonValue] = _map(call["function"])
        output.append(
            {"id": f"fc_{number}_{n}", "type": "function_call", "call_id": call["id"], **function}
        )
    cut = choice["finish_reason"] == "length"
    usage = _map(completion["usage"])
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": completion["created"],
        "model": completion["model"],
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "output": output,
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "total_tokens": usage["total_tokens"],
        },
    }


def events(whole: Mapping[str, JsonValue], piece: int) -> Iterator[dict[str, JsonValue]]:
    """The events of a streamed response; texts and arguments come `piece` characters at a time."""
    start: JsonValue = {**whole, "status": "in_progress", "output": [], "usage": None}
    numbers = itertools.count()
    for kind, event in _events(whole, start, piece):
        yield {"type": f"response.{kind}", "sequence_number": next(numbers), **event}


def _events(
    whole: Mapping[str, JsonValue], start: JsonValue, piece: int
) -> Iterator[tuple[str, dict[str, JsonValue]]]:
    yield "created", {"response": start}
    for index, item in enumerate(_list(whole["output"])):
        place: dict[str, JsonValue] = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            (part,) = _list(item["content"])
            kind, text = "output_text", str(part["text"])
            empty: JsonValue = {**item, "content": []}
            place |= {"content_index": 0, "logprobs": []}
        else:
            kind, text = "function_call_arguments", str(item["arguments"])
            empty = {**item, "arguments": ""}
        yield "output_item.added", {"output_index": index, "item": empty}
        for at in range(0, len(text), piece):
            yield f"{kind}.delta", {**place, "delta": text[at : at + piece]}
        yield "output_item.done", {"output_index": index, "item": item}
    yield str(whole["status"]), {"response": dict(whole)}


def _list(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _map(value: JsonValue) -> dict[str, JsonValue]:
    assert isinstance(value, dict)
    return value
