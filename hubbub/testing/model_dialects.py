"""Scripted calls in the words of a dialect, for requests that offer no tools of the endpoint's own.

A script says what a model calls; whether that goes out as `tool_calls`, as lines of TOOL_CALL or as
a `<final_output>` object depends on what the request tells the model to do. Written by the format's
description, not by the code that reads it: each holds the other to it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_script import Answer, Call, ScriptDialect

__all__ = ["asked_dialect", "in_words"]


def asked_dialect(request: ChatRequest) -> ScriptDialect:
    """How the request wants calls to be written."""
    if request.body.tools:
        return "native"
    if "</final_output>" in request.system:
        return "final_output"
    return "tool_call" if "TOOL_CALL" in request.system else "native"


def in_words(answer: Answer, request: ChatRequest) -> Answer:
    """The answer with its calls written in the dialect that it names, or the request asks for."""
    if request.form is not None and [call.tool for call in answer.calls] == ["finish"]:
        given = answer.calls[0].arguments
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return answer.model_copy(update={"text": text, "calls": []})
    dialect = answer.dialect or asked_dialect(request)
    if dialect == "native" or not answer.calls:
        return answer
    written = _lines(answer.calls) if dialect == "tool_call" else _object(answer)
    text = "\n\n".join(filter(None, (answer.text, written)))
    return answer.model_copy(update={"text": text, "calls": [], "ignore_tool_choice": True})


def _lines(calls: list[Call]) -> str:
    lines = ({"tool_name": c.tool, "parameters": _parameters(c)} for c in calls)
    return "\n".join(f"TOOL_CALL {json.dumps(line, ensure_ascii=False)}" for line in lines)


def _object(answer: Answer) -> str:
    output = json.dumps(_output(answer), ensure_ascii=False)
    return f"<final_output>\n{output}\n</final_output>"


def _output(answer: Answer) -> dict[str, JsonValue]:
    if len(answer.calls) > 1:
        parallel: list[JsonValue] = [
            {"tool_name": c.tool, "parameters": _parameters(c), **_id(c)} for c in answer.calls
        ]
        return {
            "action": "CallToolsParallel",
            "parallel_tools": parallel,
            "wait_strategy": answer.wait,
        }
    (call,) = answer.calls
    given = _parameters(call)
    if call.tool == "finish" and isinstance(given, dict):
        rest = {name: value for name, value in given.items() if name != "message"}
        said = {"message_to_user": given["message"]} if "message" in given else {}
        return {"action": "Finish", **said, "parameters": rest}
    action, words = _ACTIONS.get(call.tool, ("", ""))
    if not action or not isinstance(given, dict):
        return {"action": "CallTool", "selected_tool": call.tool, "parameters": given}
    if not words:
        return {"action": action, "parameters": given}
    options: dict[str, JsonValue] = {"options": given["options"]} if "options" in given else {}
    return {"action": action, "message_to_user": given.get(words), **options}


_ACTIONS = {
    "ask_human": ("AskUser", "question"),
    "show_plan": ("Plan", "plan"),
    "fork": ("ForkAutoAgent", ""),
}
"""The actions that stand for tools, and which argument is their `message_to_user`."""


def _id(call: Call) -> Mapping[str, JsonValue]:
    return {} if call.id is None else {"tool_id": call.id}


def _parameters(call: Call) -> JsonValue:
    """The arguments; those that the script gives as a text stay a text, unless it is an object."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        read: JsonValue = json.loads(call.arguments)
    except ValueError:
        return call.arguments
    return read if isinstance(read, dict) else call.arguments
