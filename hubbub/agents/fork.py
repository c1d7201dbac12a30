"""`fork`: a model hands part of its work to a sub-agent, whose one result is the result of the
call.

A sub-agent is the same model with the same tools, but it sees only a goal and the context given in
the call, not the conversation nor the steps so far. It runs within the call, so whatever ends the
turn ends it. It ends in one of two ways:

    finish(reason)                            the reason is the result
    too many steps, no call, a model error,   the result is an error, `failed: …`
    or no time left (`failed: timeout`)

While one of its calls waits for a person, so does the turn: both are parked and continue once that
is decided.

In the background (`background`) the call returns at once, and the sub-agent works on while the turn
does. `wait_for` waits for its end, `check` reports its progress; otherwise its end becomes a step
of the turn (`Step.made`) before the next question. When the turn ends, so does it; a turn that is
about to be parked waits for it first. A resumed turn restarts it from where its own record ends.

It has a thread of its own: goal and result are posted as replies to the message that woke the
agent, if they wake no agent (there is no other agent in that direct thread; mentions are put in
code). Its steps are recorded in the turn under numbers of their own (`StepRange`), so a sub-agent
interrupted by a crash continues where its record ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated

from pydantic import Field, JsonValue

from hubbub.agents.models.base import Completion, OnDelta, ToolSpec
from hubbub.agents.prompt.budget import ContextBudget, FixedMessage
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.prompt_client import DescribeTools, PromptClient
from hubbub.agents.tools.approval import Parked
from hubbub.agents.tools.base import CallSite, ReadingTool, Tool, ToolFailed, UntrustedText
from hubbub.agents.tools.hub import HubCaller
from hubbub.agents.tools.schema import ToolArguments
from hubbub.agents.tools.standard_tools import (
    ASK_HUMAN,
    CHECK,
    DECLINE,
    FINISH,
    FORK,
    SHOW_PLAN,
    SILENT_FINISH,
    WAIT_FOR,
    ExternalToolProxy,
)
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.driver import Driver, StepCalls, TrustState
from hubbub.agents.turn.loop import Command, End, Loop, LoopRules, Park, QueryModel
from hubbub.agents.turn.outbox import untrusted_mark
from hubbub.agents.turn.steps import (
    MAX_HELPER_DEPTH,
    MAX_HELPERS,
    NOT_JOINED,
    StepRange,
    fork_calls,
    running_helpers,
)
from hubbub.config.agents import ForkConfig
from hubbub.errors import OperationError
from hubbub.ids import write_id
from hubbub.logs import get_logger
from hubbub.protocol.turns import Step

__all__ = ["ForkTool", "HelperHost"]

_TURN = StepRange()
_MOST_SHOWN = 8000
"""Characters of a goal or a result that are posted."""

log = get_logger(__name__)


class _ForegroundFork(ToolArguments):
    """The arguments of `fork`, where nothing may run in the background."""

    goal: Annotated[str, Field(min_length=1)]
    """What is to be found out or done, and what the result must contain."""
    context: str = ""
    """All that is needed of what you know: nothing else is seen, not even the conversation."""
    timeout: Annotated[float | None, Field(gt=0)] = None
    """Seconds that it may take; left out: as long as is allowed."""


class Fork(_ForegroundFork):
    """The arguments of `fork`."""

    background: bool = False
    """Go on with your own work meanwhile; you are given its result when it is there."""


class _Helper(ToolArguments):
    """The arguments of `wait_for` and `check`."""

    helper: Annotated[int, Field(ge=1)]
    """Its number."""


class _HostedTool(ReadingTool):
    """Base of the tools for sub-agents, whose own calls pass the same checks as the turn's."""

    def __init__(self, spec: ToolSpec, timeout: float | None, hosts: Mapping[str, HelperHost]):
        self.spec, self.name, self.timeout, self._hosts = spec, spec.name, timeout, hosts

    def _host(self, site: CallSite) -> HelperHost:
        host = self._hosts.get(site.turn)
        if host is None:
            raise ToolFailed("there are no helpers here", error="forbidden")
        return host


