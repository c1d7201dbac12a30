"""Two-stage selection: of many tools a model reads one line each, and picks those it needs. Pure.

What was picked follows from the recorded steps alone, so a turn that is taken up again goes on with
the same tools.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, ReadingTool, ToolFailed
from hubbub.agents.tools.registry import SELECT, Registry
from hubbub.protocol.turns import Step

__all__ = ["ALWAYS", "SelectTool", "picked"]

ALWAYS = frozenset(
    {"send_text_message", "ask_human", "decline", "fork", "search_knowledge", "load_skill"}
)
"""Described from the beginning where they exist: the answer, the ways out, what prompts name."""


def picked(steps: Sequence[Step], registry: Registry) -> frozenset[str]:
    """The tools to be described after `steps`: those that were picked or called, and `ALWAYS`."""
    names: set[str] = set(ALWAYS)
    for call in (call for step in steps for call in step.calls):
        if call.name != SELECT:
            names.add(call.name)
        elif call.result is not None and call.error is None:
            names |= set(_names(call.arguments))
    return frozenset(name for name in names if name in registry)


def _names(arguments: JsonValue) -> list[str]:
    names = arguments.get("names") if isinstance(arguments, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


class SelectTool(ReadingTool):
    """`use_tools(names)`: its description holds the summaries, its result says what was picked."""

    def __init__(self, registry: Registry, most: int):
        """`most`: names that may be picked in one call."""
        self._registry, self._most = registry, most

    @property
    def name(self) -> str:
        return SELECT

    @property
    def spec(self) -> ToolSpec:
        lines = [f"{name}: {line}" for name, line in self._registry.summaries().items()]
        names: JsonValue = {
            "type": "array",
            "items": {"type": "string"},
            "minItems": 1,
            "maxItems": self._most,
            "description": "Names of the tools that you need next, from the list.",
        }
        return ToolSpec(
            SELECT,
            "Get tools by their names before you call them. You may pick again later. "
            "There are these:\n" + "\n".join(lines),
            {
                "type": "object",
                "properties": {"names": names},
                "required": ["names"],
                "additionalProperties": False,
            },
        )

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Which of the names are tools now. Raises `ToolFailed` if none of them is."""
        names = list(dict.fromkeys(_names(dict(arguments))))
        known = [name for name in names if name in self._registry.summaries()]
        unknown = [name for name in names if name not in known]
        near = list(dict.fromkeys(n for name in unknown for n in self._registry.near(name)))
        if not known:
            words = f"there is no tool {_quoted(unknown)}"
            raise ToolFailed(words, error="unknown_tool", retry=True, near=near)
        told = f"You have these tools now: {', '.join(known)}."
        if unknown:
            told += f" There is no tool {_quoted(unknown)}"
            told += f"; near: {', '.join(near)}." if near else "."
        return told


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
