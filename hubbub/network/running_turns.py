"""Turns as the hub has them in memory: those that run, and those that it has ended; and when a turn
has cost too many processes.

    begun by a process -> held -> it ends the turn, leaves it in order (stops, or parks it), or dies

A turn that the next process begins while the last one still held it has cost a life. Who has said
something new in the turn got further than the one before: the count begins anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["MOST_DEATHS", "NO_LIVES", "EndedTurn", "RunningTurn", "RunningTurns", "TurnProcesses"]

REMEMBERED = 4096
"""Turns that were ended lately: whoever goes on with an older one is found out by the store."""
MOST_DEATHS = 3
"""Processes in a row that may die in the same turn: then it has ended."""


class RunningTurn(NamedTuple):
    agent: str
    thread_id: str


class EndedTurn(NamedTuple):
    """A turn that was ended in its agent's place, or a wake that will have none."""

    turn: str
    agent: str
    code: str
    """`stopped` or `taken_over`."""
    by: str
    reason: str


class RunningTurns:
    """Which turns have begun, and which are over because a person or the breaker ended them."""

    def __init__(self) -> None:
        self._running: dict[str, RunningTurn] = {}
        self._ended: dict[str, EndedTurn] = {}
        self._begins: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[str, RunningTurn]]:
        return iter(tuple(self._running.items()))

    def get(self, turn: str) -> RunningTurn | None:
        """Whose the turn is, if it has begun since the hub started and has not ended."""
        return self._running.get(turn)

    def begun(self, turn: str, agent: str, thread_id: str) -> None:
        self._running[turn] = RunningTurn(agent, thread_id)
        self._begins[agent] = self.begins(agent) + 1

    def begins(self, agent: str) -> int:
        """How often a turn of the agent has begun, or begun again, since the hub started."""
        return self._begins.get(agent, 0)

    def ended(self, turn: str) -> None:
        """It has ended, by whomever."""
        self._running.pop(turn, None)

    def end(self, ended: EndedTurn) -> None:
        """It is over from now on, whatever its agent says."""
        self._ended.pop(ended.turn, None)
        self._ended[ended.turn] = ended
        while len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def spare(self, turns: Iterable[str]) -> None:
        """These are not over after all: the disk refused."""
        for turn in turns:
            self._ended.pop(turn, None)

    def ended_of(self, agent: str) -> list[EndedTurn]:
        """Those of the agent that were ended lately."""
        return [ended for ended in self._ended.values() if ended.agent == agent]

    def why_over(self, turn: str) -> EndedTurn | None:
        """Why the turn is over; None if nobody has ended it in its agent's place."""
        return self._ended.get(turn)

    def check(self, turn: str) -> None:
        """Raises `OperationError` if the turn was ended in its agent's place."""
        ended = self._ended.get(turn)
        if ended is not None:
            raise over(ended.turn, ended.by, ended.reason)


def over(turn: str, by: str, reason: str) -> OperationError:
    """The turn is over: what an agent is told that goes on with it."""
    return OperationError(
        ErrorCode.TURN_OVER, f"turn {turn} is over: {reason}", details={"turn": turn, "by": by}
    )


class TurnProcesses(NamedTuple):
    """What is known of a turn's processes. One that does not name itself is not counted."""

    life: str | None = None
    """The process that began it last."""
    held: bool = False
    """Whether that process works on it, as far as it has told."""
    deaths: int = 0
    """How many in a row have died in it."""
    said: int = 0
    """Messages that the turn had sent when the last one began it."""

    def begun(self, life: str | None, said: int) -> TurnProcesses:
        """The process `life` begins the turn, which has sent `said` messages so far."""
        if life is None:
            return TurnProcesses(said=said)
        if life == self.life:
            return self._replace(held=True)
        before = 0 if said > self.said else self.deaths
        return TurnProcesses(life, held=True, deaths=before + self.held, said=said)

    @property
    def over(self) -> bool:
        """Whether the turn has cost too many."""
        return self.deaths >= MOST_DEATHS


NO_LIVES = TurnProcesses()
"""Of a turn that nobody has begun."""
