"""The tools available to an agent, by name, without disabled and forbidden ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Protocol, TypeAlias, cast

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm, ReadingTool, Tool, ToolFailed
from hubbub.agents.tools.policy import PermissionMode, Refuse, Retry, ToolOverrides, decide
from hubbub.agents.tools.standard_tools import CHECK, FORK, WAIT_FOR
from hubbub.agents.turn.loop import FINISH
from hubbub.agents.turn.steps import in_background
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import Step
from hubbub.wording import near, shortened

__all__ = [
    "ALWAYS",
    "NO_GROUPS",
    "SELECT",
    "Groups",
    "SelectTool",
    "ToolEntry",
    "ToolRegistry",
    "picked_tools",
]

SELECT = "use_tools"
"""The tool that selects further tools."""

_MAX_SUMMARY = 120
_NO_OVERRIDES = ToolOverrides()


class IntermittentTool(Protocol):
    """A tool that comes and goes with the process that runs it."""

    @property
    def absent(self) -> str | None:
        """The reason why it cannot be called at present; None if it can."""
        ...


@dataclass(frozen=True, slots=True)
class ToolEntry:
    """A tool with its effective settings: its own, overridden by the operator's."""

    tool: Tool
    permission: Permission
    confirm: Confirm
    timeout: float | None
    retry: Retry
    budget: int | None
    untrusted: bool = False
    """Whether its results are always untrusted."""
    intermittent: IntermittentTool | None = None
    """The tool, if it can be absent; determined once, because it is used often."""

    @property
    def name(self) -> str:
        return self.tool.name

    @property
    def speaks(self) -> bool:
        return self.tool.speaks

    @property
    def absent(self) -> str | None:
        return None if self.intermittent is None else self.intermittent.absent

    @property
    def summary(self) -> str:
        """The first sentence of its description, on one line."""
        return _first_sentence(self.tool.spec.description)


@lru_cache(maxsize=1024)  # needed for all tools in every request to a model
def _first_sentence(text: str) -> str:
    line = " ".join(text.split()).partition(". ")[0].removesuffix(".")
    return shortened(line, _MAX_SUMMARY)


class ToolRegistry:
    """`tools` without the `disabled` ones and those that `mode` forbids, in order.

    Raises ValueError if two tools have the same name, or one has the name of a runtime tool.
    """

    def __init__(
        self,
        tools: Iterable[Tool],
        *,
        mode: PermissionMode = "full",
        disabled: Collection[str] = (),
        overrides: Mapping[str, ToolOverrides] = MappingProxyType({}),
        runtime: Iterable[Tool] = (),
    ):
        """`runtime`: tools of the runtime, which modes and settings do not affect; to disable one,
        omit it.
        """
        self._entries: dict[str, ToolEntry] = {}
        seen = {FINISH, SELECT}
        for tool in tools:
            if tool.name in seen:
                raise ValueError(f"there are two tools called {tool.name!r}")
            seen.add(tool.name)
            entry = _entry(tool, overrides.get(tool.name, _NO_OVERRIDES))
            if tool.name not in disabled and not isinstance(decide(entry, mode), Refuse):
                self._entries[tool.name] = entry
        for tool in runtime:
            if tool.name in seen - {FINISH, SELECT}:
                raise ValueError(f"{tool.name!r} is the name of a tool that every agent has")
            self._entries[tool.name] = _entry(tool, _NO_OVERRIDES)
        self.stays = all(entry.intermittent is None for entry in self._entries.values())
        """Whether no tool can become absent."""

    def __contains__(self, name: str) -> bool:
        return name in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, name: str) -> ToolEntry | None:
        return self._entries.get(name)

    @property
    def entries(self) -> Sequence[ToolEntry]:
        return tuple(self._entries.values())

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._entries)

    def definitions(self, names: Collection[str] | None = None) -> tuple[ToolSpec, ...]:
        """The specs of all tools, or of those in `names`, that can be called at present."""
        return tuple(
            entry.tool.spec
            for entry in self._entries.values()
            if entry.absent is None and (names is None or entry.name in names)
        )

    def summaries(self) -> dict[str, str]:
        """One line for each tool that can be called at present, by name."""
        return {e.name: e.summary for e in self._entries.values() if e.absent is None}

    def near(self, name: str) -> list[str]:
        """Up to three similar names."""
        names = list(self.summaries())
        similar = near(name, names, 3, 0.4)
        containing = [each for each in names if name and name.casefold() in each.casefold()]
        return list(dict.fromkeys([*similar, *containing]))[:3]


