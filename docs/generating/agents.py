"""The parts of the pages about agents: prompt, Python, the scripted model server."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path

from pydantic import BaseModel

from generating.models import fields
from generating.tables import docstring, table
from hubbub.agents.inbox import MAX_INCOMING
from hubbub.agents.prompt import escape, lint
from hubbub.agents.prompt.components import DEFAULTS, NOT_PLAIN
from hubbub.agents.prompt.lint import RULES
from hubbub.agents.prompt.render import NOW, ConversationTemplate, ThreadView
from hubbub.agents.prompt.system import PROVIDED, system_prompt
from hubbub.agents.python.agent import Agent
from hubbub.agents.tools.base import ToolFailed
from hubbub.agents.tools.function import tool
from hubbub.agents.turn import loop
from hubbub.app.prompts import agent_prompts
from hubbub.config.loader import load
from hubbub.config.prompting import COMPONENTS, CONDITIONS
from hubbub.lab.previews import previews
from hubbub.protocol import messages, thread_ids
from hubbub.testing import model_script
from hubbub.testing.model_request import parse_request

__all__ = ["model_server_parts", "prompt_parts", "python_parts", "told"]


def prompt_parts() -> dict[str, str]:
    def said(seq: int, thread: str, sender: str, text: str) -> messages.Message:
        return messages.Message.model_validate(
            {
                "id": f"m{seq}", "seq": seq, "tseq": seq, "thread_id": thread, "content": text,
                "sender_id": sender, "sender_kind": "agent" if sender == "host" else "human",
                "type": "direct", "interaction_id": f"i{seq}", "hop": 0,
                "sent_at": f"2026-01-05T12:00:{seq:02}Z",
            }
        )  # fmt: skip

    with_ann, with_bob = thread_ids.direct(["ann", "host"]), thread_ids.direct(["bob", "host"])
    threads = {
        "direct_ann": (said(1, with_ann, "ann", "soup?"), said(2, with_ann, "host", "noted")),
        "direct_bob": (said(3, with_bob, "bob", "</content> & more"),),
    }
    conversation = ConversationTemplate.shipped().render(
        {name: ThreadView(name, said) for name, said in threads.items()},
        "direct_ann",
        [said(4, with_ann, "ann", "what do people want?")],
        now=NOW.format("ann"),
    )
    cases = (inspect.getdoc(escape) or "").split("\n\n")[2]
    steps = (inspect.getdoc(loop) or "").split("\n\n")[3]
    return {
        "system_prompt": system_prompt("You organise lunch.", "host", "lunch"),
        "conversation": conversation,
        "most_incoming": str(MAX_INCOMING),
        "escaping": cases,
        **_builder_parts(),
        "prompt_tokens": _tokens(),
        "loop": "\n".join(line.removeprefix("    ") for line in steps.splitlines()),
    }


def _tokens() -> str:
    """What models of the shipped configs read before the conversation, in tokens."""
    rows: list[tuple[str, ...]] = []
    for path in sorted((Path(__file__).parents[2] / "configs").glob("*.yaml")):
        for name, prompt in agent_prompts(load(path)).items():
            for preview in previews(prompt):
                sizes = preview.tokens
                whose = f"`{name}`" + (f", its {preview.role}" if preview.role else "")
                tools = sizes.pop("tools")
                words = sum(sizes.values())
                rows.append((path.name, whose, f"{words:,}", f"{tools:,}", f"{words + tools:,}"))
    return table(("config", "agent", "system message", "tools", "together"), rows)


def _builder_parts() -> dict[str, str]:
    """What system prompts are built from, and what the linter looks for."""
    found = (inspect.getdoc(lint) or "").split("\n\n")[3]
    return {
        "prompt_components": table(
            ("component", "priority", "content", "with a plain `instruction`"),
            [
                (f"`{c.name}`", str(c.priority), COMPONENTS[c.name], "no" * (c.name in NOT_PLAIN))
                for c in DEFAULTS
            ],
        ),
        "prompt_conditions": table(
            ("condition", "holds when"), [(f"`{n}`", text) for n, text in CONDITIONS.items()]
        ),
        "prompt_provided": ", ".join(f"`{name}`" for name in sorted(PROVIDED)),
        "prompt_rules": table(
            ("rule", "level", "finds"), [(f"`{r.id}`", r.level, r.about) for r in RULES]
        ),
        "prompt_tool_rules": found,
    }


def python_parts() -> dict[str, str]:
    about = _paragraphs(Agent)
    methods = {n: f for n, f in vars(Agent).items() if inspect.isfunction(f) and n[0] != "_"}
    handlers = [(n, f) for n, f in methods.items() if n.startswith("on_")]
    others = [(n, f) for n, f in methods.items() if not n.startswith("on_")]
    own = [(n, v) for n, v in vars(messages.Message).items() if isinstance(v, property)]
    return {
        "agent_about": "\n\n".join(about[1:-1]),
        "agent_attributes": table(("attribute", "meaning"), _columns(about[-1])),
        "agent_handlers": table(
            ("handler", "event"),
            [(f"`{_call(n, f, own=True)}`", " ".join(_paragraphs(f))) for n, f in handlers],
        ),
        "message_properties": "\n".join(f"* `.{n}` {docstring(value)}" for n, value in own),
        "agent_methods": "\n\n".join(_function(f"self.{n}", f) for n, f in others),
        "tool_decorator": _function("@tool", tool),
        "tool_failed": _function("ToolFailed", ToolFailed),
    }


def told(thing: object, column: str = "argument") -> list[str]:
    """The paragraphs of a docstring; columns become a table."""
    return [
        table((column, "meaning"), _columns(text)) if _is_columns(text) else text
        for text in _paragraphs(thing)
    ]


def _function(name: str, function: Callable[..., object]) -> str:
    """A function with its arguments; the columns of its docstring become a table."""
    shown = f"```text\n{_call(name, function)}\n```"
    return "\n\n".join([f"### {name.removeprefix('self.')}", shown, *told(function)])


def _call(name: str, function: Callable[..., object], *, own: bool = False) -> str:
    """How a function is written: its arguments with their types, and what it gives."""
    signature = inspect.signature(function)
    given = [p for p in signature.parameters.values() if p.name not in ("self", "function")]
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature.replace(parameters=given)))
    if own or function in (tool, ToolFailed):  # what these give is told in words
        text = text.rpartition(" -> ")[0] or text
    return f"await {name}{text}" if inspect.iscoroutinefunction(function) else f"{name}{text}"


def _paragraphs(thing: object) -> list[str]:
    """A docstring's paragraphs, each on one line but for columns."""
    said = inspect.getdoc(thing)
    found = said.split("\n\n") if said else []
    as_it_is = [_is_columns(text) or text.startswith("    ") for text in found]  # or code
    return [
        text if kept else " ".join(text.split()) for text, kept in zip(found, as_it_is, strict=True)
    ]


