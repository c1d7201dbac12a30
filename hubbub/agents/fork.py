"""`fork`: a model gives a part of its work to a sub-agent, whose one result is the call's result.

A sub-agent is the same model with the same tools, but with nothing in front of it but a goal and
what it is told of the context: neither the conversation nor the steps so far. It runs within the
call, so whatever ends the turn ends it, and it ends in one of two ways:

    finish(reason)                            the reason is the result
    too many steps, no call, a model error,   the result is an error, `failed: …`
    or no time left (`failed: timeout`)

While one of its calls waits for a person, so does the turn: both stop, and go on when that is
decided.

It has a thread of its own: goal and result are posted as replies to the message that woke the
agent, where that wakes nobody (no other agent is in that direct thread; mentions are put in code).
Its steps are recorded in the turn under numbers of their own (`Place`), so that a sub-agent that
was interrupted by a crash goes on where its record ends.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, ValidationError

from hubbub.agents.asking import Asker, Offers
from hubbub.agents.models.base import Answer, OnDelta, ToolSpec
from hubbub.agents.prompt.budget import ContextRules, Fitting, FixedMessage
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.tools.approval import Parked
from hubbub.agents.tools.base import CallSite, Confirm, FromOutside, ToolFailed
from hubbub.agents.tools.external import HandedOver
from hubbub.agents.tools.hub import Caller
from hubbub.agents.tools.schema import without_titles, wrong_arguments
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.ways_out import (
    ASK_HUMAN,
    DECLINE,
    FINISH,
    FORK,
    SHOW_PLAN,
    SILENT_FINISH,
)
from hubbub.agents.turn.driver import Calls, Driver, Taint
from hubbub.agents.turn.loop import AskModel, Loop, Park, Rules
from hubbub.agents.turn.recording import Place, forks
from hubbub.agents.turn.voice import marks
from hubbub.config.agents import ForkConfig
from hubbub.errors import OperationError
from hubbub.field_docs import Documented
from hubbub.ids import write_id
from hubbub.logs import get_logger
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import Step

__all__ = ["ForkTool", "Host"]

_MOST_SHOWN = 8000
"""Characters of a goal or a result that are posted."""

log = get_logger(__name__)


class Fork(Documented):
    """The arguments of `fork`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    goal: Annotated[str, Field(min_length=1)]
    """What is to be found out or done, and what the result must contain."""
    context: str = ""
    """All that is needed of what you know: nothing else is seen, not even the conversation."""
    timeout: Annotated[float | None, Field(gt=0)] = None
    """Seconds that it may take; left out: as long as is allowed."""


class ForkTool:
    """The tool. What it runs in is known for each turn: see `hosted`."""

    permission: Permission = "read"  # what a sub-agent does passes the same gate by itself
    confirm: Confirm = False
    idempotent = True  # it goes on where its record ends
    ordered = False
    speaks = False
    name = FORK

    def __init__(self, config: ForkConfig):
        self.config = config
        self.timeout = config.timeout + 5.0  # its own word about time tells more
        self._hosts: dict[str, Host] = {}
        self.spec = ToolSpec(
            FORK,
            "Give a part of the work to a helper that works on it alone and comes back with one "
            "result. Call it several times in one step for parts that do not need each other. "
            f"It may take {config.timeout:g} seconds.",
            without_titles(Fork.model_json_schema()),
        )

    @contextlib.contextmanager
    def hosted(self, turn: str, host: Host) -> Iterator[None]:
        """Within, sub-agents of that turn run in `host`."""
        self._hosts[turn] = host
        try:
            yield
        finally:
            del self._hosts[turn]

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """The sub-agent's result. Raises `ToolFailed` when it has none."""
        try:
            fork = Fork.model_validate(arguments)
        except ValidationError as exc:
            raise ToolFailed(wrong_arguments(exc), error="invalid_arguments", retry=True) from exc
        host = self._hosts.get(site.turn)
        if host is None:
            raise ToolFailed("there are no helpers here", error="forbidden")
        return await host.run(fork, site)


