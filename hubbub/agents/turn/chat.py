"""A turn's steps as messages of an OpenAI chat. Messages are computed from the steps, never stored.
Pure.

    steps -> `project`: applies the model's discards and compressions -> `chat_messages`

A step is one answer with all its results, so leaving out steps never separates a call from its
result.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Literal, NotRequired, Protocol, TypeAlias, TypedDict, get_args

from pydantic import JsonValue

from hubbub.agents.prompt.escape import reveal
from hubbub.config.agents import ProtectedName
from hubbub.protocol.turns import ChangedCall, Compressed, Steering, Step, ToolCallRecord
from hubbub.wording import cut_in_the_middle, shortened

__all__ = [
    "CORRECTION",
    "NOT_UNDERSTOOD",
    "PROTECTED",
    "PROTECTED_STEPS",
    "ChatMessage",
    "ShownStep",
    "changed_call",
    "chat_messages",
    "compressed_text",
    "cut_answer",
    "describe_changes",
    "lost_calls",
    "no_action_reason",
    "one_line",
    "project",
    "result_text",
]

# Changes that people made to calls when approving them, described for models and people. Pure.


_MOST = 1000
"""Characters of a value that are shown."""
_MOST_NAMES = 20
_NOT_GIVEN, _LEFT_OUT = "(not given)", "(left out)"


def changed_call(
    asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue], by: str
) -> ChangedCall | None:
    """The person's change of the arguments; None if there is none."""
    names = tuple(n for n in {**asked, **final} if not _same(n, asked, final))
    return ChangedCall(by=by, arguments=dict(final), names=names) if names else None


def _same(name: str, asked: Mapping[str, JsonValue], final: Mapping[str, JsonValue]) -> bool:
    # In Python 1, 1.0 and True are equal; as arguments they are not.
    return (name in asked) == (name in final) and _json(asked.get(name)) == _json(final.get(name))


def describe_changes(call: ToolCallRecord) -> str:
    """Who changed what of the call before it ran; empty if it ran as the model gave it."""
    changed = call.changed
    if changed is None:
        return ""
    asked = call.arguments if isinstance(call.arguments, dict) else {}
    changes = [
        f"{name}: {_shown(name, asked, _NOT_GIVEN)} -> {_shown(name, changed.arguments, _LEFT_OUT)}"
        for name in changed.names[:_MOST_NAMES]
    ]
    more = len(changed.names) - len(changes)
    changes += [f"{more} more"] if more else []
    return reveal(f"approved by {changed.by} with changes: {', '.join(changes)}")


def result_text(call: ToolCallRecord) -> str:
    """A call's result as a model reads it, after the changes that a person made."""
    return "\n".join(filter(None, (describe_changes(call), call.result)))


def _shown(name: str, arguments: Mapping[str, JsonValue], absent: str) -> str:
    if name not in arguments:
        return absent
    text = _json(arguments[name])
    return text if len(text) <= _MOST else f"{text[:_MOST]}… ({len(text)} characters)"


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
PROTECTED_STEPS = 5
"""The number of last steps that the model cannot discard where they are protected."""
PROTECTED: frozenset[ProtectedName] = frozenset(get_args(ProtectedName))
"""What stays of steps that a model discards, by default."""
_MOST_ARGUMENTS, _MOST_LINE = 160, 480
"""Characters of a call's arguments, and of a whole step, in a one-line summary."""
_MOST_WORDS = 8000
"""Characters of an answer without calls that are shown to the model again."""

ShownStep: TypeAlias = Step | Compressed | Steering
"""A step as the model sees it: whole, or compressed; people's messages are separate, because they
are never left out."""

_NO_EFFECT = "Your answer had no effect"
_CALL = "Call a tool to say or do something, or call `finish` if you are done."
CORRECTION = f"Nobody has read that: text outside a tool call reaches no one. {_CALL}"
"""Sent to a model that answered without a tool call."""


NOT_UNDERSTOOD = "the answer was not understood: "
"""The beginning of a note with the reason why an answer has no calls."""
_NO_CALLS = {
    "length": "it was cut off at its length limit; be shorter",
    "content_filter": "the endpoint's content filter withheld it",
}
"""Why an answer has no calls, by its finish reason."""


class ModelOutput(Protocol):
    """A model's answer or its step."""

    @property
    def calls(self) -> Sequence[object]: ...
    @property
    def finish_reason(self) -> str | None: ...
    @property
    def notes(self) -> Sequence[str]: ...


def no_action_reason(step: Step) -> str:
    """Why a turn ends after two answers without calls, of which `step` is the last."""
    if why := lost_calls(step):
        return f"the model's answer had no effect, even after a correction: {why}"
    return "the model answered without calling a tool, even after a correction"


