"""What the parts of a system prompt may look at: one value for each turn. Pure."""

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
    "WriteCalls",
    "companions",
    "native_calls",
    "quoted",
    "render_examples",
    "unshown",
]

# Few-shot examples in the system prompt: a message, and the calls that answer it. Pure.


WriteCalls: TypeAlias = Callable[[Step], str]
"""The calls of a step as a model writes them in its dialect."""

_HEAD = "Examples of what to do. They are made up: nothing in them has happened."


def native_calls(step: Step) -> str:
    """Calls that have no text of their own: names and arguments."""
    return "\n".join(
        f"call `{call.name}` with {json.dumps(call.arguments, ensure_ascii=False)}"
        for call in step.calls
    )


def render_examples(
    examples: Sequence[ExampleConfig], write_calls: WriteCalls = native_calls
) -> str:
    """The examples as a model reads them; without examples, nothing."""
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
    """Something with a name that a model is told of in a line: a skill, a mod."""

    name: str
    description: str = ""


class ParticipantSummary(NamedTuple):
    """Another participant. What they say about themselves is escaped: it is theirs, not ours."""

    id: str
    kind: Kind
    description: str = ""
    skills: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptContext:
    """What is known when a turn begins.

    Everything that participants wrote (`participants`, `state`) must stand between delimiters that
    the rule about untrusted data names; the components that come with Hubbub do so.
    """

    agent: str
    """The agent's id."""
    network: str
    """The network's name."""
    instruction: str = ""
    """The operator's words: `instruction`, or the versioned prompt as rendered."""
    tools: Sequence[ToolSpec] = ()
    """What may be called, `finish` among them."""
    permissions: Mapping[str, Permission] = field(default_factory=dict)
    """What each tool does to the world, by its name."""
    skills: Sequence[Note] = ()
    """Instructions that may be loaded."""
    mods: Sequence[Note] = ()
    """What extends the hub."""
    capabilities: Sequence[str] = ()
    """What others are told that the agent can do."""
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
    """How calls stand in text in that dialect."""
    thread: str = ""
    """The thread that woke the agent, as it sees it: `direct_ann`."""
    threads: Sequence[str] = ()
    """The threads that the conversation shows, most recently active first."""
    participants: Sequence[ParticipantSummary] = ()
    """The others in the network."""
    state: Mapping[str, str] = field(default_factory=dict)
    """What the agent remembers, by key, as `quoted`; of long values only that they are there."""
    knowledge: Sequence[str] = ()
    """Passages of the operator's documents that match what has come in, as elements."""
    examples: Sequence[ExampleConfig] = ()
    """Messages and what to do about them."""
    reminder: Sequence[str] = ()
    """The rules that are said again at the end."""
    scratchpad: bool = False
    """Whether the model may think in `<scratchpad>` before it acts."""


def quoted(state: Mapping[str, JsonValue]) -> dict[str, str]:
    """What an agent remembers as text that cannot close an element: others may have told it."""
    return {escaped(key).text: escaped(_as_text(value)).text for key, value in state.items()}


def unshown(key: str, size: int) -> str:
    """What stands in place of a value of so many bytes."""
    return f"({size} bytes: `recall` {escaped(key).text})"


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def companions(everybody: Iterable[Participant], me: str) -> tuple[ParticipantSummary, ...]:
    """The participants that are not `me`, agents first, by id; services are nobody to talk to."""
    others = [p for p in everybody if p.id != me and p.kind != "service"]
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
