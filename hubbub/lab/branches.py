"""Branches of a network: separate continuations from one of its messages, with other prompts or
models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from hubbub.clock import SystemClock
from hubbub.config.explain import valid
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig
from hubbub.config.problems import nearest
from hubbub.errors import UserError
from hubbub.lab.networks import MOST_S, NetworkRun
from hubbub.lab.recordings import Recording, Tape
from hubbub.network.hub import Hub
from hubbub.network.queries import InteractionMessages, PromptsOf, Query, TurnsById, WakesAt
from hubbub.network.server import serve_hub
from hubbub.network.services.turns.ending import turn_record
from hubbub.network.store.branch import BranchStore
from hubbub.network.store.location import parse_url
from hubbub.people.figures import outcome_text
from hubbub.protocol.agents import Branched, BranchedText, BranchSide, LackingResult
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Turn, TurnEnd
from hubbub.web.site import About, Site
from hubbub.wording import shortened

__all__ = ["beginning", "branched", "served", "with_change", "with_model"]


# Networks with one change.


def with_model(loaded: LoadedConfig, model: str) -> LoadedConfig:
    """The network with this model for all agents."""
    agents = {
        name: loaded.file.agent(name).model_copy(update={"model": model, "models": {}})
        for name in loaded.file.agents
    }
    return replace(loaded, file=loaded.file.model_copy(update={"agents": agents}))


def with_change(loaded: LoadedConfig, agent: str, key: str, value: JsonValue) -> LoadedConfig:
    """The network with another value for a key of an agent. Raises `UserError`."""
    agents = loaded.file.agents
    if agent not in agents:
        raise UserError(f"there is no agent '{agent}'{nearest(agent, agents)}")
    given = agents[agent].model_dump(mode="json", by_alias=True, exclude_unset=True)
    if key == "instruction":
        given.pop("prompt", None)
    changed = valid(AgentConfig, {**given, key: value}, f"agents.{agent}")
    file = loaded.file.model_copy(update={"agents": {**agents, agent: changed}})
    return replace(loaded, file=file)


Read = Callable[[Query[Any]], Awaitable[Any]]
_MAX_REASON = 500
_CAUSE = re.compile(r"(?:^|-)m(\d+)$")


class _BranchClock:
    """Continues from the message's time, so that deadlines and durations stay the same."""

    monotonic = staticmethod(SystemClock.monotonic)

    def __init__(self, store: BranchStore):
        self._store = store
        self._since: float | None = None

    def now(self) -> float:
        if self._since is None:  # the store is open when the hub first reads the clock
            self._since = self.monotonic() - self._store.sent_at.timestamp()
        return self.monotonic() - self._since


async def beginning(loaded: LoadedConfig, seq: int) -> int:
    """The start of a branch at this message: the message itself, or the one that it answers if it
    woke no agent. Raises `UserError` if nothing would continue."""
    at: int | None = seq
    while at:
        store = BranchStore(parse_url(loaded.file.network.store), at)
        await store.open()
        try:
            woken = await store.read(WakesAt([at]))
            message = await _message(store, at)
        finally:
            await store.close()
        if any(wake.reply is not None for wake in woken.values()):
            return at
        cause = _CAUSE.search(message.cause_id or "")
        at = int(cause[1]) if cause else None
    raise UserError(f"m{seq} woke no agent and answers no message, so it cannot start a branch")


@asynccontextmanager
async def branched(run: NetworkRun, at: int) -> AsyncIterator[tuple[Hub, Branched]]:
    """Continue the run's network from the message at `at`, which woke an agent, until its
    interaction ends. The branch keeps running within the context.

    Models and tools repeat their recorded answers to identical requests. Raises the errors of
    `NetworkRun.run`.
    """
    store = BranchStore(parse_url(run.loaded.file.network.store), at)
    async with run.hub(store, _BranchClock(store)) as hub:
        interaction = (await _message(store, at)).interaction_id
        span = _Span(interaction, at)
        then = await span.read(store.original, store.original_head)
        run.tape = Tape(then)
        async with run.agents(hub) as (_, wait_for_end):
            async with asyncio.timeout(MOST_S):
                await wait_for_end(interaction)
            now = await span.read(store.read, hub.kernel.log.head)
            end = run.end
            lacking = (
                LackingResult(tool=end.lacking, arguments=dict(end.arguments))
                if end is not None and end.lacking is not None
                else None
            )
            branch = _side(now) if lacking is None else _side(now, failures=False)
            yield hub, Branched(message=f"m{at}", then=_side(then), now=branch, lacking=lacking)


@asynccontextmanager
async def served(hub: Hub) -> AsyncIterator[str]:
    """Serve the hub to the page and clients of this machine; yields its address."""
    file = hub.file
    pages = Site(About(f"{file.network.name} (branch)", "open", tuple(file.humans)))
    async with serve_hub(hub, "127.0.0.1:0", pages=pages) as listening:
        yield listening.url.replace("ws", "http", 1)


async def _message(store: BranchStore, seq: int) -> Message:
    return Message.model_validate_json(await store.message(seq) or b"")


@dataclass(frozen=True, slots=True)
class _Span:
    """An interaction, starting at one of its messages."""

    interaction: str
    at: int

    async def read(self, read: Read, head: int) -> Recording:
        """Read it from a store."""
        bodies, after = list[bytes](), self.at - 1
        while after < head:
            page = await read(InteractionMessages(self.interaction, after, head))
            bodies += [body for _, body in page.rows]
            after = page.upto
        messages = [Message.model_validate_json(body) for body in bodies]
        wakes = await read(WakesAt([message.seq for message in messages]))
        turn_ids = {wake.taken for wake in wakes.values() if wake.taken}
        stored = await read(TurnsById(sorted(turn_ids)))
        turns = [turn_record(turn, await read(PromptsOf(turn.id))) for turn in stored]
        return Recording(messages=tuple(messages), turns=tuple(turns))


def _side(course: Recording, *, failures: bool = True) -> BranchSide:
    """The figures, the messages and, with `failures`, how each turn ended that failed."""
    turns, messages = course.turns, course.messages[1:]
    failed = [
        _failure(turn, turn.end)
        for turn in turns
        if failures and turn.end is not None and turn.end.outcome != "finished"
    ]
    ends = [turn.ended_at or turn.started_at for turn in turns]
    began = min((turn.started_at for turn in turns), default=None)
    costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
    return BranchSide(
        messages=len(messages),
        turns=len(turns),
        tokens_in=sum(turn.tokens_in for turn in turns),
        tokens_out=sum(turn.tokens_out for turn in turns),
        cost_usd=round(sum(costs), 12) if costs else None,
        seconds=round((max(ends) - began).total_seconds(), 3) if began is not None else 0.0,
        said=tuple(
            BranchedText(sender=each.sender_id, thread_id=each.thread_id, text=each.text)
            for each in messages
        )
        + tuple(failed),
    )


def _failure(turn: Turn, end: TurnEnd) -> BranchedText:
    ended = outcome_text(end.outcome, shortened(end.reason, _MAX_REASON))
    return BranchedText(sender="hub", thread_id=turn.start.thread_id, text=f"{turn.agent} {ended}")