class ForkTool(_HostedTool):
    """The tool. The host of each turn is set by `hosted`."""

    def __init__(self, config: ForkConfig, *, background: bool = True):
        """`background`: whether sub-agents may run while the turn continues."""
        self.config = config
        self._in: dict[str, HelperHost] = {}
        takes = Fork if background else _ForegroundFork
        spec = takes.spec_of(
            FORK,
            "Give a part of the work to a helper that works on it alone and comes back with one "
            "result. Call it several times in one step for parts that do not need each other. "
            f"It may take {config.timeout:g} seconds.",
        )
        within = config.timeout + 5.0  # the sub-agent's own timeout gives the better message
        super().__init__(spec, within, self._in)
        self.tools: tuple[Tool, ...] = (self,)
        """The tools that an agent with this one has."""
        if background:
            self.tools = (self, WaitFor(within, self._in), Check(self._in))

    @contextlib.asynccontextmanager
    async def hosted(self, turn: str, host: HelperHost) -> AsyncIterator[None]:
        """Within, sub-agents of that turn run in `host`."""
        self._in[turn] = host
        try:
            host.restart_all()
            yield
        finally:
            del self._in[turn]
            await host.end_all()

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The sub-agent's result, or a note that it is running. Raises `ToolFailed`."""
        return await self._host(site).run(Fork.read(arguments), site)


class WaitFor(_HostedTool):
    """`wait_for`: waits for the result of a sub-agent in the background."""

    def __init__(self, timeout: float, hosts: Mapping[str, HelperHost]):
        about = "Wait for a helper in the background, and get its result."
        super().__init__(_Helper.spec_of(WAIT_FOR, about), timeout, hosts)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Raises `ToolFailed` as the sub-agent's own call would."""
        return await self._host(site).wait_for(_Helper.read(arguments).helper, site)


