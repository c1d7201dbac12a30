"""Answers of the Responses API, whole and in events."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.agents.models.base import CallRequest, Completion, Delta
from hubbub.agents.models.responses import ResponseAssembly, UnreadableResponse, read_response

ITEMS: list[JsonValue] = [
    {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "First "}, {"text": "look."}],
    },
    {"type": "reasoning", "summary": []},
    {"type": "reasoning", "summary": [{"text": "Then add."}]},
    {"type": "message", "content": [{"type": "output_text", "text": "I "}, {"text": "add."}]},
    {"type": "message", "content": [{"type": "refusal", "refusal": " No."}]},
    {"type": "function_call", "call_id": "c1", "id": "x", "name": "add", "arguments": '{"a": 1}'},
    {"type": "function_call", "call_id": 7, "name": "look", "arguments": None},
    {"type": "web_search_call", "summary": "s", "content": "c"},
    "odd",
]
ANSWER = Completion(
    text="I add. No.",
    calls=(CallRequest("c1", "add", '{"a": 1}'), CallRequest("7", "look", "")),
    tokens_in=12,
    tokens_out=3,
    finish_reason="completed",
    reasoning="First look.\n\nThen add.",
)


def response(items: JsonValue, **more: JsonValue) -> dict[str, JsonValue]:
    usage: JsonValue = {"input_tokens": 12, "output_tokens": 3}
    return {"output": items, "status": "completed", "usage": usage, "error": None, **more}


def test_a_response_is_read_with_calls_reasoning_and_tokens() -> None:
    assert read_response(response(ITEMS)) == ANSWER
    nothing = read_response({"output": []})
    assert nothing == Completion(tokens_in=0, tokens_out=0)


def test_the_reason_for_an_incomplete_response_has_its_usual_name() -> None:
    cases: list[tuple[JsonValue, JsonValue, str | None]] = [
        ({"reason": "max_output_tokens"}, "incomplete", "length"),
        ({"reason": "content_filter"}, "incomplete", "content_filter"),
        *((None, "failed", "failed"), ("odd", "in_progress", "in_progress")),
        ({"reason": None}, None, None),
        ({"reason": "\0" + "x" * 200}, None, "⟦U+0000⟧" + "x" * 92),
    ]
    for details, status, reason in cases:
        read = read_response(response([], incomplete_details=details, status=status))
        assert read.finish_reason == reason


def test_a_response_that_is_none_is_reported() -> None:
    failed = "returned an error instead of an answer: "
    no_response = "answered with something other than a response; check base_url"
    long = "a \n b " * 100
    cases: list[tuple[JsonValue, str]] = [
        ({"output": [], "error": {"message": "busy"}}, f"{failed}busy"),
        ({"error": {"code": 5}}, f'{failed}{{"code": 5}}'),
        ({"error": long}, failed + ("a b " * 100)[:300]),
        ({"output": {}}, no_response),
        ({}, no_response),
        ([1], no_response),
    ]
    for body, reason in cases:
        with pytest.raises(UnreadableResponse) as caught:
            read_response(body)
        assert str(caught.value) == reason


def test_events_are_assembled_to_the_complete_response() -> None:
    assembly = ResponseAssembly(attempt=2)
    added, arguments = "response.output_item.added", "response.function_call_arguments.delta"
    events: list[tuple[JsonValue, list[Delta]]] = [
        ({"type": "response.created"}, []),
        ({"type": added, "output_index": 0, "item": {"type": "message", "name": "odd"}}, []),
        ({"type": arguments, "output_index": 0, "delta": "of no call"}, []),
        (
            {"type": "response.output_text.delta", "output_index": 0, "delta": "I add."},
            [Delta("I add.", attempt=2)],
        ),
        ({"type": added, "output_index": 1, "item": {"type": "function_call", "name": "add"}}, []),
        ({"type": added, "output_index": 2, "item": {"type": "function_call", "name": "see"}}, []),
        ({"type": arguments, "output_index": 2, "delta": "{"}, [Delta("{", 1, "see", 2)]),
        ({"type": arguments, "output_index": 1, "delta": "{}"}, [Delta("{}", 0, "add", 2)]),
        ({"type": arguments, "output_index": 3, "delta": "of no call"}, []),
        (None, []),
        ("odd", []),
        ({"type": "response.output_text.delta", "delta": 5}, []),
    ]
    for event, deltas in events:
        assert assembly.add(event) == deltas
    assert not assembly.is_complete
    assert assembly.answer() == Completion()
    assert assembly.add({"type": "response.completed", "response": response(ITEMS)}) == []
    assert assembly.is_complete
    assert assembly.answer() == ANSWER
    assert ResponseAssembly().add({"type": "response.output_text.delta", "delta": "x"}) == [
        Delta("x")
    ]
    for kind in ("incomplete", "failed"):
        assembly = ResponseAssembly()
        assembly.add({"type": f"response.{kind}", "response": response([], status=kind)})
        assert (assembly.is_complete, assembly.answer().finish_reason) == (True, kind)


def test_an_event_with_an_error_is_reported() -> None:
    with pytest.raises(UnreadableResponse, match="an error instead of an answer: busy"):
        ResponseAssembly().add({"type": "error", "message": "busy"})
    with pytest.raises(UnreadableResponse, match="something other than a response"):
        ResponseAssembly().add({"type": "response.completed", "response": None})
