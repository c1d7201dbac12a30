"""The scope of a handler: the cause and the idempotency keys of what it sends."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from hubbub.agents.turn.activity import TurnActivity
from hubbub.agents.turn.steps import TurnClock
from hubbub.ids import write_id
from hubbub.protocol.turns import ToolCallRecord

__all__ = ["Scope", "current_scope", "entered"]


@dataclass(slots=True)
class Scope:
    """One run of a handler for one message.

    `cause` is the turn, or the message that an observer received. Writes are numbered: the nth
    write of the same handler for the same message has the same `cid` whenever the run is repeated.
    """

    cause: str
    step: int = 1
    several: bool = False
    """Whether the same turn answers other messages, too."""
    clock: TurnClock = field(default_factory=TurnClock)
    """The turn's."""
    activity: TurnActivity | None = None
    """The turn's activity signals; None for an observer."""
    untrusted: bool = False
    """Whether what it sends carries untrusted content."""
    calls: list[ToolCallRecord] = field(default_factory=list)
    _writes: int = 0

    def next_cid(self) -> str:
        cid = write_id(self.cause, self.step, self._writes)
        self._writes += 1
        return cid


_current: ContextVar[Scope | None] = ContextVar("hubbub_scope", default=None)


def current_scope() -> Scope | None:
    """The scope that the running task was started in; None outside handlers."""
    return _current.get()


@contextlib.contextmanager
def entered(scope: Scope) -> Iterator[Scope]:
    """Run a block, and the tasks that it starts, within `scope`."""
    token = _current.set(scope)
    try:
        yield scope
    finally:
        _current.reset(token)
