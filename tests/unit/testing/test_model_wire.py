"""The scripted model's answers as a whole, as a stream, and as text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseFunctionToolCall, ResponseStreamEvent
from pydantic import JsonValue, TypeAdapter

from hubbub.agents.models.responses import ResponseAssembly, read_response
from hubbub.testing.model_playbook import in_dialect
from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import ScriptedAnswer, ScriptedCall
from hubbub.testing.model_wire import stream, whole


def request(system: str = "", *chat: tuple[str, str], **more: JsonValue) -> ChatRequest:
    pairs = [("system", system), ("user", "four letters"), *chat]
    messages: JsonValue = [{"role": role, "content": text} for role, text in pairs]
    return parse_request({"model": "m", "messages": messages, **more}, {}, 0.0)


texts = st.text(max_size=40)
calls = st.builds(
    ScriptedCall,
    tool=st.sampled_from(["add", "finish"]),
    arguments=texts | st.dictionaries(st.text(max_size=4), st.integers(), max_size=3),
)
answers = st.builds(
    ScriptedAnswer,
    text=st.none() | texts,
    calls=st.lists(calls, max_size=3),
    piece=st.integers(1, 20),
    finish_reason=st.sampled_from([None, "length"]),
)


def assembled(
    answer: ScriptedAnswer, number: int
) -> tuple[str, list[tuple[str, str, str]], str | None]:
    """A stream as a client assembles it: text, calls (id, name, arguments), finish reason."""
    text, reason = "", None
    calls: list[tuple[str, str, str]] = []
    for raw in stream(request(stream=True), answer, number):
        chunk = ChatCompletionChunk.model_validate_json(raw.removeprefix("data: "))
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or []:
                assert part.function is not None
                if part.id is not None:
                    calls.append((part.id, part.function.name or "", ""))
                id, name, arguments = calls[part.index]
                calls[part.index] = (id, name, arguments + (part.function.arguments or ""))
    return text, calls, reason


@given(answers, st.integers(1, 99))
def test_a_stream_equals_the_whole_answer(answer: ScriptedAnswer, number: int) -> None:
    choice = ChatCompletion.model_validate(whole(request(), answer, number)).choices[0]
    calls = [
        (c.id, c.function.name, c.function.arguments)
        for c in choice.message.tool_calls or []
        if c.type == "function"
    ]
    assert assembled(answer, number) == (choice.message.content or "", calls, choice.finish_reason)
    again = whole(request(), answer, number)
    assert json.dumps(again) == json.dumps(whole(request(), answer, number))


@given(answers, st.integers(1, 99))
def test_the_responses_api_returns_the_same_answer_in_its_own_format(
    answer: ScriptedAnswer, number: int
) -> None:
    asked = parse_request({"model": "m", "input": "four letters"}, {}, 0.0, is_responses_api=True)
    chat = ChatCompletion.model_validate(whole(request(), answer, number)).choices[0]
    response = Response.model_validate(whole(asked, answer, number))
    assert response.output_text == (chat.message.content or "")
    calls = [item for item in response.output if isinstance(item, ResponseFunctionToolCall)]
    assert [(c.call_id, c.name, c.arguments) for c in calls] == [
        (c.id, c.function.name, c.function.arguments)
        for c in chat.message.tool_calls or []
        if c.type == "function"
    ]
    assert (response.status == "incomplete") is (chat.finish_reason == "length")
    assembly = ResponseAssembly()
    for raw in stream(asked, answer, number):
        data = raw.partition("data: ")[2]
        EVENT.validate_json(data)
        assembly.add(json.loads(data))
    assert assembly.is_complete
    assert assembly.answer() == read_response(json.loads(response.model_dump_json()))


EVENT: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


# As the text that a request asks for --------------------------------------------------------------

LINES, OBJECT = request("Write TOOL_CALL lines."), request("Write <final_output></final_output>.")
ADD = ScriptedCall(tool="add", arguments={"a": 1})


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([ADD], {"action": "CallTool", "selected_tool": "add", "parameters": {"a": 1}}),
        (
            [ScriptedCall(tool="add", arguments="{oops")],
            {"action": "CallTool", "selected_tool": "add", "parameters": "{oops"},
        ),
        (
            [ScriptedCall(tool="finish", arguments={"reason": "r", "message": "m"})],
            {"action": "Finish", "message_to_user": "m", "parameters": {"reason": "r"}},
        ),
        (
            [ScriptedCall(tool="ask_human", arguments={"question": "q", "options": ["a"]})],
            {"action": "AskUser", "message_to_user": "q", "options": ["a"]},
        ),
        (
            [ScriptedCall(tool="fork", arguments={"goal": "g"})],
            {"action": "ForkAutoAgent", "parameters": {"goal": "g"}},
        ),
        (
            [ScriptedCall(tool="add", id="x"), ScriptedCall(tool="look")],
            {
                "action": "CallToolsParallel",
                "parallel_tools": [
                    {"tool_name": "add", "parameters": {}, "tool_id": "x"},
                    {"tool_name": "look", "parameters": {}},
                ],
                "wait_strategy": "any",
            },
        ),
    ],
)
def test_calls_are_written_as_the_requested_object(
    calls: list[ScriptedCall], expected: dict[str, JsonValue]
) -> None:
    text = in_dialect(ScriptedAnswer(calls=calls, wait="any"), OBJECT).text or ""
    inside = text.removeprefix("<final_output>").removesuffix("</final_output>")
    assert json.loads(inside) == expected
