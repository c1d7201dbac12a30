"""Chooses the script's answer to each request, and remembers what has been used."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from hubbub.testing.model_dialects import in_words
from hubbub.testing.model_request import ChatRequest
from hubbub.testing.model_script import (
    Answer,
    Breakdown,
    Call,
    Refusal,
    Rule,
    Script,
    ScriptMistake,
    fill,
)

__all__ = ["Choice", "Playbook"]


@dataclass(frozen=True)
class Choice:
    """An answer with its places filled. `rule` names the rule (or `answers[n]`) it came from."""

    answer: Answer | Refusal | Breakdown
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
        if isinstance(choice.answer, Answer):
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


def _is_mere_text(answer: Answer | Refusal | Breakdown) -> bool:
    return isinstance(answer, Answer) and not answer.calls and not answer.ignore_tool_choice


def _match(rule: Rule, request: ChatRequest) -> dict[str, str] | None:
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
    answer: Answer | Refusal | Breakdown, words: dict[str, str]
) -> Answer | Refusal | Breakdown:
    if not isinstance(answer, Answer):
        return answer
    text = None if answer.text is None else str(fill(answer.text, words))
    calls = [
        Call(tool=call.tool, arguments=_arguments(call, words), id=call.id) for call in answer.calls
    ]
    return answer.model_copy(update={"text": text, "calls": calls})


def _arguments(call: Call, words: dict[str, str]) -> str:
    filled = fill(call.arguments, words)
    return filled if isinstance(filled, str) else json.dumps(filled, ensure_ascii=False)