def lost_calls(answer: ModelOutput) -> str:
    """Why an answer has no calls, if not because the model called no tool; else empty."""
    if answer.calls:
        return ""
    notes = (n.removeprefix(NOT_UNDERSTOOD) for n in answer.notes if n.startswith(NOT_UNDERSTOOD))
    return next(notes, "") or _NO_CALLS.get(answer.finish_reason or "", "")


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
) -> list[ShownStep]:
    """The steps after the model's own marks: discarded steps are left out, compressed ones
    replaced. The last mark of a step counts, including one made by a later turn that continues this
    work. Marks of the step itself, of a later step or of a missing one have no effect, and neither
    have those that `protect` forbids. `writes` are the tools that change something: a line of such
    a step stays, unless a later step's compression was marked together with it and stands for both.
    Messages with which people steered the turn come before the answer that took them in; those of
    `steering` come last, for the next answer.
    """
    marks: dict[int, Compressed | None] = {}
    in_words: set[int] = set()
    for step in steps:
        earlier: dict[int, Compressed | None] = dict.fromkeys(step.discards)
        earlier |= {mark.n: mark for mark in step.compresses}  # if both are given, compression wins
        marks |= {n: mark for n, mark in earlier.items() if n < step.n}
        until = max((mark.n for mark in step.compresses), default=0)
        in_words |= {n for n in step.discards if n < until}  # a summary of all of them
    if "last_steps" in protect:
        for step in steps[-PROTECTED_STEPS:]:
            marks.pop(step.n, None)
    shown_steps: list[ShownStep] = []
    for step in steps:
        shown = marks.get(step.n, step)
        if shown is not None or "requirements" in protect:
            shown_steps += step.steered
        if shown is None and step.n not in in_words and _leaves_a_line(step, protect, writes):
            shown = one_line(step)
        if shown is not None:
            shown_steps.append(shown)
    return [*shown_steps, *steering]


def _leaves_a_line(step: Step, protect: Collection[ProtectedName], writes: Collection[str]) -> bool:
    """Whether a one-line summary of a discarded step must stay."""
    failed = any(call.error for call in step.calls)
    wrote = any(call.name in writes and not call.error for call in step.calls)
    return ("errors" in protect and failed) or ("results" in protect and wrote)


def one_line(step: Step) -> Compressed:
    """A one-line summary of a step: its calls, and whether they succeeded.

    It quotes nothing that others wrote: in the model's own message that would look more trustworthy
    than it is.
    """
    calls = "; ".join(map(_call, step.calls))
    return Compressed(n=step.n, text=shortened(calls or "I called no tool.", _MOST_LINE))


def _call(call: ToolCallRecord) -> str:
    given = call.ran_with
    arguments = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    done = "done" if call.error is None else f"failed ({call.error})"
    changed = f", as changed by {call.changed.by}" if call.changed else ""
    return f"{call.name}({shortened(arguments, _MOST_ARGUMENTS)}): {done}{changed}"


def compressed_text(compressed: Compressed) -> str:
    """A compressed step as the model sees it."""
    return f"[my step {compressed.n}, in fewer words] {compressed.text}"


def cut_answer(text: str) -> str:
    """An answer without calls, as it is shown again: cut in the middle if it is very long."""
    return cut_in_the_middle(text, _MOST_WORDS)


def chat_messages(system: str, prompt: str, steps: Sequence[ShownStep]) -> list[ChatMessage]:
    """The chat before the next answer: every call is followed by its result, in order."""
    chat: list[ChatMessage] = [
        {"role": "system", "content": system},
        {"role": "user", "content": prompt},
    ]
    for step in steps:
        chat.extend(_step_messages(step))
    return chat


def _step_messages(step: ShownStep) -> Iterator[ChatMessage]:
    if isinstance(step, Steering):
        yield {"role": "user", "content": step.text}
        return
    if isinstance(step, Compressed):
        yield {"role": "assistant", "content": compressed_text(step)}
        return
    if not step.calls:
        if step.text:  # endpoints refuse an empty assistant message
            yield {"role": "assistant", "content": cut_answer(step.text)}
        lost = lost_calls(step)
        yield {"role": "user", "content": f"{_NO_EFFECT}: {lost}. {_CALL}" if lost else CORRECTION}
        return
    yield {
        "role": "assistant",
        "content": step.text,
        "tool_calls": [_tool_call(call) for call in step.calls],
    }
    for call in step.calls:
        yield {"role": "tool", "content": result_text(call), "tool_call_id": call.id}


def _tool_call(call: ToolCallRecord) -> ChatToolCall:
    given = call.arguments
    if isinstance(given, str):
        given = {"not_json": given}  # endpoints read the history too, and some insist on JSON
    arguments = json.dumps(given, ensure_ascii=False)
    return {
        "id": call.id,
        "type": "function",
        # A model may have called a tool by a name that the endpoint does not accept.
        "function": {"name": _ILLEGAL.sub("_", call.name)[:64] or "_", "arguments": arguments},
    }