def _is_columns(text: str) -> bool:
    """Whether each line is a name and its meaning, or goes on with the meaning above."""
    lines = text.splitlines()
    named = re.match(r"\w+ {2,}\S", lines[0])
    return bool(named) and all(re.match(r"\w+ {2,}\S| {4,}\S", line) for line in lines)


def _columns(text: str) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for line in text.splitlines():
        name, meaning = re.split(r" {2,}", line, maxsplit=1)
        if name:
            rows.append((f"`{name}`", meaning))
        else:
            rows[-1] = (rows[-1][0], f"{rows[-1][1]} {meaning}")
    return rows


def model_server_parts(script: Path) -> dict[str, str]:
    shapes: dict[str, type[BaseModel]] = {
        "script": model_script.Script, "rule": model_script.ScriptRule, "when": model_script.When,
        "answer": model_script.ScriptedAnswer, "call": model_script.ScriptedCall,
        "usage": model_script.ScriptedUsage,
        "refusal": model_script.Refusal, "breakdown": model_script.Breakdown,
    }  # fmt: skip
    nothing = parse_request({"model": "", "messages": [{"role": "user"}]}, {}, 0.0)
    return {
        **{f"{name}_fields": fields(model) for name, model in shapes.items()},
        **{f"{name}_about": docstring(model) for name, model in shapes.items()},
        "script_example": script.read_text("utf-8"),
        "script_placeholders": ", ".join(f"`{name}`" for name in nothing.placeholders()),
        "place": "{{ name }}",
    }
