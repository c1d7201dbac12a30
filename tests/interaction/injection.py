"""Something happens at the nth await of a turn: in any of its tasks, wherever it stands by then.

    points = Points()
    with points.watching():
        points.strike_at(7, lambda turn: turn.cancel())
        ...

Every task of a turn, and every task that those start, runs inside a driver that counts how often it
is suspended. At the chosen count `strike` is called, while the task is on its way to sleep.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass
from typing import Any
from unittest import mock

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.runner import AgentRunner

__all__ = ["Points", "RunningTurn"]

_inside: ContextVar[bool] = ContextVar("inside_a_turn", default=False)


@dataclass(frozen=True)
class RunningTurn:
    """The turn that was struck."""

    runner: AgentRunner
    plan: TurnPlan

    def cancel(self) -> None:
        """As a person does who stops it."""
        self.runner.cancel(self.plan.id, "struck")


class Points:
    """Counts the suspensions of an agent's turns since the last `strike_at`."""

    def __init__(self, agent: str = "bot") -> None:
        self._agent = agent
        self.count = 0
        self.tasks: list[asyncio.Task[Any]] = []
        """All that the turns have started, and they themselves."""
        self.where = ""
        """The place that was struck, for the message of a test that fails."""
        self._at = 0
        self._strike: Callable[[RunningTurn], None] | None = None
        self._turn: RunningTurn | None = None
        self._beginning: Coroutine[Any, Any, Any] | None = None

    @property
    def struck(self) -> bool:
        return self._strike is None

    def strike_at(self, point: int, strike: Callable[[RunningTurn], None]) -> None:
        """Call `strike` once, at the suspension of this number (from 1); 0: before the turn's task
        has begun to run.
        """
        self.count, self.tasks, self.where = 0, [], ""
        self._at, self._strike = point, strike

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Within, turns are counted."""
        loop, run = asyncio.get_running_loop(), AgentRunner._turn

        def noted(runner: AgentRunner, plan: TurnPlan) -> Coroutine[Any, Any, None]:
            turn = run(runner, plan)
            if plan.id.startswith(f"{self._agent}-"):
                self._turn, self._beginning = RunningTurn(runner, plan), turn
            return turn

        before = loop.get_task_factory()
        loop.set_task_factory(self._make)  # type: ignore[arg-type]  # typeshed wants a Future back
        try:
            with mock.patch.object(AgentRunner, "_turn", noted):
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
    """Runs a coroutine, and tells `points` of each suspension."""

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
        # By name: looking at the frame of a coroutine that sleeps has crashed the interpreter.
        self._points.suspended(getattr(self._inner, "__qualname__", ""))
        return waits_for
