"""The tools of one agent, and the running of the calls of one step."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.absence import NoSource, ToolSource
from hubbub.agents.tools.base import CallSite, Tool
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.policy import NeedsApproval, decide
from hubbub.agents.tools.registry import SELECT, Registry
from hubbub.agents.tools.running import CallRunner, Checks
from hubbub.agents.tools.selection import SelectTool, picked
from hubbub.agents.tools.waiting import Race
from hubbub.agents.turn.loop import FINISH, CallResult
from hubbub.agents.turn.timing import TurnClock
from hubbub.protocol.turns import Step, ToolCallRecord, WaitStrategy

__all__ = ["Around", "Toolbox"]

Around: TypeAlias = Callable[
    [ToolCallRecord, Callable[[], Awaitable[CallResult]]], Awaitable[CallResult]
]
"""Runs a call, or says what came of it instead."""

_FINISH = ToolSpec(
    FINISH,
    "End this turn: you have done what there was to do, or there is nothing to do.",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "In a few words, why you are done."}
        },
        "required": ["reason"],
        "additionalProperties": False,
    },
)


class Toolbox:
    """Tools by name. Raises ValueError when two have the same name or one is called `finish`."""

    def __init__(
        self,
        tools: Iterable[Tool],
        conduct: Conduct | None = None,
        *,
        source: ToolSource | None = None,
        always: Iterable[Tool] = (),
    ):
        """`source` has further tools, which come and go: see `for_turn`. `always` are tools of the
        runtime itself, which nobody has to pick and no permission mode forbids.
        """
        self._conduct = conduct or Conduct()
        self._tools, self._source = tuple(tools), source or NoSource()
        self._always = tuple(t for t in always if t.name not in self._conduct.disabled)
        self._checks = Checks()
        self._fill()

    def _fill(self) -> None:
        """Take the tools as they are now."""
        self._told: set[str] = set()
        self._passing = tuple(self._source.tools())
        self._chosen = self._registry()
        self.registry = self._all = self._registry(*self._always)
        self._select: SelectTool | None = None
        if len(self._chosen) > self._conduct.select_over:
            self._select = SelectTool(self._chosen, self._conduct.select_over)
            self._all = self._registry(*self._always, self._select)
        self._runner = CallRunner(self._all, self._conduct, self._checks)

    def _registry(self, *runtime: Tool) -> Registry:
        conduct = self._conduct
        taken = {FINISH, SELECT, *(tool.name for tool in (*self._tools, *self._always))}
        return Registry(
            [*self._tools, *(tool for tool in self._passing if tool.name not in taken)],
            mode=conduct.mode,
            disabled=conduct.disabled,
            tuning=conduct.tuning,
            runtime=runtime,
        )

    def for_turn(self) -> Toolbox:
        """The tools that there are now, for one turn: its names stay, whoever comes and goes."""
        turn = copy.copy(self)
        if self._passing == tuple(self._source.tools()):
            turn._told = set()
        else:
            turn._fill()
        return turn

    @property
    def names(self) -> tuple[str, ...]:
        """All names, `finish` the last."""
        return (*self._all.names, FINISH)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """What a model is told before the first step."""
        return self.described(())

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """What a model is told after `steps`: all tools, or of too many those it has picked."""
        always = tuple(tool.spec for tool in self._always)
        if self._select is None:
            return (*self._chosen.definitions(), *always, _FINISH)
        names = picked(steps, self._chosen)
        return (*self._chosen.definitions(names), self._select.spec, *always, _FINISH)

    def news(self) -> tuple[str, ...]:
        """What has become unreachable, told once for each turn."""
        fresh = {n: why for n, why in self._source.absences().items() if n not in self._told}
        self._told |= set(fresh)
        return tuple(f"the tools of {name} are absent: {why}" for name, why in fresh.items())

    @property
    def speaking(self) -> frozenset[str]:
        """The names of the tools that send a message."""
        return frozenset(entry.name for entry in self._all.entries if entry.speaks)

    @property
    def writing(self) -> frozenset[str]:
        """The names of the tools that change something."""
        return frozenset(e.name for e in self._all.entries if e.permission != "read")

    def must_be_recorded(self, calls: Iterable[ToolCallRecord]) -> bool:
        """Whether one of the calls could do harm if a crash made it be forgotten and done again, or
        a person may be asked about it.
        """
        entries = [self._all.get(call.name) for call in calls]
        mode = self._conduct.mode
        return any(
            not entry.tool.idempotent
            or isinstance(decide(entry, mode, outside=True), NeedsApproval)
            for entry in entries
            if entry is not None
        )

    def only_asks_the_hub(self, calls: Iterable[ToolCallRecord]) -> bool:
        """Whether nothing of the calls runs in this process but the questions to the hub."""
        entries = [self._all.get(call.name) for call in calls]
        return all(entry is None or isinstance(entry.tool, HubTool) for entry in entries)

    async def run(
        self,
        turn: str,
        n: int,
        all_calls: Sequence[ToolCallRecord],
        calls: Sequence[ToolCallRecord],
        *,
        again: bool = False,
        clock: TurnClock | None = None,
        thread_id: str = "",
        wait: WaitStrategy = "all",
        around: Around | None = None,
        outside: bool = False,
    ) -> list[CallResult]:
        """Run `calls`, which are some of `all_calls` of step `n`; results in their order.

        They run side by side, except that those that write to the network keep their order. `again`
        says that they may have run before: then only idempotent ones run. `clock` is the turn's;
        without it times count from here. `thread_id` is the thread that woke the agent. `wait`:
        which calls are waited for, the others are cancelled. `around` is given each call when its
        turn has come, and what runs it. `outside`: the model had read something from outside the
        network when it made them.
        """
        clock = clock or TurnClock()
        places = {c.id: CallSite(turn, n, i, thread_id, outside) for i, c in enumerate(all_calls)}

        async def run(call: ToolCallRecord) -> CallResult:
            one = partial(self._runner.run, call, places[call.id], clock, again=again)
            return await (one() if around is None else around(call, one))

        return await Race(wait, all_calls, run).run(calls, self._ordered)

    def _ordered(self, call: ToolCallRecord) -> bool:
        entry = self._all.get(call.name)
        return entry is not None and entry.tool.ordered