class Check(_HostedTool):
    """`check`: the progress of a sub-agent in the background."""

    def __init__(self, hosts: Mapping[str, HelperHost]):
        about = "See how far a helper in the background is, without waiting for it."
        super().__init__(_Helper.spec_of(CHECK, about), None, hosts)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Raises `ToolFailed` if there is no such sub-agent."""
        return self._host(site).progress(_Helper.read(arguments).helper, site)


@dataclass(slots=True)
class HelperHost:
    """Runs the sub-agents of one turn."""

    config: ForkConfig
    calls: StepCalls
    """The turn's: sub-agents use the same tools and the same record."""
    prompt_client: PromptClient
    """The turn's: sub-agents use the same model and the same window."""
    loop: Loop
    """The turn's."""
    recorded: Sequence[Step]
    """Recorded steps of sub-agents that are restarted, after a crash or after being parked."""
    caller: HubCaller
    shows: bool = False
    """Whether goals and results can be posted without waking an agent."""
    _loops: dict[StepRange, Loop] = field(default_factory=dict)
    _tasks: dict[StepRange, asyncio.Task[str]] = field(default_factory=dict)
    """Sub-agents in the background."""

    def __post_init__(self) -> None:
        self.loop.helper_tokens = sum(step.tokens_in + step.tokens_out for step in self.recorded)

    async def run(self, fork: Fork, site: CallSite) -> str:
        """Run a sub-agent, or start it in the background. Raises `ToolFailed`."""
        parent, loop = self._parent(site)
        offset = parent.base if parent.depth else 0
        ordinal = fork_calls(loop.steps).index((site.step - offset, site.index)) + 1
        if ordinal > self.config.most:
            message = f"a turn has at most {self.config.most} helpers; do the rest yourself"
            raise ToolFailed(message, error="too_many_helpers")
        if not fork.background:
            return await self._run(fork, parent.child(ordinal), ordinal, site.untrusted)
        self._begin(fork, parent.child(ordinal), ordinal, site.untrusted)
        return (
            f"helper {ordinal} is at work. Go on; you are given its result when it is there. Call "
            f"`{WAIT_FOR}` with helper {ordinal} when you can do nothing without it"
        )

    async def _run(self, fork: Fork, place: StepRange, ordinal: int, untrusted: bool) -> str:
        within = min(fork.timeout or self.config.timeout, self.config.timeout)
        name = f"helper {ordinal}"
        await self._post(place, 0, f"{name}, goal", fork.goal, untrusted=untrusted)
        try:
            async with asyncio.timeout(within) as limit:
                result = await self._result(fork, place, untrusted)
        except ToolFailed as exc:
            read = untrusted or exc.untrusted
            await self._post(place, 1, f"{name}, no result", exc.message, untrusted=read)
            raise
        except TimeoutError as exc:
            if not limit.expired():
                raise
            message = f"failed: timeout: it had no result after {within:g} s"
            await self._post(place, 1, f"{name}, no result", message)
            raise ToolFailed(message, error="timeout") from exc
        finally:
            self._loops.pop(place, None)
        read = untrusted or isinstance(result, UntrustedText)
        await self._post(place, 1, f"{name}, result", result, untrusted=read)
        return result

    def _parent(self, site: CallSite) -> tuple[StepRange, Loop]:
        """The caller: the turn itself, or a sub-agent."""
        running = {StepRange(): self.loop, **self._loops}
        return next((p, lp) for p, lp in running.items() if p.holds(site.step))

    # In the background ---------------------------------------------------------------------------

    def _begin(self, fork: Fork, place: StepRange, ordinal: int, untrusted: bool) -> None:
        work = self._run(fork, place, ordinal, untrusted)
        self._tasks[place] = asyncio.create_task(work, name=f"helper {ordinal}")

    def restart_all(self, parent: StepRange = _TURN) -> None:
        """Restart the sub-agents whose end is not in the record of their parent."""
        for ordinal in running_helpers(self._loop(parent).steps):
            self._restart(parent, ordinal)

    def _restart(self, parent: StepRange, ordinal: int) -> None:
        """Continue from where its record ends, after a crash or after it was parked."""
        steps = self._loop(parent).steps
        n, index = fork_calls(steps)[ordinal - 1]
        call = next(step.calls[index] for step in steps if step.n == n)
        fork = Fork.model_validate(call.ran_with)
        self._begin(fork, parent.child(ordinal), ordinal, self.calls.trust.untrusted)

    def _loop(self, place: StepRange) -> Loop:
        return self._loops[place] if place.depth else self.loop

    async def wait_for(self, ordinal: int, site: CallSite) -> str:
        """A sub-agent's result. Raises `ToolFailed`, and `Parked` while it waits for a person."""
        task, place = self._task(ordinal, site)
        if _parked(task):  # it may have been decided by now
            self._restart(self._parent(site)[0], ordinal)
        return await asyncio.shield(self._tasks[place])

    def progress(self, ordinal: int, site: CallSite) -> str:
        """Its progress, as text for the model. Raises `ToolFailed`."""
        task, place = self._task(ordinal, site)
        if _parked(task):
            return f"helper {ordinal} waits for a person"
        if task.done():
            return f"helper {ordinal} has ended; its result comes next"
        steps = self._loops[place].steps if place in self._loops else []
        names = [call.name for step in steps[-1:] for call in step.calls]
        last = f", the last one: {', '.join(names)}" if names else ""
        return f"helper {ordinal} is at work: {len(steps)} steps so far{last}"

    def _task(self, ordinal: int, site: CallSite) -> tuple[asyncio.Task[str], StepRange]:
        parent, loop = self._parent(site)
        place = parent.child(ordinal)
        if ordinal not in running_helpers(loop.steps) or place not in self._tasks:
            near = [str(n) for n in running_helpers(loop.steps)]
            message = f"no helper {ordinal} is at work in the background"
            raise ToolFailed(message, error=NOT_JOINED, near=near)
        return self._tasks[place], place

    def join(self, parent: StepRange = _TURN) -> list[Command]:
        """The commands for sub-agents of a loop that have ended and are not joined yet."""
        loop, ended = self._loop(parent), list[int]()
        for ordinal in running_helpers(loop.steps):
            task = self._tasks[parent.child(ordinal)]
            if _parked(task):  # it may have been decided by now
                self._restart(parent, ordinal)
            elif task.done():
                ended.append(ordinal)
        return loop.join(ended) if ended else []

    async def before_stop(self, stop: End | Park, parent: StepRange = _TURN) -> None:
        """The turn, or a sub-agent, is about to stop. If it ends, its sub-agents in the background
        end with it; if it is parked, it waits for them, so that no call is cut off.
        """
        places = map(parent.child, range(1, MAX_HELPERS + 1))
        mine = [self._tasks[place] for place in places if place in self._tasks]
        if not mine:
            return
        if isinstance(stop, End):
            await _cancelled(mine)
        else:
            await asyncio.wait(mine)

    async def end_all(self) -> None:
        """The turn ended, or the process is shutting down."""
        await _cancelled(self._tasks.values())

    # The sub-agent -------------------------------------------------------------------------------

    async def _result(self, fork: Fork, place: StepRange, untrusted: bool) -> str:
        """`untrusted`: the turn had read untrusted content when it started the sub-agent. Raises
        `Parked` when a call waits for a person.
        """
        names = self._names(place)
        mine = [s for s in self.recorded if place.holds(s.n)]
        steps = [s.model_copy(update={"n": s.n - place.base}) for s in mine]
        rules = LoopRules(max_steps=self.config.max_steps, answers=False)
        loop = self._loops[place] = Loop(rules, names, steps, parent=self.loop)
        if place.depth < MAX_HELPER_DEPTH:
            self.restart_all(place)
        calls = replace(self.calls, trust=TrustState(untrusted, steps))
        client = self._prompt_client(fork, names)

        async def ask(asked: QueryModel, hear: OnDelta | None) -> Completion:
            return await client.ask(loop.steps, hear, n=asked.n + place.base)

        join, before_stop = partial(self.join, place), partial(self.before_stop, parent=place)
        end = await Driver(loop, calls, ask, place.base, join, before_stop).drive()
        if isinstance(end, Park):
            others = (step for step in self.recorded if not place.holds(step.n))
            waits = (s.model_copy(update={"n": s.n + place.base}) for s in loop.steps)
            self.recorded = (*others, *waits)
            raise Parked(*end.approvals)
        read = calls.trust.untrusted
        if end.outcome == "finished":
            return UntrustedText(end.reason or "done") if read else end.reason or "done"
        message = f"failed: {end.outcome}: {end.reason}"
        message = f"{message}; it said: {end.text}" if end.text else message
        raise ToolFailed(message, error=end.outcome, untrusted=read)

    def _prompt_client(self, fork: Fork, names: Collection[str]) -> PromptClient:
        turn, message = self.prompt_client, FixedMessage(_prompt(fork))
        rules, writes = turn.context_budget.rules, self.calls.toolbox.writing
        return replace(
            turn,
            offers=_tools_for(self.calls.toolbox, names),
            system=f"{turn.system}\n\n{_HELPER_INSTRUCTION}",
            context_budget=ContextBudget(rules, message, writes),
            form=None,
            scratchpad=True,
        )

    def _names(self, place: StepRange) -> tuple[str, ...]:
        hidden = {ASK_HUMAN, DECLINE, SHOW_PLAN}  # these would speak in the turn's thread
        if place.depth >= self.config.depth:
            hidden |= {FORK, WAIT_FOR, CHECK}
        entries = self.calls.toolbox.registry.entries
        hidden.update(entry.name for entry in entries if isinstance(entry.tool, ExternalToolProxy))
        return tuple(name for name in self.calls.toolbox.names if name not in hidden)

    # Its thread
    # ------------------------------------------------------------------------------------

    async def _post(
        self, place: StepRange, nth: int, head: str, text: str, *, untrusted: bool = False
    ) -> None:
        """Post into the sub-agent's thread. This is only for people to read."""
        if not self.shows:
            return
        plan = self.calls.recorder.plan
        woken_by = plan.incoming[-1].id
        quiet = text[:_MOST_SHOWN].replace("`", "'")
        try:
            await self.caller.call(
                "reply",
                cid=write_id(plan.id, place.base, nth),
                cause=woken_by,  # not the turn: it does not answer the person who waits
                message_id=woken_by,
                text=f"{head}:\n```\n{quiet}\n```",
                **untrusted_mark(untrusted),
            )
        except OperationError as exc:
            log.info("a helper's thread has no place", turn=plan.id, error=exc.message)