@dataclass(slots=True)
class Host:
    """What the sub-agents of one turn run in."""

    config: ForkConfig
    calls: Calls
    """The turn's: sub-agents have the same tools, and the same record."""
    asker: Asker
    """What the turn asks its model with: sub-agents ask the same model, in the same window."""
    loop: Loop
    """The turn's."""
    recorded: Sequence[Step]
    """Steps of sub-agents that an earlier process had recorded."""
    caller: Caller
    shows: bool = False
    """Whether goals and results may be posted: nobody is woken by it."""
    _loops: dict[Place, Loop] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.loop.apart = sum(step.tokens_in + step.tokens_out for step in self.recorded)

    async def run(self, fork: Fork, site: CallSite) -> str:
        """Run a sub-agent. Raises `ToolFailed`."""
        place, ordinal = self._place(site)
        within = min(fork.timeout or self.config.timeout, self.config.timeout)
        name = f"helper {ordinal}"
        await self._post(place, 0, f"{name}, goal", fork.goal, outside=site.outside)
        try:
            async with asyncio.timeout(within) as limit:
                result = await self._result(fork, place, site.outside)
        except ToolFailed as exc:
            read = site.outside or exc.outside
            await self._post(place, 1, f"{name}, no result", exc.message, outside=read)
            raise
        except TimeoutError as exc:
            if not limit.expired():
                raise
            told = f"failed: timeout: it had no result after {within:g} s"
            await self._post(place, 1, f"{name}, no result", told)
            raise ToolFailed(told, error="timeout") from exc
        finally:
            self._loops.pop(place, None)
        read = site.outside or isinstance(result, FromOutside)
        await self._post(place, 1, f"{name}, result", result, outside=read)
        return result

    def _place(self, site: CallSite) -> tuple[Place, int]:
        """Where the call's sub-agent is numbered, and which of its parent's it is."""
        running = {Place(): self.loop, **self._loops}
        parent, loop = next((p, lp) for p, lp in running.items() if p.holds(site.step))
        offset = parent.base if parent.depth else 0
        ordinal = forks(loop.steps).index((site.step - offset, site.index)) + 1
        if ordinal > self.config.most:
            words = f"a turn has at most {self.config.most} helpers; do the rest yourself"
            raise ToolFailed(words, error="too_many_helpers")
        return parent.child(ordinal), ordinal

    # The sub-agent -------------------------------------------------------------------------------

    async def _result(self, fork: Fork, place: Place, outside: bool) -> str:
        """`outside`: the turn had read something from outside when it began the sub-agent. Raises
        `Parked` when a call of its own waits for a person.
        """
        names = self._names(place)
        mine = [s for s in self.recorded if place.holds(s.n)]
        steps = [s.model_copy(update={"n": s.n - place.base}) for s in mine]
        rules = Rules(max_steps=self.config.max_steps, answers=False)
        loop = self._loops[place] = Loop(rules, names, steps, parent=self.loop)
        calls = replace(self.calls, taint=Taint(outside, steps))
        asker = self._asker(fork, names)

        async def ask(asked: AskModel, hear: OnDelta | None) -> Answer:
            return await asker.ask(loop.steps, hear, n=asked.n + place.base)

        end = await Driver(loop, calls, ask, place.base).drive()
        if isinstance(end, Park):
            raise Parked(*end.approvals)
        read = calls.taint.outside
        if end.outcome == "finished":
            return FromOutside(end.reason or "done") if read else end.reason or "done"
        words = f"failed: {end.outcome}: {end.reason}"
        words = f"{words}; it said: {end.text}" if end.text else words
        raise ToolFailed(words, error=end.outcome, outside=read)

    def _asker(self, fork: Fork, names: Collection[str]) -> Asker:
        turn, prompt = self.asker, _prompt(fork)
        rules = turn.fitting.rules if turn.fitting is not None else ContextRules()
        return replace(
            turn,
            offers=_part(self.calls.toolbox, names),
            system=f"{turn.system}\n\n{_TOLD}",
            prompt=prompt,
            fitting=Fitting(rules, FixedMessage(prompt), self.calls.toolbox.writing),
            form=None,
            scratchpad=True,
        )

    def _names(self, place: Place) -> tuple[str, ...]:
        hidden = {ASK_HUMAN, DECLINE, SHOW_PLAN}  # they would speak in the turn's thread
        if place.depth >= self.config.depth:
            hidden.add(FORK)
        entries = self.calls.toolbox.registry.entries
        hidden.update(entry.name for entry in entries if isinstance(entry.tool, HandedOver))
        return tuple(name for name in self.calls.toolbox.names if name not in hidden)

    # Its thread ----------------------------------------------------------------------------------

    async def _post(
        self, place: Place, nth: int, head: str, text: str, *, outside: bool = False
    ) -> None:
        """Post into the sub-agent's thread. It is for people to look at: nothing depends on it."""
        if not self.shows:
            return
        plan = self.calls.journal.plan
        woken_by = plan.incoming[-1].id
        quiet = text[:_MOST_SHOWN].replace("`", "'")
        try:
            await self.caller.call(
                "reply",
                cid=write_id(plan.id, place.base, nth),
                cause=woken_by,  # not the turn: it is no answer to whoever waits for one
                message_id=woken_by,
                text=f"{head}:\n```\n{quiet}\n```",
                **marks(outside),
            )
        except OperationError as exc:
            log.info("a helper's thread has no place", turn=plan.id, error=exc.message)


def _part(toolbox: Toolbox, names: Collection[str]) -> Offers:
    """What a sub-agent is told of."""

    def described(steps: Sequence[Step]) -> Sequence[ToolSpec]:
        specs = [spec for spec in toolbox.described(steps) if spec.name in names]
        return [SILENT_FINISH if spec.name == FINISH else spec for spec in specs]

    return described


_TOLD = (
    "You are a helper: another part of you has given you one goal. Nobody talks to you, and you "
    "cannot ask back. When you are done, or cannot get it done, call `finish`: its `reason` is the "
    "only thing of your work that is read, so put the whole result there."
)


def _prompt(fork: Fork) -> str:
    """What the sub-agent is shown. It may hold what others have said, and is escaped like that."""
    parts = [f"<goal>{escaped(fork.goal)}</goal>"]
    if fork.context:
        parts.append(f"<context>{escaped(fork.context)}</context>")
    return "\n".join([*parts, "", "Reach the goal, then call `finish` with the result."])
