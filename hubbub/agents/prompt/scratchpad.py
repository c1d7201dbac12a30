"""A model's thoughts in `<scratchpad>…</scratchpad>`: recorded for the operator, never sent. Pure.

In case of doubt, text counts as a thought:

    * everything from an opening tag to its closing one, whatever is in between;
    * without a closing tag, everything up to the end, including later arguments of the same call;
    * without an opening tag, everything up to the closing one.

Tags may be in capitals, with spaces or attributes, and with `&lt;` for `<`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace

from pydantic import JsonValue

from hubbub.agents.models.base import (
    CallRequest,
    ChatModel,
    Completion,
    CompletionRequest,
    Delta,
    OnDelta,
)
from hubbub.strict_json import unique

__all__ = ["ThinkingModel", "without_thoughts"]

_TAG = re.compile(
    r"(?:<|&lt;|&#0{0,8}60;|&#x0{0,8}3c;)\s{0,9}(?P<end>/?)\s{0,9}scratchpad\b[^<>&]{0,200}?"
    r"(?P<empty>/?)\s{0,9}(?:>|&gt;|&#0{0,8}62;|&#x0{0,8}3e;)",
    re.IGNORECASE,
)


_PASSES = 8
"""Nesting of tags; anything nested deeper counts as a thought as a whole."""


class _ThoughtFilter:
    """Separates thoughts from the rest, over one text or several in a row."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.depth = 0

    def read(self, text: str) -> str:
        """The part of `text` that is no thought; unchanged if it has none."""
        if not self.depth and _TAG.search(text) is None:
            return text
        rest = self._once(text)
        for _ in range(_PASSES):
            if _TAG.search(rest) is None:
                return rest
            before, self.depth = self.depth, 0  # another tag, joined by a removal
            rest = self._once(rest)
            self.depth += before
        self._add_thought(rest)
        return ""

    def _once(self, text: str) -> str:
        visible: list[str] = []
        at = 0
        for tag in _TAG.finditer(text):
            piece = text[at : tag.start()]
            at = tag.end()
            if tag["end"] and not self.depth:
                self._add_thought("".join(visible) + piece)  # its opening tag was left out
                visible.clear()
            else:
                (self._add_thought if self.depth else visible.append)(piece)
                self._step(tag)
        rest = text[at:]
        (self._add_thought if self.depth else visible.append)(rest)
        return "".join(visible).strip()

    def _step(self, tag: re.Match[str]) -> None:
        if tag["end"]:
            self.depth -= 1
        elif not tag["empty"]:
            self.depth += 1

    def _add_thought(self, piece: str) -> None:
        if piece.strip():
            self.thoughts.append(piece.strip())


def without_thoughts(answer: Completion) -> Completion:
    """The answer with thoughts in its text and arguments moved to `reasoning`."""
    reader = _ThoughtFilter()
    text = reader.read(answer.text) if answer.text else answer.text
    calls = tuple(_call_without_thoughts(call, reader.thoughts) for call in answer.calls)
    if calls == answer.calls and text == answer.text:
        return answer
    changed = [new for new, old in zip(calls, answer.calls, strict=True) if new != old]
    notes = tuple(f"thoughts were taken out of the arguments of {call.name}" for call in changed)
    thoughts = [answer.reasoning] if answer.reasoning else []
    reasoning = "\n".join([*thoughts, *reader.thoughts]) or None
    return replace(
        answer,
        text=text or None,
        calls=calls,
        reasoning=reasoning,
        notes=(*answer.notes, *notes),
    )


def _call_without_thoughts(call: CallRequest, thoughts: list[str]) -> CallRequest:
    """The call without thoughts in its arguments, however they are written in JSON."""
    reader = _ThoughtFilter()
    try:
        # Duplicate keys, also as a result of removing thoughts, are an error here.
        arguments: JsonValue = json.loads(call.arguments or "{}", object_pairs_hook=unique)
        quiet = _filtered(arguments, reader.read)
    except (ValueError, RecursionError):
        # Not JSON: the call will be refused, but its record is cleaned all the same.
        reader = _ThoughtFilter()
        text = reader.read(call.arguments)
    else:
        if quiet == arguments:
            return call
        text = json.dumps(quiet, ensure_ascii=False)
    thoughts += reader.thoughts
    return replace(call, arguments=text)


def _filtered(value: JsonValue, read: Callable[[str], str]) -> JsonValue:
    """The value with `read` applied to its strings in order, including names of fields."""
    if isinstance(value, str):
        return read(value)
    if isinstance(value, list):
        return [_filtered(item, read) for item in value]
    if isinstance(value, dict):
        return unique([(read(key), _filtered(item, read)) for key, item in value.items()])
    return value


class ThinkingModel:
    """A model with a scratchpad: thoughts are removed before anything parses its answers for calls,
    so a call that was only thought of is not made.

    Deltas name the tools that it calls, but have no text: what is a thought is known only at the
    end.
    """

    def __init__(self, model: ChatModel):
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        def hear(delta: Delta) -> None:
            if on_delta is not None:
                on_delta(replace(delta, text=""))

        on_silent = None if on_delta is None else hear
        return without_thoughts(await self._model.answer(question, on_silent))

    async def close(self) -> None:
        await self._model.close()
