"""The tools that an agent may use, by name: those that are disabled or forbidden are not in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import Confirm, Tool
from hubbub.agents.tools.policy import PermissionMode, Refuse, decide
from hubbub.agents.tools.tuning import Retry, Tuned, Tuning
from hubbub.agents.turn.loop import FINISH
from hubbub.protocol.messages import Permission

__all__ = ["SELECT", "Entry", "MayBeAbsent", "Registry"]

SELECT = "use_tools"
"""The tool that picks tools; see `hubbub.agents.tools.selection`."""

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