def _parked(task: asyncio.Task[str]) -> bool:
    """Whether it has stopped to wait for a person."""
    return task.done() and not task.cancelled() and isinstance(task.exception(), Parked)


async def _cancelled(tasks: Iterable[asyncio.Task[str]]) -> None:
    """Cancel all of them and wait; their results are discarded."""
    for task in (tasks := [*tasks]):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _tools_for(toolbox: Toolbox, names: Collection[str]) -> DescribeTools:
    """The tools described to a sub-agent."""

    def described(steps: Sequence[Step]) -> Sequence[ToolSpec]:
        specs = [spec for spec in toolbox.described(steps) if spec.name in names]
        return [SILENT_FINISH if spec.name == FINISH else spec for spec in specs]

    return described


_HELPER_INSTRUCTION = (
    "You are a helper: another part of you has given you one goal. Nobody talks to you, and you "
    "cannot ask back. When you are done, or cannot get it done, call `finish`: its `reason` is the "
    "only thing of your work that is read, so put the whole result there."
)


def _prompt(fork: Fork) -> str:
    """The sub-agent's user message. It may quote others, so it is escaped."""
    parts = [f"<goal>{escaped(fork.goal)}</goal>"]
    if fork.context:
        parts.append(f"<context>{escaped(fork.context)}</context>")
    return "\n".join([*parts, "", "Reach the goal, then call `finish` with the result."])
