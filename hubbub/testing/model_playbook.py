"""Chooses the script's answer to each request, and remembers what has been used.

A script says what a model calls. A request without tools of the endpoint's own says how calls are
to be written: as lines of TOOL_CALL, or as a `<final_output>` object. They are written here by the
format's description, not by the code that reads it: each holds the other to it.
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

__all__ = ["Choice", "Playbook", "in_words"]


def asked_dialect(request: ChatRequest) -> ScriptDialect:
    """How the request wants calls to be written."""
    if request.body.tools:
        return "native"
    if "</final_output>" in request.system:
        return "final_output"
    return "tool_call" if "TOOL_CALL" in request.system else "native"


def in_words(answer: ScriptedAnswer, request: ChatRequest) -> ScriptedAnswer:
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


def _id(call: ScriptedCall) -> Mapping[str, JsonValue]:
    return {} if call.id is None else {"tool_id": call.id}


def _parameters(call: ScriptedCall) -> JsonValue:
    """The arguments; those that the script gives as a text stay a text, unless it is an object."""
    if not isinstance(call.arguments, str):
        return call.arguments
    try:
        read: JsonValue = json.loads(call.arguments)
    except ValueError:
        return call.arguments
    return read if isinstance(read, dict) else call.arguments


@dataclass(frozen=True)
class Choice:
    """An answer with its places filled. `rule` names the rule (or `answers[n]`) it came from."""

    answer: ScriptedAnswer | Refusal | Breakdown
    rule: str


class Playbook:
    """A script being played."""

    def __init__(self, script: Script):
        self._script = script
        self._matched = [0] * len(script.rules)
        self._used = [0] * len(script.rules)
        self._next = 0

    def choose(self, request: ChatRequest) -> Choice:
        """The answer to `request`. Raises ScriptMistake if there is none, or an illegal one."""
        choice = self._from_rules(request) or self._from_answers(request)
        if choice is None:
            raise ScriptMistake(
                f"no rule matches step {request.step} of {request.incoming[:200]!r} "
                f"for {request.model}, and no answers are left"
            )
        if isinstance(choice.answer, ScriptedAnswer):
            choice = Choice(in_words(choice.answer, request), choice.rule)
        if request.tool_required and _is_mere_text(choice.answer):
            raise ScriptMistake(
                f"{choice.rule} answers with text where a tool call is required; "
                "say ignore_tool_choice if that is meant"
            )
        return choice

    def _from_rules(self, request: ChatRequest) -> Choice | None:
        matches = [_match(rule, request) for rule in self._script.rules]
        for position, words in enumerate(matches):
            self._matched[position] += words is not None
        for position, words in enumerate(matches):
            if words is not None and self._may_answer(position):
                rule, use = self._script.rules[position], self._used[position]
                self._used[position] += 1
                return Choice(
                    _filled(rule.answer_at(use), words), rule.name or f"rules[{position}]"
                )
        return None

    def _may_answer(self, position: int) -> bool:
        """Whether the rule, whose other conditions hold, has its turn and is not spent."""
        rule = self._script.rules[position]
        spent = rule.limit is not None and self._used[position] >= rule.limit
        return not spent and rule.when.nth in (None, self._matched[position])

    def _from_answers(self, request: ChatRequest) -> Choice | None:
        if self._next >= len(self._script.answers):
            return None
        position, self._next = self._next, self._next + 1
        answer = _filled(self._script.answers[position], request.words())
        return Choice(answer, f"answers[{position}]")


def _is_mere_text(answer: ScriptedAnswer | Refusal | Breakdown) -> bool:
    return isinstance(answer, ScriptedAnswer) and not answer.calls and not answer.ignore_tool_choice


def _match(rule: ScriptRule, request: ChatRequest) -> dict[str, str] | None:
    """The words of the request and the patterns' groups; None if a condition does not hold."""
    when, words = rule.when, request.words()
    if not set(when.tools) <= set(request.tools) or when.step not in (None, request.step):
        return None
    if when.tool_result is not None and request.tool_result is None:
        return None
    searched: list[tuple[re.Pattern[str] | None, str]] = [
        (when.model, request.model),
        (when.system, request.system),
        (when.prompt, request.prompt),
        (when.incoming, words["incoming"]),
        (when.sender, words["sender"]),
        (when.thread, words["thread"]),
        (when.tool_result, words["tool_result"]),
    ]
    groups: dict[str, str] = {}
    for pattern, text in searched:
        found = pattern.search(text) if pattern is not None else None
        if pattern is not None and found is None:
            return None
        groups |= found.groupdict(default="") if found else {}
    return words | groups


def _filled(
    answer: ScriptedAnswer | Refusal | Breakdown, words: dict[str, str]
) -> ScriptedAnswer | Refusal | Breakdown:
    if not isinstance(answer, ScriptedAnswer):
        return answer
    text = None if answer.text is None else str(fill(answer.text, words))
    calls = [
        ScriptedCall(tool=call.tool, arguments=_arguments(call, words), id=call.id)
        for call in answer.calls
    ]
    return answer.model_copy(update={"text": text, "calls": calls})


def _arguments(call: ScriptedCall, words: dict[str, str]) -> str:
    filled = fill(call.arguments, words)
    return filled if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)
