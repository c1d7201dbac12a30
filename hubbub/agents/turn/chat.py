"""A turn's steps as an OpenAI chat: messages are a projection of the steps, never kept. Pure.

    steps -> `project`: what the model marked is left out or in fewer words -> `chat_messages`

A step is one answer with all its results, so that what is left out is never half of a pair.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict, get_args

from pydantic import JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.config.agents import ProtectedName
from hubbub.protocol.turns import ChangedCall, Compressed, Steering, Step, ToolCallRecord
from hubbub.wording import shortened

__all__ = [
    "ALWAYS_SHOWN",
    "CORRECTION",
    "PROTECTED",
    "ChatMessage",
    "Kept",
    "changed_call",
    "chat_messages",
    "cut_words",
    "in_a_line",
    "in_fewer_words",
    "project",
    "told_changes",
    "told_result",
]

# What people have changed of calls that they approved, in words for models and people. Pure.


_MOST = 1000
"""Characters of a value that are told."""
_MOST_NAMES = 20
_NOT_GIVEN, _LEFT_OUT = "(not given)", "(left out)"


def changed_call(
    asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue], by: str
) -> ChangedCall | None:
    """What the person made of the arguments that were asked for; None: nothing else."""
    names = tuple(n for n in {**asked, **final} if not _same(n, asked, final))
    return ChangedCall(by=by, arguments=dict(final), names=names) if names else None


def _same(name: str, asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue]) -> bool:
    # In Python 1, 1.0 and True are equal; as arguments they are not.
    return (name in asked) == (name in final) and _json(asked.get(name)) == _json(final.get(name))


def told_changes(call: ToolCallRecord) -> str:
    """Who changed what of the call before it ran; empty if it ran as the model gave it."""
    changed = call.changed
    if changed is None:
        return ""
    asked = call.arguments if isinstance(call.arguments, dict) else {}
    told = [
        f"{name}: {_shown(name, asked, _NOT_GIVEN)} -> {_shown(name, changed.arguments, _LEFT_OUT)}"
        for name in changed.names[:_MOST_NAMES]
    ]
    more = len(changed.names) - len(told)
    told += [f"{more} more"] if more else []
    return reveal(f"approved by {changed.by} with changes: {', '.join(told)}")


def told_result(call: ToolCallRecord) -> str:
    """What a model is told of a call that has run: its result, and before that what a person has
    changed.
    """
    return "\n".join(filter(None, (told_changes(call), call.result)))


def _shown(name: str, arguments: Mapping[str, JsonValue], absent: str) -> str:
    if name not in arguments:
        return absent
    text = _json(arguments[name])
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text)} characters)"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
ALWAYS_SHOWN = 5
"""The last steps, which marks of the model do not touch where they are protected."""
PROTECTED: frozenset[ProtectedName] = frozenset(get_args(ProtectedName))
"""What stays of steps that a model discards, where the config says nothing else."""
_MOST_ARGUMENTS, _MOST_LINE = 160, 480
"""Characters of a call's arguments, and of all of a step, in a line."""
_MOST_WORDS = 8000
"""Characters of an answer without calls that the model is shown again."""

Kept: TypeAlias = Step | Compressed | Steering
"""A step as the model is shown it: whole, or in its own fewer words; what people said in between
stands by itself, because it is never left out."""

CORRECTION = (
    "Nobody has read that: text outside a tool call reaches no one. Call a tool to say or do "
    "something, or call `finish` if you are done."
)
"""What a model is told that answered without a tool call."""


class ChatFunction(TypedDict):
    name: str
    arguments: str


