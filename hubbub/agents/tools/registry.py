"""The tools that an agent may use, by name: those that are disabled or forbidden are not in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm, ReadingTool, Tool, ToolFailed
from hubbub.agents.tools.policy import PermissionMode, Refuse, Retry, Tuned, Tuning, decide
from hubbub.agents.turn.loop import FINISH
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import Step

__all__ = ["ALWAYS", "SELECT", "Entry", "MayBeAbsent", "Registry", "SelectTool", "picked"]

SELECT = "use_tools"
"""The tool that picks tools; see `hubbub.agents.tools.registry`."""

_LONGEST_LINE = 120


@runtime_checkable
class MayBeAbsent(Protocol):
    """A tool that comes and goes with whoever runs it."""

    @property
    def absent(self) -> str | None:
        """Why it cannot be called at present; None: it can."""
        ...


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool, and what holds for its calls: what it says of itself, and the operator above that."""

    tool: Tool
    permission: Permission
    confirm: Confirm
    timeout: float | None
    retry: Retry
    budget: int | None
    outside: bool = False
    """Whether what it gives always comes from outside the network."""
    coming: MayBeAbsent | None = None
    """The tool, if it is one that comes and goes: asked once, for it is asked often."""

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def speaks(self) -> bool:
        return self.tool.speaks

    @property
    def absent(self) -> str | None:
        return None if self.coming is None else self.coming.absent

    @property
    def summary(self) -> str:
        """The first sentence of its description, as one line."""
        text = " ".join(self.tool.spec.description.split())
        line = text.partition(". ")[0].removesuffix(".")
        return line if len(line) <= _LONGEST_LINE else f"{line[: _LONGEST_LINE - 1]}…"


class Registry:
    """`tools` without the `disabled` ones and those that `mode` forbids, in their order.

    Raises ValueError when two have the same name, or one the name of a tool of the runtime.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        mode: PermissionMode = "full",
        disabled: Collection[str] = (),
        tuning: Mapping[str, Tuning] = MappingProxyType({}),
        runtime: Iterable[Tool] = (),
    ):
        """`runtime`: tools of the runtime itself, which no mode forbids and nobody tunes; who
        disables one leaves it out.
        """
        self._entries: dict[str, Entry] = {}
        seen = {FINISH, SELECT}
        for tool in tools:
            if tool.name in seen:
                raise ValueError(f"there are two tools called {tool.name!r}")
            seen.add(tool.name)
            entry = _entry(tool, tuning.get(tool.name, Tuning()))
            if tool.name not in disabled and not isinstance(decide(entry, mode), Refuse):
                self._entries[tool.name] = entry
        for tool in runtime:
            if tool.name in seen - {SELECT}:
                raise ValueError(f"{tool.name!r} is the name of a tool that every agent has")
            self._entries[tool.name] = _entry(tool, Tuning())

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str) -> Entry | None:
        return self._entries.get(name)

    @property
    def entries(self) -> Sequence[Entry]:
        return tuple(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def definitions(
        self, names: Collection[str] | None = None, permission: Permission | None = None
    ) -> tuple[ToolSpec, ...]:
        """What a model is told of the tools that can be called at present: of all of them, of those
        with these names, or of those with this permission.
        """
        return tuple(
            entry.tool.spec
            for entry in self._entries.values()
            if entry.absent is None
            and (names is None or entry.name in names)
            and (permission is None or entry.permission == permission)
        )

    def summaries(self) -> dict[str, str]:
        """One line for each tool that can be called at present, by its name."""
        return {e.name: e.summary for e in self._entries.values() if e.absent is None}

    def near(self, name: str) -> list[str]:
        """Up to three names that may have been meant."""
        names = list(self.summaries())
        folded = {known.casefold(): known for known in names}
        close = [folded[n] for n in get_close_matches(name.casefold(), folded, 3, 0.4)]
        parts = [known for known in names if name and name.casefold() in known.casefold()]
        return list(dict.fromkeys([*close, *parts]))[:3]


def _entry(tool: Tool, operator: Tuning) -> Entry:
    own = tool.tuning if isinstance(tool, Tuned) else Tuning()
    tuning = operator.over(own)
    return Entry(
        tool=tool,
        permission=tuning.permission or tool.permission,
        confirm=tool.confirm if tuning.confirm is None else tuning.confirm,
        timeout=tuning.timeout or tool.timeout,
        retry=tuning.repeated,
        budget=tuning.budget,
        outside=tuning.outside is True,
        coming=tool if isinstance(tool, MayBeAbsent) else None,
    )


# Two-stage selection: of many tools a model reads one line each, and picks those it needs. Pure.
#
# What was picked follows from the recorded steps alone, so a turn that is taken up again goes on
# with the same tools.


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
