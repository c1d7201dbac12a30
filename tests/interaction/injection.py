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
from types import FrameType
from typing import Any

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.runner import AgentRunner

__all__ = ["Points", "RunningTurn"]

_TURN = "AgentRunner._turn"
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
        loop = asyncio.get_running_loop()
        before = loop.get_task_factory()
        loop.set_task_factory(self._make)  # type: ignore[arg-type]  # typeshed wants a Future back
        try:
            yield
        finally:
            loop.set_task_factory(before)

    def suspended(self, frame: FrameType | None) -> None:
        self.count += 1
        self._reached(f"{self.count}: {_told(frame)}")

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
        turn = self._turn_of(coro)
        if turn is not None:
            context.run(_inside.set, True)
            self._turn = turn
            loop.call_soon(self._reached, "the beginning")  # before the task's own first step
        if not context.get(_inside, False):
            return asyncio.Task(coro, loop=loop, context=context, **how)
        task = asyncio.Task(_Driver(coro, self), loop=loop, context=context, **how)
        self.tasks.append(task)
        return task

    def _turn_of(self, coro: Coroutine[Any, Any, Any]) -> RunningTurn | None:
        """The turn that the coroutine is, if it is one of the agent's."""
        if getattr(coro, "__qualname__", "") != _TURN:
            return None
        named = coro.cr_frame.f_locals  # type: ignore[attr-defined]  # it is a native one
        turn = RunningTurn(named["self"], named["plan"])
        return turn if turn.plan.id.startswith(f"{self._agent}-") else None


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
        self._points.suspended(getattr(self._inner, "cr_frame", None))
        return waits_for


def _told(frame: FrameType | None) -> str:
    return "" if frame is None else f"{frame.f_code.co_qualname}:{frame.f_lineno}"
