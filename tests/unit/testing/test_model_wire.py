"""The forms of the scripted model's answers: as a whole, as a stream, and in words."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import JsonValue

from hubbub.testing.model_dialects import in_words
from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import Answer, Call
from hubbub.testing.model_wire import chunks, completion


def request(system: str = "", *chat: tuple[str, str], **more: JsonValue) -> ChatRequest:
    said = [("system", system), ("user", "four letters"), *chat]
    messages: JsonValue = [{"role": role, "content": text} for role, text in said]
    return parse_request({"model": "m", "messages": messages, **more}, {}, 0.0)


texts = st.text(max_size=40)
calls = st.builds(
    Call,
    tool=st.sampled_from(["add", "finish"]),
    arguments=texts | st.dictionaries(st.text(max_size=4), st.integers(), max_size=3),
)
answers = st.builds(
    Answer,
    text=st.none() | texts,
    calls=st.lists(calls, max_size=3),
    piece=st.integers(1, 20),
    finish_reason=st.sampled_from([None, "length"]),
)


def assembled(answer: Answer, number: int) -> tuple[str, list[tuple[str, str, str]], str | None]:
    """A stream as a client puts it together: text, calls (id, name, arguments), finish reason."""
    text, reason = "", None
    made: list[tuple[str, str, str]] = []
    for raw in chunks(request(stream=True), answer, number):
        chunk = ChatCompletionChunk.model_validate(raw)
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for part in choice.delta.tool_calls or []:
                assert part.function is not None
                if part.id is not None:
                    made.append((part.id, part.function.name or "", ""))
                id, name, arguments = made[part.index]
                made[part.index] = (id, name, arguments + (part.function.arguments or ""))
    return text, made, reason


@given(answers, st.integers(1, 99))
def test_a_stream_says_what_the_whole_answer_says(answer: Answer, number: int) -> None:
    whole = ChatCompletion.model_validate(completion(request(), answer, number)).choices[0]
    said = [
        (c.id, c.function.name, c.function.arguments)
        for c in whole.message.tool_calls or []
        if c.type == "function"
    ]
    assert assembled(answer, number) == (whole.message.content or "", said, whole.finish_reason)
    again = completion(request(), answer, number)
    assert json.dumps(again) == json.dumps(completion(request(), answer, number))


# In the words that a request asks for -------------------------------------------------------------

LINES, OBJECT = request("Write TOOL_CALL lines."), request("Write <final_output></final_output>.")
ADD = Call(tool="add", arguments={"a": 1})


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([ADD], {"action": "CallTool", "selected_tool": "add", "parameters": {"a": 1}}),
        (
            [Call(tool="add", arguments="{oops")],
            {"action": "CallTool", "selected_tool": "add", "parameters": "{oops"},
        ),
        (
            [Call(tool="finish", arguments={"reason": "r", "message": "m"})],
            {"action": "Finish", "message_to_user": "m", "parameters": {"reason": "r"}},
        ),
        (
            [Call(tool="ask_human", arguments={"question": "q", "options": ["a"]})],
            {"action": "AskUser", "message_to_user": "q", "options": ["a"]},
        ),
        (
            [Call(tool="fork", arguments={"goal": "g"})],
            {"action": "ForkAutoAgent", "parameters": {"goal": "g"}},
        ),
        (
            [Call(tool="add", id="x"), Call(tool="look")],
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
def test_calls_become_an_object(made: list[Call], expected: dict[str, JsonValue]) -> None:
    text = in_words(Answer(calls=made, wait="any"), OBJECT).text or ""
    inside = text.removeprefix("<final_output>").removesuffix("</final_output>")
    assert json.loads(inside) == expected