class ChatToolCall(TypedDict):
    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatMessage(TypedDict):
    """A message of the chat completions format."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str | None
    tool_calls: NotRequired[list[ChatToolCall]]
    tool_call_id: NotRequired[str]


def project(
    steps: Sequence[Step],
    steering: Sequence[Steering] = (),
    protect: Collection[ProtectedName] = PROTECTED,
    writes: Collection[str] = (),
) -> list[Kept]:
    """The steps as their own marks leave them: without those that were discarded, in fewer words
    those that were compressed. The last mark of a step holds, also one that a later turn of the
    same work has made; one of a later step or of none is without effect, and so is what `protect`
    does not let go, where `writes` are the tools that change something: something of such a step
    stays unless the words of a later one, marked with it, stand for both. Messages by which people
    steered the turn stand before the answer that took them in; those of `steering` come last, the
    next answer will.
    """
    marks: dict[int, Compressed | None] = {}
    in_words: set[int] = set()
    for step in steps:
        earlier: dict[int, Compressed | None] = dict.fromkeys(step.discards)
        earlier |= {mark.n: mark for mark in step.compresses}  # who says both wants the words
        marks |= {n: mark for n, mark in earlier.items() if n < step.n}
        until = max((mark.n for mark in step.compresses), default=0)
        in_words |= {n for n in step.discards if n < until}  # a summary of all of them
    if "last_steps" in protect:
        for step in steps[-ALWAYS_SHOWN:]:
            marks.pop(step.n, None)
    kept: list[Kept] = []
    for step in steps:
        shown = marks.get(step.n, step)
        if shown is not None or "requirements" in protect:
            kept += step.steered
        if shown is None and step.n not in in_words and _leaves_a_line(step, protect, writes):
            shown = in_a_line(step)
        if shown is not None:
            kept.append(shown)
    return [*kept, *steering]


def _leaves_a_line(step: Step, protect: Collection[ProtectedName], writes: Collection[str]) -> bool:
    """Whether something of a discarded step must stay."""
    failed = any(call.error for call in step.calls)
    wrote = any(call.name in writes and not call.error for call in step.calls)
    return ("errors" in protect and failed) or ("results" in protect and wrote)


def in_a_line(step: Step) -> Compressed:
    """A step in the model's own words: what it called, and whether that went well.

    Nothing of what others wrote: as words of the model it would count for more than it is.
    """
    calls = "; ".join(map(_call, step.calls))
    return Compressed(n=step.n, text=shortened(calls or "I called no tool.", _MOST_LINE))


def _call(call: ToolCallRecord) -> str:
    given = call.ran_with
    told = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    done = "done" if call.error is None else f"failed ({call.error})"
    changed = f", as changed by {call.changed.by}" if call.changed else ""
    return f"{call.name}({shortened(told, _MOST_ARGUMENTS)}): {done}{changed}"


def in_fewer_words(compressed: Compressed) -> str:
    """How a model is reminded of a step that it has compressed."""
    return f"[my step {compressed.n}, in fewer words] {compressed.text}"


def cut_words(text: str) -> str:
    """An answer that led to nothing, as it is shown again: cut in the middle if it is very long."""
    if len(text) <= _MOST_WORDS:
        return text
    half = _MOST_WORDS // 2
    return f"{text[:half]}… ({len(text)} characters) …{text[-half:]}"


def chat_messages(system: str, prompt: str, steps: Sequence[Kept]) -> list[ChatMessage]:
    """The chat before the next answer: every call is followed by its result, in order."""
    chat: list[ChatMessage] = [
        {"role": "system", "content": system},
        {"role": "user", "content": prompt},
    ]
    for step in steps:
        chat.extend(_step_messages(step))
    return chat


def _step_messages(step: Kept) -> Iterator[ChatMessage]:
    if isinstance(step, Steering):
        yield {"role": "user", "content": step.text}
        return
    if isinstance(step, Compressed):
        yield {"role": "assistant", "content": in_fewer_words(step)}
        return
    if not step.calls:
        if step.text:  # endpoints refuse an assistant message that says nothing
            yield {"role": "assistant", "content": cut_words(step.text)}
        yield {"role": "user", "content": CORRECTION}
        return
    yield {
        "role": "assistant",
        "content": step.text,
        "tool_calls": [_tool_call(call) for call in step.calls],
    }
    for call in step.calls:
        yield {"role": "tool", "content": told_result(call), "tool_call_id": call.id}


def _tool_call(call: ToolCallRecord) -> ChatToolCall:
    given = call.arguments
    if isinstance(given, str):
        given = {"not_json": given}  # endpoints read the history too, and some insist on JSON
    arguments = json.dumps(given, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        # A model may have called a tool by a name that the endpoint does not take back.
        "function": {"name": _ILLEGAL.sub("_", call.name)[:64] or "_", "arguments": arguments},
    }
