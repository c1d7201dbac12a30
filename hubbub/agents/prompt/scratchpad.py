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

from hubbub.agents.models.base import Answer, CallRequest, Delta, Model, OnDelta, Question
from hubbub.strict_json import unique

__all__ = ["ThinkingModel", "without_thoughts"]

_TAG = re.compile(
    r"(?:<|&lt;|&#0{0,8}60;|&#x0{0,8}3c;)\s{0,9}(?P<end>/?)\s{0,9}scratchpad\b[^<>&]{0,200}?"
    r"(?P<empty>/?)\s{0,9}(?:>|&gt;|&#0{0,8}62;|&#x0{0,8}3e;)",
    re.IGNORECASE,
)


_PASSES = 8
"""Nesting of tags; anything nested deeper counts as a thought as a whole."""


class _Reader:
    """Separates thoughts from the rest, over one text or several in a row."""

    def __init__(self) -> None:
        self.thoughts: list[str] = []
        self.depth = 0

    def read(self, text: str) -> str:
        """The part of `text` that is no thought; unchanged if it has none."""
        if not self.depth and _TAG.search(text) is None:
            return text
        said = self._once(text)
        for _ in range(_PASSES):
            if _TAG.search(said) is None:
                return said
            before, self.depth = self.depth, 0  # another tag, joined by a removal
            said = self._once(said)
            self.depth += before
        self._think(said)
        return ""

    def _once(self, text: str) -> str:
        said: list[str] = []
        at = 0
        for tag in _TAG.finditer(text):
            piece = text[at : tag.start()]
            at = tag.end()
            if tag["end"] and not self.depth:
                self._think("".join(said) + piece)  # its opening tag was left out
                said.clear()
            else:
                (self._think if self.depth else said.append)(piece)
                self._step(tag)
        rest = text[at:]
        (self._think if self.depth else said.append)(rest)
        return "".join(said).strip()

    def _step(self, tag: re.Match[str]) -> None:
        if tag["end"]:
            self.depth -= 1
        elif not tag["empty"]:
            self.depth += 1

    def _think(self, piece: str) -> None:
        if piece.strip():
            self.thoughts.append(piece.strip())


def without_thoughts(answer: Answer) -> Answer:
    """The answer with thoughts in its text and arguments moved to `reasoning`."""
    reader = _Reader()
    text = reader.read(answer.text) if answer.text else answer.text
    calls = tuple(_quiet_call(call, reader.thoughts) for call in answer.calls)
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


def _quiet_call(call: CallRequest, thoughts: list[str]) -> CallRequest:
    """The call without thoughts in its arguments, however they are written in JSON."""
    reader = _Reader()
    try:
        # Duplicate keys, also as a result of removing thoughts, are an error here.
        arguments: JsonValue = json.loads(call.arguments or "{}", object_pairs_hook=unique)
        quiet = _quiet(arguments, reader.read)
    except (ValueError, RecursionError):
        # Not JSON: the call will be refused, but its record is cleaned all the same.
        reader = _Reader()
        text = reader.read(call.arguments)
    else:
        if quiet == arguments:
            return call
        text = json.dumps(quiet, ensure_ascii=False)
    thoughts += reader.thoughts
    return replace(call, arguments=text)


def _quiet(value: JsonValue, read: Callable[[str], str]) -> JsonValue:
    """The value with `read` applied to its strings in order, including names of fields."""
    if isinstance(value, str):
        return read(value)
    if isinstance(value, list):
        return [_quiet(item, read) for item in value]
    if isinstance(value, dict):
        return unique([(read(key), _quiet(item, read)) for key, item in value.items()])
    return value


class ThinkingModel:
    """A model with a scratchpad: thoughts are removed before anything parses its answers for calls,
    so a call that was only thought of is not made.

    Deltas name the tools that it calls, but have no text: what is a thought is known only at the
    end.
    """

    def __init__(self, model: Model):
        self._model = model

    @property
    def name(self) -> str:
        return self._model.name

    async def answer(self, question: Question, on_delta: OnDelta | None = None) -> Answer:
        def hear(delta: Delta) -> None:
            if on_delta is not None:
                on_delta(replace(delta, text=""))

        heard = None if on_delta is None else hear
        return without_thoughts(await self._model.answer(question, heard))

    async def close(self) -> None:
        await self._model.close()
