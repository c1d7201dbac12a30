"""Stops, and lets go on: what is meant, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hubbub.cli.control import deeds, told
from hubbub.cli.control.state import stopped_words
from hubbub.cli.control.told import Answer
from hubbub.errors import UserError
from hubbub.protocol.control import Breakers, BreakerState, Stopped, Stops
from hubbub.protocol.operations import Done, Turns, TurnSummary

if TYPE_CHECKING:
    from hubbub.cli.control.asker import Asker

__all__ = ["Halting"]


class Halting:
    """Stops turns, threads, agents, everything, and lets them go on."""

    def __init__(self, asker: Asker):
        self._asker = asker

    async def do(self, deed: deeds.Stop | deeds.Resume | deeds.Release) -> Answer:
        """Do it. Raises `UserError` or `OperationError`."""
        match deed:
            case deeds.Stop():
                return await self._stop(deed)
            case deeds.Resume(None):
                return await self._resume(await self._only_stop())
            case deeds.Resume():
                return await self._resume(deed)
        thread = await self._latched(deed.thread)
        was = [each.thread_id for each in await self._breakers()]
        heard = self._asker.known.charge.tells_end("breaker", thread)
        await self._asker.ask(Done, "release_breaker", thread=thread)
        if thread not in was:
            return told.good({"released": thread}, f"{self._asker.shown(thread)} was not latched")
        line = f"{self._asker.shown(thread)} is released"
        return told.good({"released": thread}, line, heard=heard)

    async def _stop(self, deed: deeds.Stop) -> Answer:
        scope, target, reason = deed.scope or "turn", deed.target, deed.reason
        word, _, rest = reason.partition(" ")
        if scope == "turn" and target is None and self._asker.names.is_agent(word):
            target, reason = word, rest.strip()
        what = await self._target(scope, target)
        done = await self._asker.ask(Stopped, "stop", scope=scope, target=what, reason=reason)
        if scope == "turn" and done.target is not None:
            self._asker.known.activities.ended(done.target)
        return told.good(done, stopped_words(done, self._asker.shown, self._asker.typed))

    async def _resume(self, deed: deeds.Resume) -> Answer:
        scope = deed.scope or "all"
        what = await self._target(scope, deed.target)
        heard = self._asker.known.charge.tells_end(scope, what)
        await self._asker.ask(Done, "resume", scope=scope, target=what)
        line = f"{self._named(scope, what)} may go on"
        return told.good({"resumed": scope, "target": what}, line, heard=heard)

    def _named(self, scope: str | None, target: str | None) -> str:
        if target is None:
            return "everything"
        return self._asker.shown(target) if scope == "thread" else target

    async def _target(self, scope: str, target: str | None) -> str | None:
        """What a stop is about, by its id."""
        match scope:
            case "all":
                if target is not None:
                    raise UserError("`all` is everything; it takes no name")
                return None
            case "agent":
                return self._asker.names.agent(_given(target, "agent"))
            case "thread":
                return self._thread(target)
            case _:
                return await self._turn(target)

    def _thread(self, target: str | None) -> str:
        if target is None and self._asker.here:
            return self._asker.known.current
        return self._asker.names.thread(_given(target, "thread"))

    async def _turn(self, target: str | None) -> str:
        """A turn by its id, by its agent, or the one that runs in the open thread."""
        if target is not None and target.lstrip("@") not in self._asker.known.participants:
            return target
        if target is None and not self._asker.here:
            raise UserError("name the turn or its agent: `hubbub turns` lists them")
        agent = None if target is None else self._asker.names.agent(target)
        running = await self._running(agent)
        if len(running) != 1:
            who = f"of {agent}" if agent else "in this thread"
            listed = ", ".join(sorted(running))
            raise UserError(
                f"several turns {who} run: {listed}; name one" if running
                else f"no turn {who} runs"
            )  # fmt: skip
        return running.pop()

    async def _running(self, agent: str | None) -> set[str]:
        """The turns that run: of an agent, or in the open thread."""
        if agent is None and (
            seen := self._asker.known.activities.turns(self._asker.known.current)
        ):
            return seen
        found = await self._asker.ask(Turns, "list_turns", agent=agent, limit=200)
        return {turn.id for turn in found.turns if turn.outcome is None and self._is(turn, agent)}

    def _is(self, turn: TurnSummary, agent: str | None) -> bool:
        return turn.agent == agent if agent else turn.thread_id == self._asker.known.current

    async def _only_stop(self) -> deeds.Resume:
        found = (await self._asker.ask(Stops, "list_stops")).stops
        if len(found) != 1:
            lists = f"name one; {self._asker.typed('stops')} lists them"
            raise UserError(
                f"{len(found)} things are stopped: {lists}" if found else "nothing is stopped"
            )
        return deeds.Resume(found[0].scope, found[0].target)

    async def _breakers(self) -> tuple[BreakerState, ...]:
        return (await self._asker.ask(Breakers, "list_breakers")).latched

    async def _latched(self, thread: str | None) -> str:
        if thread is not None:
            return self._asker.names.thread(thread)
        threads = [latched.thread_id for latched in await self._breakers()]
        if self._asker.here and self._asker.known.current in threads:
            return self._asker.known.current
        if len(threads) != 1:
            listed = ", ".join(map(self._asker.shown, threads))
            raise UserError(f"name one of {listed}" if threads else "nothing is latched")
        return threads[0]


def _given(target: str | None, what: str) -> str:
    if target is None:
        raise UserError(f"name the {what}")
    return target