def _entry(tool: Tool, operator: ToolOverrides) -> ToolEntry:
    # Reads attributes, because an isinstance check against a protocol takes ten times as long, and
    # this runs for all tools when the agent starts and in many turns.
    own: ToolOverrides | None = getattr(tool, "overrides", None)
    overrides = operator if own is None else operator.with_defaults(own)
    return ToolEntry(
        tool=tool,
        permission=overrides.permission or tool.permission,
        confirm=tool.confirm if overrides.confirm is None else overrides.confirm,
        timeout=overrides.timeout or tool.timeout,
        retry=overrides.effective_retry,
        budget=overrides.budget,
        untrusted=overrides.untrusted is True,
        intermittent=cast(IntermittentTool, tool) if hasattr(tool, "absent") else None,
    )


# Selection: for tools that are not described, a model reads names or summaries, and selects the
# ones it needs. The selection follows from the recorded steps alone, so a resumed turn continues
# with the same tools.


ALWAYS = frozenset({"send_text_message", "fork", "search_knowledge", "load_skill"})
"""Described from the start if they exist, regardless of the number of tools."""
Groups: TypeAlias = Mapping[str, Sequence[str]]
"""Names of related tools, by the name of their group."""
NO_GROUPS: Groups = MappingProxyType({})


def picked_tools(steps: Sequence[Step], groups: Groups) -> list[str]:
    """The tools selected or called in `steps`, or needed by such a call, in that order."""
    names: list[str] = []
    for call in (call for step in steps for call in step.calls):
        if call.name != SELECT:
            names.append(call.name)
            names += (WAIT_FOR, CHECK) if call.name == FORK and in_background(call) else ()
        elif call.result is not None and call.error is None:
            names += _without_groups(call.arguments, groups)
    return names


def _without_groups(arguments: JsonValue, groups: Groups) -> list[str]:
    """The tools that a call of `use_tools` names, with groups resolved."""
    names = arguments.get("names") if isinstance(arguments, dict) else None
    given = [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
    return list(dict.fromkeys(tool for name in given for tool in groups.get(name, (name,))))


class SelectTool(ReadingTool):
    """`use_tools(names)`: its description lists the tools, its result the selection."""

    name = SELECT

    def __init__(self, registry: ToolRegistry, groups: Groups, listed: Sequence[str], most: int):
        """`listed` are the tools outside of groups. `most`: maximum names per call."""
        self._registry, self._groups = registry, groups
        self.listed, self._most = listed, most

    @property
    def spec(self) -> ToolSpec:
        summaries = self._registry.summaries()
        groups = {g: [n for n in names if n in summaries] for g, names in self._groups.items()}
        lines = [f"{group}: {', '.join(names)}" for group, names in groups.items() if names]
        lines += [f"{name}: {summaries[name]}" for name in self.listed if name in summaries]
        choices = () if self.listed else tuple(group for group, names in groups.items() if names)
        return _spec("\n".join(lines), choices, self._most)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Report the selected tools. Raises `ToolFailed` if none of the names exists."""
        names = _without_groups(dict(arguments), self._groups)
        selected = [name for name in names if name in self._registry.summaries()]
        unknown = [name for name in names if name not in selected]
        near = list(dict.fromkeys(n for name in unknown for n in self._registry.near(name)))
        if not selected:
            message = f"there is no tool {_quoted(unknown)}"
            raise ToolFailed(message, error="unknown_tool", retry=True, near=near)
        text = f"You have these tools now: {', '.join(selected)}."
        if unknown:
            text += f" There is no tool {_quoted(unknown)}"
            text += f"; near: {', '.join(near)}." if near else "."
        return text


@lru_cache(256)  # reuses the object, and with it its cached size
def _spec(listing: str, choices: tuple[str, ...], most: int) -> ToolSpec:
    """`choices`: the only valid names, if all tools are in groups."""
    description = f"Get more tools, by group or name, before you call them:\n{listing}"
    item: dict[str, JsonValue] = {"type": "string"}
    offered: dict[str, JsonValue] = {**item, "enum": list(choices)} if choices else item
    parameters, shown = _selection_schema(item, most), _selection_schema(offered, most)
    return ToolSpec(SELECT, description, parameters, shown)


def _selection_schema(item: dict[str, JsonValue], most: int) -> dict[str, JsonValue]:
    """The schema of the arguments of `use_tools`."""
    names: JsonValue = {"type": "array", "items": item, "minItems": 1, "maxItems": most}
    return {
        "type": "object",
        "properties": {"names": names},
        "required": ["names"],
        "additionalProperties": False,
    }


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
