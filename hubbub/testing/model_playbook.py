"""Chooses the script's answer to each request, and counts the uses of its rules.

A script names the calls of a model. The prompt of a request without native tools requires a text
format for them: TOOL_CALL lines or a `<final_output>` object. This module writes calls from the
description of the format and not with the code that reads it, so that each tests the other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_script import (
    Breakdown,
    Refusal,
    Script,
    ScriptDialect,
    ScriptedAnswer,
    ScriptedCall,
    ScriptMistake,
    ScriptRule,
    fill,
)

__all__ = ["Choice", "Playbook", "in_dialect"]


def requested_dialect(request: ChatRequest) -> ScriptDialect:
    """The dialect that the request requires for calls."""
    if request.body.tools:
        return "native"
    if "</final_output>" in request.system:
        return "final_output"
    return "tool_call" if "TOOL_CALL" in request.system else "native"


def in_dialect(answer: ScriptedAnswer, request: ChatRequest) -> ScriptedAnswer:
    """The answer with its calls written in its own dialect, or in that of the request."""
    if request.form is not None and [call.tool for call in answer.calls] == ["finish"]:
        arguments = answer.calls[0].arguments
        is_text = isinstance(arguments, str)
        text = arguments if is_text else json.dumps(arguments, ensure_ascii=False)
        return answer.model_copy(update={"text": text, "calls": []})
    dialect = answer.dialect or requested_dialect(request)
    if dialect == "native" or not answer.calls:
        return answer
    written = _lines(answer.calls) if dialect == "tool_call" else _object(answer)
    text = "\n\n".join(filter(None, (answer.text, written)))
    return answer.model_copy(update={"text": text, "calls": [], "ignore_tool_choice": True})


def _lines(calls: list[ScriptedCall]) -> str:
    lines = ({"tool_name": c.tool, "parameters": _parameters(c)} for c in calls)
    return "\n".join(f"TOOL_CALL {json.dumps(line, ensure_ascii=False)}" for line in lines)


def _object(answer: ScriptedAnswer) -> str:
    output = json.dumps(_output(answer), ensure_ascii=False)
    return f"<final_output>\n{output}\n</final_output>"


def _output(answer: ScriptedAnswer) -> dict[str, JsonValue]:
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
    parameters = _parameters(call)
    if call.tool == "finish" and isinstance(parameters, dict):
        rest = {name: value for name, value in parameters.items() if name != "message"}
        message = {"message_to_user": parameters["message"]} if "message" in parameters else {}
        return {"action": "Finish", **message, "parameters": rest}
    action, argument = _ACTIONS.get(call.tool, ("", ""))
    if not action or not isinstance(parameters, dict):
        return {"action": "CallTool", "selected_tool": call.tool, "parameters": parameters}
    if not argument:
        return {"action": action, "parameters": parameters}
    options = {"options": parameters["options"]} if "options" in parameters else {}
    return {"action": action, "message_to_user": parameters.get(argument), **options}


_ACTIONS = {
    "ask_human": ("AskUser", "question"),
    "show_plan": ("Plan", "plan"),
    "fork": ("ForkAutoAgent", ""),
}
"""By tool: its action, and the argument that becomes `message_to_user`."""


def _id(call: ScriptedCall) -> Mapping[str, JsonValue]:
    return {} if call.id is None else {"tool_id": call.id}


def _parameters(call: ScriptedCall) -> JsonValue:
    """The arguments; text is parsed if it is a JSON object, and otherwise stays text."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        parsed: JsonValue = json.loads(call.arguments)
    except ValueError:
        return call.arguments
    return parsed if isinstance(parsed, dict) else call.arguments


@dataclass(frozen=True)
class Choice:
    """An answer with its placeholders filled; `rule` is the name of its rule, or `answers[n]`."""

    answer: ScriptedAnswer | Refusal | Breakdown
    rule: str


class Playbook:
    """The state of a script that is being played."""

    def __init__(self, script: Script):
        self._script = script
        self._matched = [0] * len(script.rules)
        self._used = [0] * len(script.rules)
        self._next = 0

    def choose(self, request: ChatRequest) -> Choice:
        """The answer to `request`. Raises ScriptMistake if there is none, or if it is illegal."""
        choice = self._from_rules(request) or self._from_answers(request)
        if choice is None:
            raise ScriptMistake(
                f"no rule matches step {request.step} of {request.incoming[:200]!r} "
                f"for {request.model}, and no answers are left"
            )
        if isinstance(choice.answer, ScriptedAnswer):
            choice = Choice(in_dialect(choice.answer, request), choice.rule)
        if request.tool_required and _lacks_call(choice.answer):
            raise ScriptMistake(
                f"{choice.rule} answers with text where a tool call is required; "
                "set ignore_tool_choice if that is intended"
            )
        return choice

    def _from_rules(self, request: ChatRequest) -> Choice | None:
        matches = [_match(rule, request) for rule in self._script.rules]
        for position, values in enumerate(matches):
            self._matched[position] += values is not None
        for position, values in enumerate(matches):
            if values is not None and self._can_answer(position):
                rule, use = self._script.rules[position], self._used[position]
                self._used[position] += 1
                answer = _filled(rule.answer_at(use), values)
                return Choice(answer, rule.name or f"rules[{position}]")
        return None

    def _can_answer(self, position: int) -> bool:
        """Whether a matching rule is not used up and its `nth` holds."""
        rule = self._script.rules[position]
        used_up = rule.limit is not None and self._used[position] >= rule.limit
        return not used_up and rule.when.nth in (None, self._matched[position])

    def _from_answers(self, request: ChatRequest) -> Choice | None:
        if self._next >= len(self._script.answers):
            return None
        position, self._next = self._next, self._next + 1
        answer = _filled(self._script.answers[position], request.placeholders())
        return Choice(answer, f"answers[{position}]")


def _lacks_call(answer: ScriptedAnswer | Refusal | Breakdown) -> bool:
    return isinstance(answer, ScriptedAnswer) and not answer.calls and not answer.ignore_tool_choice


def _match(rule: ScriptRule, request: ChatRequest) -> dict[str, str] | None:
    """The request's placeholders and the patterns' groups; None if a condition does not hold."""
    when, values = rule.when, request.placeholders()
    if not set(when.tools) <= set(request.tools) or when.step not in (None, request.step):
        return None
    if when.tool_result is not None and request.tool_result is None:
        return None
    searched: list[tuple[re.Pattern[str] | None, str]] = [
        (when.model, request.model),
        (when.system, request.system),
        (when.prompt, request.prompt),
        (when.incoming, values["incoming"]),
        (when.sender, values["sender"]),
        (when.thread, values["thread"]),
        (when.tool_result, values["tool_result"]),
    ]
    groups: dict[str, str] = {}
    for pattern, text in searched:
        if pattern is None:
            continue
        match = pattern.search(text)
        if match is None:
            return None
        groups |= match.groupdict(default="")
    return values | groups


def _filled(
    answer: ScriptedAnswer | Refusal | Breakdown, values: dict[str, str]
) -> ScriptedAnswer | Refusal | Breakdown:
    if not isinstance(answer, ScriptedAnswer):
        return answer
    text = None if answer.text is None else str(fill(answer.text, values))
    calls = [
        ScriptedCall(tool=call.tool, arguments=_arguments(call, values), id=call.id)
        for call in answer.calls
    ]
    return answer.model_copy(update={"text": text, "calls": calls})


def _arguments(call: ScriptedCall, values: dict[str, str]) -> str:
    filled = fill(call.arguments, values)
    return filled if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)
