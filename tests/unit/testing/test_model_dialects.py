"""A script's calls in the words that the request asks for."""

from __future__ import annotations

import json

import pytest
from pydantic import JsonValue

from hubbub.testing.model_dialects import asked_dialect, in_words
from hubbub.testing.model_request import ChatRequest, parse_request
from hubbub.testing.model_script import Answer, Call

TOOL: JsonValue = {"type": "function", "function": {"name": "add"}}
RESULTS = (
    '<tool_results step="1">\n<tool_result tool_name="add" id="c">3</tool_result>\n</tool_results>'
)


def request(system: str = "", *more: tuple[str, str], tools: JsonValue = None) -> ChatRequest:
    chat = [("system", system), ("user", "hi"), *more]
    messages: JsonValue = [{"role": role, "content": text} for role, text in chat]
    body: dict[str, JsonValue] = {"model": "m", "messages": messages}
    return parse_request(body if tools is None else {**body, "tools": tools}, {}, 0.0)


LINES, OBJECT = request("Write TOOL_CALL lines."), request("Write <final_output></final_output>.")


def calls(*made: Call, **more: object) -> Answer:
    return Answer.model_validate({"calls": list(made), **more})


ADD = Call(tool="add", arguments={"a": 1})


@pytest.mark.parametrize(
    ("asked", "dialect"),
    [
        (request("plain"), "native"),
        (request("TOOL_CALL", tools=[TOOL]), "native"),
        (LINES, "tool_call"),
        (OBJECT, "final_output"),
    ],
)
def test_the_request_says_how_calls_are_written(asked: ChatRequest, dialect: str) -> None:
    assert asked_dialect(asked) == dialect


def test_an_answer_may_name_its_dialect() -> None:
    assert (in_words(calls(ADD, dialect="tool_call"), request()).text or "").startswith("TOOL_CALL")
    assert in_words(calls(ADD, dialect="native"), LINES).calls == [ADD]


def test_calls_become_lines_behind_the_text() -> None:
    answer = in_words(calls(ADD, Call(tool="look"), text="Well."), LINES)
    assert answer.calls == []
    assert answer.text == (
        'Well.\n\nTOOL_CALL {"tool_name": "add", "parameters": {"a": 1}}\n'
        'TOOL_CALL {"tool_name": "look", "parameters": {}}'
    )


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([ADD], {"action": "CallTool", "selected_tool": "add", "parameters": {"a": 1}}),
        (
            [Call(tool="add", arguments="{oops")],
            {"action": "CallTool", "selected_tool": "add", "parameters": "{oops"},
        ),
        (
            [Call(tool="finish", arguments={"reason": "r"})],
            {"action": "Finish", "message_to_user": "r"},
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
    text = in_words(calls(*made, wait="any"), OBJECT).text or ""
    inside = text.removeprefix("<final_output>").removesuffix("</final_output>")
    assert json.loads(inside) == expected


def test_mere_text_stays_as_it_is() -> None:
    assert in_words(Answer(text="{"), OBJECT) == Answer(text="{")


def test_results_in_words_are_no_new_prompt() -> None:
    answered = request("TOOL_CALL", ("assistant", "TOOL_CALL {}"), ("user", RESULTS))
    assert (answered.prompt, answered.step, answered.tool_result) == ("hi", 2, "3")
    corrected = request("TOOL_CALL", ("assistant", "x"), ("user", "Nobody has read that."))
    assert (corrected.step, corrected.tool_result) == (1, None)


def test_tools_that_are_described_in_words_are_offered() -> None:
    described = '{"name": "add", "description": "Add.", "parameters": {}}'
    assert request(f"TOOL_CALL\n{described}\n{described}").tools == ["add", "add"]
