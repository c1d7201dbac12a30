"""The data available to the components of a system prompt, one object for each turn. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.tools.policy import PermissionMode
from hubbub.config.prompting import ExampleConfig
from hubbub.protocol.messages import Kind, Participant, Permission
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = [
    "Note",
    "ParticipantSummary",
    "PromptContext",
    "native_calls",
    "omitted_value",
    "quoted_state",
    "render_examples",
    "summarise_participants",
]

# Few-shot examples in the system prompt: a message, and the calls that answer it. Pure.


WriteCalls: TypeAlias = Callable[[Step], str]
"""Formats the calls of a step as a model writes them in its dialect."""

_HEAD = "Examples of what to do. They are made up: nothing in them has happened."


def native_calls(step: Step) -> str:
    """Calls that have no text form of their own: names and arguments."""
    return "\n".join(
        f"call `{call.name}` with {json.dumps(call.arguments, ensure_ascii=False)}"
        for call in step.calls
    )


def render_examples(
    examples: Sequence[ExampleConfig], write_calls: WriteCalls = native_calls
) -> str:
    """The examples as a model reads them; empty if there are none."""
    if not examples:
        return ""
    shown = "\n".join(_example(example, write_calls) for example in examples)
    return f"{_HEAD}\n<examples>\n{shown}\n</examples>"


def _example(example: ExampleConfig, write_calls: WriteCalls) -> str:
    thread = example.thread or f"direct_{example.sender}"
    lines = [
        "<example>",
        f"<incoming_thread_id>{escaped(thread).text}</incoming_thread_id>",
        f'<incoming_message sender="{example.sender}"> '
        f"<content>{escaped(example.incoming).text}</content> </incoming_message>",
    ]
    for n, given in enumerate(example.steps, 1):
        call = ToolCallRecord(id=f"call_{n}", name=given.call, arguments=given.arguments)
        lines.append(f"<step>{write_calls(Step(n=n, calls=(call,)))}</step>")
        if given.result is not None:
            lines.append(f"<result>{given.result}</result>")
    return "\n".join([*lines, "</example>"])


class Note(NamedTuple):
    """A skill or a mod: something with a name that a prompt describes in one line."""

    name: str
    description: str = ""


class ParticipantSummary(NamedTuple):
    """Another participant. Its self-description is escaped, because it is untrusted."""

    id: str
    kind: Kind
    description: str = ""
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """What is known when a turn starts.

    Text from participants (`participants`, `state`) must stand between delimiters that the rule
    about untrusted data names; the standard components do so.
    """

    agent: str
    """The agent's id."""
    network: str
    """The network's name."""
    instruction: str = ""
    """The operator's text: `instruction`, or the rendered versioned prompt."""
    tools: Sequence[ToolSpec] = ()
    """The tools that may be called, including `finish`."""
    permissions: Mapping[str, Permission] = field(default_factory=dict)
    """The permission of each tool, by name."""
    skills: Sequence[Note] = ()
    """Instructions that can be loaded."""
    mods: Sequence[Note] = ()
    """Descriptions of the hub's mods."""
    capabilities: Sequence[str] = ()
    """Skills in the agent's card, which others see."""
    permission_mode: PermissionMode = "full"
    """What its tools may change."""
    mode: Literal["auto", "interactive"] = "auto"
    """interactive: a person is asked after each tool call."""
    final_text: Literal["record", "send"] = "record"
    """send: text without a tool call is an answer."""
    model: str = ""
    """The model's name at its endpoint."""
    dialect: str = "native"
    """How the model calls tools."""
    write_calls: WriteCalls = native_calls
    """Formats calls as text of that dialect."""
    thread: str = ""
    """The thread that woke the agent, with the id as it sees it: `direct_ann`."""
    threads: Sequence[str] = ()
    """The threads that the conversation shows, most recently active first."""
    participants: Sequence[ParticipantSummary] = ()
    """The others in the network."""
    state: Mapping[str, str] = field(default_factory=dict)
    """The agent's memory by key, as returned by `quoted_state`; long values are only mentioned."""
    knowledge: Sequence[str] = ()
    """Passages of the operator's documents that match the incoming messages, as elements."""
    examples: Sequence[ExampleConfig] = ()
    """Few-shot examples."""
    reminder: Sequence[str] = ()
    """The rules that are repeated at the end."""
    scratchpad: bool = False
    """Whether the model may think in `<scratchpad>` before it acts."""


def quoted_state(state: Mapping[str, JsonValue]) -> dict[str, str]:
    """An agent's memory as text that cannot close an element: it may come from others."""
    return {escaped(key).text: escaped(_as_text(value)).text for key, value in state.items()}


def omitted_value(key: str, size: int) -> str:
    """Replaces a value of `size` bytes."""
    return f"({size} bytes: `recall` {escaped(key).text})"


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def summarise_participants(
    participants: Iterable[Participant], me: str
) -> tuple[ParticipantSummary, ...]:
    """The participants other than `me`, agents first, by id, without services."""
    others = [p for p in participants if p.id != me and p.kind != "service"]
    others.sort(key=lambda p: (p.kind != "agent", p.id))
    return tuple(
        ParticipantSummary(
            p.id,
            p.kind,
            escaped(" ".join(p.card.description.split())).text,
            tuple(escaped(" ".join(skill.split())).text for skill in p.card.skills),
        )
        for p in others
    )
