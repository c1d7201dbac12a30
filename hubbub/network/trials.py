"""Trials of turns under way: who waits for which agent's answer. Nothing of it is kept."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hubbub.errors import OperationError
from hubbub.ids import new_ulid
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.trials import TurnTried

if TYPE_CHECKING:
    from hubbub.network.session import Session

__all__ = ["Trials", "Waiting"]

MOST_AT_ONCE = 2
"""Trials of one owner under way: each holds one of the calls that a session may read with, and
costs what a model costs."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A trial that the agent behind `session` has been asked for."""

    request: str
    owner: str
    session: Session
    answer: asyncio.Future[TurnTried]


class Trials:
    """Those that are under way."""

    def __init__(self) -> None:
        self._waiting: dict[str, Waiting] = {}

    @contextlib.contextmanager
    def open(self, owner: str, session: Session) -> Iterator[Waiting]:
        """Within, the answer may come. Raises `OperationError` when the owner has enough open."""
        if sum(trial.owner == owner for trial in self._waiting.values()) >= MOST_AT_ONCE:
            text = f"{MOST_AT_ONCE} of your trials are under way; wait for one of them"
            raise OperationError(ErrorCode.LIMIT, text)
        answer: asyncio.Future[TurnTried] = asyncio.get_running_loop().create_future()
        trial = Waiting(new_ulid(), owner, session, answer)
        self._waiting[trial.request] = trial
        try:
            yield trial
        finally:
            del self._waiting[trial.request]

    def answered(self, agent: str, answer: TurnTried) -> bool:
        """An agent answers. False if nobody waits for that, or not for this agent."""
        trial = self._waiting.get(answer.request)
        if trial is None or trial.session.participant != agent or trial.answer.done():
            return False
        trial.answer.set_result(answer)
        return True

    def left(self, session: Session) -> None:
        """The agent's session is over: there will be no answer from it."""
        gone = f"{session.participant} went away before it answered"
        for trial in self._waiting.values():
            if trial.session is session:
                _fail(trial, OperationError(ErrorCode.NOT_TRIED, gone))

    def stop(self) -> None:
        """The hub stops: nobody waits any longer."""
        for trial in self._waiting.values():
            _fail(trial, OperationError(ErrorCode.DRAINING, "the hub is stopping; come back"))


def _fail(trial: Waiting, error: OperationError) -> None:
    if not trial.answer.done():
        trial.answer.set_exception(error)
