"""Injects a fault at the nth await of a turn, counted over all of its tasks.

    points = Points()
    with points.watching():
        points.strike_at(7, lambda turn: turn.cancel())
        ...

Every task of a turn, and every task that those start, runs inside a driver that counts its
suspensions. At the chosen count it calls `strike`, while the task is being suspended.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any
from unittest import mock

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.runner import AgentRunner
from hubbub.protocol.turns import Turn
from tests.interaction.agent_harness import Harness
from tests.interaction.peers import soon

__all__ = ["Points", "RunningTurn"]

_inside: ContextVar[bool] = ContextVar("inside_a_turn", default=False)


@dataclass(frozen=True)
class RunningTurn:
    """The turn that was struck."""

    runner: AgentRunner
    plan: TurnPlan

    def cancel(self) -> None:
        """Cancel the turn, like a person who stops it."""
        self.runner.cancel(self.plan.id, "struck")


class Points:
    """Counts the suspensions of an agent's turns since the last `strike_at`."""

    def __init__(self, agent: str = "bot") -> None:
        self._agent = agent
        self.count = 0
        self.tasks: list[asyncio.Task[Any]] = []
        """The tasks of the turns, and all tasks that they started."""
        self.where = ""
        """The place of the strike, for the message of a failing test."""
        self._at = 0
        self._strike: Callable[[RunningTurn], None] | None = None
        self._turn: RunningTurn | None = None
        self._beginning: Coroutine[Any, Any, Any] | None = None

    @property
    def struck(self) -> bool:
        return self._strike is None

    def strike_at(self, point: int, strike: Callable[[RunningTurn], None]) -> None:
        """Call `strike` once, at the suspension with this number, from 1; at 0, before the turn's
        task starts to run."""
        self.count, self.tasks, self.where = 0, [], ""
        self._at, self._strike = point, strike

    async def ended(self, net: Harness, turn_id: str) -> Turn:
        """Wait for the end of a turn and of all its tasks."""
        turn = await net.turn(turn_id)
        async with soon():
            await asyncio.gather(*self.tasks, return_exceptions=True)
        self.check_no_task_is_left()
        return turn

    async def crashed(
        self,
        net: Harness,
        point: int,
        ask: Callable[[], Awaitable[str]],
        restart: Callable[[], Awaitable[None]],
    ) -> Turn:
        """Start a turn, kill its agent at this point and restart it. Returns the finished turn."""
        reached = asyncio.Event()
        self.strike_at(point, lambda turn: reached.set())
        recorded = asyncio.create_task(net.turn(await ask()))
        reaching = asyncio.create_task(reached.wait())
        async with soon():
            await asyncio.wait({recorded, reaching}, return_when=asyncio.FIRST_COMPLETED)
        reaching.cancel()
        await net.kill(self._agent)
        self.check_no_task_is_left()
        if self.struck:
            await net.network.gone(self._agent)
            await restart()
        return await recorded

    def check_no_task_is_left(self) -> None:
        left = [task for task in self.tasks if not task.done()]
        assert not left, f"struck at {self.where}, but these still run: {left}"

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Count the suspensions of turns within the block."""
        loop, run = asyncio.get_running_loop(), AgentRunner._turn

        def watched(runner: AgentRunner, plan: TurnPlan) -> Coroutine[Any, Any, None]:
            turn = run(runner, plan)
            if plan.id.startswith(f"{self._agent}-"):
                self._turn, self._beginning = RunningTurn(runner, plan), turn
            return turn

        before = loop.get_task_factory()
        loop.set_task_factory(self._make)  # type: ignore[arg-type]  # typeshed wants a Future back
        try:
            with mock.patch.object(AgentRunner, "_turn", watched):
                yield
        finally:
            loop.set_task_factory(before)

    def suspended(self, place: str) -> None:
        self.count += 1
        self._reached(f"{self.count}: {place}")

    def _reached(self, where: str) -> None:
        if self.count == self._at and self._strike is not None and self._turn is not None:
            self.where = where
            strike, self._strike = self._strike, None
            strike(self._turn)

    def _make(
        self,
        loop: asyncio.AbstractEventLoop,
        coro: Coroutine[Any, Any, Any],
        *,
        context: Context | None = None,
        **how: Any,
    ) -> asyncio.Task[Any]:
        context = context or copy_context()
        if coro is self._beginning:
            context.run(_inside.set, True)
            loop.call_soon(self._reached, "the beginning")  # before the task's own first step
        if not context.get(_inside, False):
            return asyncio.Task(coro, loop=loop, context=context, **how)
        task = asyncio.Task(_Driver(coro, self), loop=loop, context=context, **how)
        self.tasks.append(task)
        return task


class _Driver(Coroutine[Any, Any, Any]):
    """Runs a coroutine, and reports each suspension to `points`."""

    def __init__(self, inner: Coroutine[Any, Any, Any], points: Points):
        self._inner, self._points = inner, points

    def send(self, value: Any) -> Any:
        return self._passed(self._inner.send(value))

    def throw(self, *error: Any) -> Any:
        return self._passed(self._inner.throw(*error))

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()

    def _passed(self, waits_for: Any) -> Any:
        # By name, as inspecting the frame of a suspended coroutine has crashed the interpreter.
        self._points.suspended(getattr(self._inner, "__qualname__", ""))
        return waits_for
