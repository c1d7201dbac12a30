"""The tools of one agent, and how the calls of one step run."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed, ToolSource
from hubbub.agents.tools.call_runner import ArgumentChecks, CallRunner, ToolPolicy
from hubbub.agents.tools.hub import HubTool
from hubbub.agents.tools.policy import NeedsApproval, decide
from hubbub.agents.tools.registry import (
    ALWAYS,
    NO_GROUPS,
    SELECT,
    Groups,
    SelectTool,
    ToolRegistry,
    picked_tools,
)
from hubbub.agents.tools.standard_tools import SILENT_FINISH, MessageTool
from hubbub.agents.tools.tool_chooser import LikelyTools
from hubbub.agents.turn.loop import FINISH, CallResult, failure
from hubbub.agents.turn.steps import TurnClock
from hubbub.protocol.turns import Step, ToolCallRecord, WaitStrategy

__all__ = ["CANCELLED", "CallWrapper", "Toolbox", "required_successes"]

# Wait strategies: wait for all calls of a step, for one success, or for success of more than half.
# Once enough calls succeed, the others are cancelled and get an error as their result. A call that
# writes to the network is never interrupted: the current one completes, queued ones do not start.


CANCELLED = "cancelled"
"""The `error` of a call cancelled because enough others succeeded."""

RunCall = Callable[[ToolCallRecord], Awaitable[CallResult]]


def required_successes(wait: WaitStrategy, calls: int) -> int:
    """How many of `calls` calls must succeed before the others are cancelled."""
    match wait:
        case "all":
            return calls + 1  # never: failed calls count as well
        case "any":
            return 1
        case "majority":
            return calls // 2 + 1


class ParallelCalls:
    """The calls of one step, run in parallel.

    `step` are all calls of the step. Those with a result count, `finish` does not.
    """

    def __init__(self, wait: WaitStrategy, step: Sequence[ToolCallRecord], run: RunCall):
        counted = [call for call in step if call.name != FINISH]
        self._missing = required_successes(wait, len(counted))
        self._missing -= sum(1 for c in counted if c.result is not None and c.error is None)
        self._wait, self._run = wait, run
        self._results: dict[str, CallResult] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def run(
        self, calls: Sequence[ToolCallRecord], ordered: Callable[[ToolCallRecord], bool]
    ) -> list[CallResult]:
        """Run `calls`, the `ordered` ones sequentially. Returns a result for each, in order."""
        queue = [call for call in calls if ordered(call)]
        if self._missing > 0:
            async with asyncio.TaskGroup() as group:
                if queue:
                    group.create_task(self._one_by_one(queue))
                self._tasks = [
                    group.create_task(self._run_one(call)) for call in calls if not ordered(call)
                ]
        return [self._result(call) for call in calls]

    def _result(self, call: ToolCallRecord) -> CallResult:
        result = self._results.get(call.id)
        is_parked = result is not None and result.parked is not None
        if result is None or (is_parked and self._missing <= 0):
            return self._cancelled(call)
        return result

    async def _one_by_one(self, queue: Sequence[ToolCallRecord]) -> None:
        for call in queue:
            if self._missing > 0:
                await self._run_one(call)

    async def _run_one(self, call: ToolCallRecord) -> None:
        result = self._results[call.id] = await self._run(call)
        if result.error is None and result.parked is None:
            self._missing -= 1
            if self._missing == 0:
                self._cancel_others()

    def _cancel_others(self) -> None:
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()

    def _cancelled(self, call: ToolCallRecord) -> CallResult:
        enough = "one has" if self._wait == "any" else "more than half have"
        message = (
            f"cancelled: of the calls of this step {enough} succeeded, as you wanted; {_MAYBE}"
        )
        return CallResult(call.id, failure(CANCELLED, message), CANCELLED)


_MAYBE = "what this one had begun may have taken effect"


CallWrapper: TypeAlias = Callable[
    [ToolCallRecord, Callable[[], Awaitable[CallResult]]], Awaitable[CallResult]
]
"""Wraps a call: runs it, or returns a result instead."""


class Toolbox:
    """Tools by name. Raises ValueError when two have the same name or one is called `finish`."""

    def __init__(
        self,
        tools: Iterable[Tool],
        tool_policy: ToolPolicy | None = None,
        *,
        source: ToolSource | None = None,
        always: Iterable[Tool] = (),
        groups: Groups = NO_GROUPS,
        hidden: Collection[str] = (),
    ):
        """`source` provides further tools, which can change: see `for_turn`. `always` are tools of
        the runtime itself, which no permission mode forbids. Tools in `groups` are described once
        the model picks them, singly or as a group. `hidden` ones can be called but are not listed.
        """
        self._groups, self._unlisted = groups, frozenset(hidden)
        self._tool_policy = tool_policy or ToolPolicy()
        self._tools, self._source = tuple(tools), source
        self._always = tuple(t for t in always if t.name not in self._tool_policy.disabled)
        self._checks, self._needed = ArgumentChecks(), tuple[str, ...]()
        self._notes: tuple[str, ...] = ()
        self._load_tools()

    def _load_tools(self) -> None:
        """Load the tools that exist now."""
        self._reported: set[str] = set()
        self._described: dict[tuple[str, ...], tuple[ToolSpec, ...]] = {}
        self._from_source = tuple(self._source.tools()) if self._source else ()
        self.registry = self._all = self._registry(*self._always)
        grouped = {name for names in self._groups.values() for name in names}
        single = [e.name for e in self.registry.entries if e.name not in grouped]
        own = [name for name in single if name not in {tool.name for tool in self._always}]
        self._hidden = self._unlisted.union(grouped)
        if len(own) > self._tool_policy.select_over:
            self._hidden = self._hidden.union(name for name in own if name not in ALWAYS)
        self._select: SelectTool | None = None
        if any(name in self.registry for name in self._hidden - self._unlisted):
            listed = [name for name in own if name in self._hidden - self._unlisted]
            most = self._tool_policy.select_over
            self._select = SelectTool(self.registry, self._groups, listed, most)
            self._all = self._registry(*self._always, self._select)
        self._runner = CallRunner(self._all, self._tool_policy, self._checks)

    def _registry(self, *runtime: Tool) -> ToolRegistry:
        tool_policy = self._tool_policy
        taken = {FINISH, SELECT, *(tool.name for tool in (*self._tools, *self._always))}
        return ToolRegistry(
            [*self._tools, *(tool for tool in self._from_source if tool.name not in taken)],
            mode=tool_policy.mode,
            disabled=tool_policy.disabled,
            overrides=tool_policy.overrides,
            runtime=runtime,
        )

    def for_turn(
        self, *needed: str, finish: Tool | None = None, more: Sequence[Tool] = ()
    ) -> Toolbox:
        """The tools that exist now, for one turn, during which their names stay the same. The
        `needed` ones are described from the start. `finish` replaces the tool of that name. No
        permission mode forbids `finish` or the tools in `more`.
        """
        turn = copy.copy(self)
        turn._needed = needed
        if finish is not None:
            turn._always = (*(tool for tool in self._always if tool.name != FINISH), finish)
        turn._always += tuple(more)
        same_source = self._source is None or self._from_source == tuple(self._source.tools())
        if same_source and turn._always == self._always:
            turn._reported = set()
        else:
            turn._load_tools()
        return turn

    @property
    def listed_specs(self) -> tuple[ToolSpec, ...]:
        """The agent's own tools that are only listed, one line each, because there are too many."""
        return () if self._select is None else self.registry.definitions(self._select.listed)

    def with_described(self, choice: LikelyTools) -> Toolbox:
        """A copy for one turn that also describes these tools from the start."""
        turn = copy.copy(self)
        turn._needed = (*self._needed, *choice.names)
        turn._notes = () if choice.note is None else (choice.note,)
        return turn

    def without(self, names: Collection[str]) -> Toolbox:
        """A copy for one turn, without these tools."""
        turn = copy.copy(self)
        turn._tools = tuple(tool for tool in self._tools if tool.name not in names)
        turn._load_tools()
        return turn

    async def prepare(self) -> None:
        """Create the validators of the tools that most turns call."""
        for spec in self.specs:
            if spec.name in ALWAYS:
                with contextlib.suppress(ToolFailed):  # the model that calls it gets the error
                    self._checks.of(spec)
                await asyncio.sleep(0)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, `finish` last."""
        return (*(name for name in self._all.names if name != FINISH), FINISH)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools described to a model before the first step."""
        return self.described(())

    def described(self, steps: Sequence[Step]) -> tuple[ToolSpec, ...]:
        """The tools described to a model after `steps`: those of every turn first, then those
        picked, so that an endpoint's prompt cache still matches the beginning.
        """
        picked = tuple(dict.fromkeys([*self._needed, *picked_tools(steps, self._groups)]))
        specs = self._described.get(picked)
        if specs is None:
            specs = self._specs(picked)
            if self.registry.stays:
                self._described[picked] = specs
        return specs

    def _specs(self, picked: Sequence[str]) -> tuple[ToolSpec, ...]:
        """The specs of every turn's tools and of the `picked` ones."""
        definitions = self.registry.definitions()
        first = [s for s in definitions if s.name not in self._hidden and s.name != FINISH]
        if not any(tool.name == FINISH for tool in self._always):
            finish = SILENT_FINISH
        else:
            finish = next(spec for spec in definitions if spec.name == FINISH)
        listed = (self._select.spec,) if self._select is not None else ()
        specs = {spec.name: spec for spec in definitions if spec.name in self._hidden}
        more = [specs[name] for name in picked if name in specs]
        return (*first, finish, *listed, *more)

    def notes(self) -> tuple[str, ...]:
        """New notes about the tools and their sources, each returned once per turn."""
        notes, self._notes = self._notes, ()
        if self._source is None:
            return notes
        fresh = {n: why for n, why in self._source.absences().items() if n not in self._reported}
        self._reported |= set(fresh)
        absent = (f"the tools of {name} are absent: {why}" for name, why in fresh.items())
        return (*notes, *absent)

    @property
    def speaking(self) -> frozenset[str]:
        """The names of the tools that send a message."""
        return frozenset(entry.name for entry in self._all.entries if entry.speaks)

    @property
    def writing(self) -> frozenset[str]:
        """The names of the tools that change something."""
        return frozenset(e.name for e in self._all.entries if e.permission != "read")

    def must_be_recorded(self, calls: Iterable[ToolCallRecord]) -> bool:
        """Whether a call could do harm if repeated after a crash, or could need approval."""
        entries = [self._all.get(call.name) for call in calls]
        mode = self._tool_policy.mode
        return any(
            not entry.tool.idempotent
            or isinstance(decide(entry, mode, untrusted=True), NeedsApproval)
            for entry in entries
            if entry is not None
        )

    def only_calls_hub(self, calls: Iterable[ToolCallRecord]) -> bool:
        """Whether the calls only call the hub, without running code in this process."""
        entries = [self._all.get(call.name) for call in calls]
        return all(
            entry is None or isinstance(entry.tool, HubTool | MessageTool) for entry in entries
        )

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
        request: str = "",
        wait: WaitStrategy = "all",
        around: CallWrapper | None = None,
        untrusted: bool = False,
    ) -> list[CallResult]:
        """Run `calls`, some or all of `all_calls` of step `n`. Returns results in their order.

        They run in parallel, except that those that write to the network keep their order. `again`:
        they may have run before, so only idempotent ones run. `clock` is the turn's; without it,
        times count from now. `thread_id` is the thread that woke the agent, and `request` the one
        that it works on. `wait`: which calls to wait for; the others are cancelled. `around` wraps
        each call. `untrusted`: the model had read untrusted content before it made the calls.
        """
        clock = clock or TurnClock()
        where = thread_id, untrusted, request
        sites = {call.id: CallSite(turn, n, i, *where) for i, call in enumerate(all_calls)}

        async def run(call: ToolCallRecord) -> CallResult:
            one = partial(self._runner.run, call, sites[call.id], clock, again=again)
            return await (one() if around is None else around(call, one))

        return await ParallelCalls(wait, all_calls, run).run(calls, self._ordered)

    def _ordered(self, call: ToolCallRecord) -> bool:
        entry = self._all.get(call.name)
        return entry is not None and entry.tool.ordered
