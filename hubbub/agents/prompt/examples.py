"""Few-shot examples in the system prompt: a message, and the calls that answer it. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TypeAlias

from hubbub.agents.prompt.escape import escaped
from hubbub.config.prompting import ExampleConfig
from hubbub.protocol.turns import Step, ToolCallRecord

__all__ = ["WriteCalls", "native_calls", "render_examples"]

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
