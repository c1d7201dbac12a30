"""Turns in the hub's memory: those running, and those that the hub ended; and the count of crashed
processes per turn.

    begun by a process -> held -> the process ends the turn, leaves it (stops, or parks it), or
    crashes

If a process begins a turn that the previous one still held, the previous one crashed. The count
restarts if that process got further, that is, sent a new message in the turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode

__all__ = ["MAX_DEATHS", "NO_LIVES", "EndedTurn", "RunningTurn", "RunningTurns", "TurnProcesses"]

REMEMBERED = 4096
"""Recently ended turns in memory; the store is checked for older ones."""
MAX_DEATHS = 3
"""Crashes in a row after which a turn is ended."""


class RunningTurn(NamedTuple):
    agent: str
    thread_id: str


class EndedTurn(NamedTuple):
    """A turn that was ended on its agent's behalf, or a wake that will have no turn."""

    turn: str
    agent: str
    code: str
    """`stopped` or `taken_over`."""
    by: str
    reason: str


class RunningTurns:
    """The running turns, and those that a person or the breaker ended."""

    def __init__(self) -> None:
        self._running: dict[str, RunningTurn] = {}
        self._ended: dict[str, EndedTurn] = {}
        self._begins: dict[str, int] = {}

    def __iter__(self) -> Iterator[tuple[str, RunningTurn]]:
        return iter(tuple(self._running.items()))

    def get(self, turn: str) -> RunningTurn | None:
        """The turn, if it began since the hub started and has not ended."""
        return self._running.get(turn)

    def begun(self, turn: str, agent: str, thread_id: str) -> None:
        self._running[turn] = RunningTurn(agent, thread_id)
        self._begins[agent] = self.begins(agent) + 1

    def begins(self, agent: str) -> int:
        """How often turns of the agent began, or began again, since the hub started."""
        return self._begins.get(agent, 0)

    def ended(self, turn: str) -> None:
        """Remove a turn that ended in any way."""
        self._running.pop(turn, None)

    def end(self, ended: EndedTurn) -> None:
        """Mark a turn as ended, regardless of its agent."""
        self._ended.pop(ended.turn, None)
        self._ended[ended.turn] = ended
        while len(self._ended) > REMEMBERED:
            del self._ended[next(iter(self._ended))]

    def spare(self, turns: Iterable[str]) -> None:
        """Undo `end`, as the disk refused it."""
        for turn in turns:
            self._ended.pop(turn, None)

    def ended_of(self, agent: str) -> list[EndedTurn]:
        """The agent's turns that were ended recently."""
        return [ended for ended in self._ended.values() if ended.agent == agent]

    def hub_end(self, turn: str) -> EndedTurn | None:
        """The end of the turn, if it was ended on its agent's behalf."""
        return self._ended.get(turn)

    def check(self, turn: str) -> None:
        """Raises `OperationError` if the turn was ended on its agent's behalf."""
        ended = self._ended.get(turn)
        if ended is not None:
            raise ended_error(ended.turn, ended.by, ended.reason)


def ended_error(turn: str, by: str, reason: str) -> OperationError:
    """The error for an agent that continues a turn which was ended."""
    return OperationError(
        ErrorCode.TURN_OVER, f"turn {turn} has ended: {reason}", details={"turn": turn, "by": by}
    )


class TurnProcesses(NamedTuple):
    """The processes of a turn. Processes without an id are not counted."""

    life: str | None = None
    """The process that began it last."""
    held: bool = False
    """Whether that process still works on it, by its own reports."""
    deaths: int = 0
    """How many processes in a row crashed in it."""
    said: int = 0
    """Messages that the turn had sent when the last process began it."""

    def begun(self, life: str | None, said: int) -> TurnProcesses:
        """The state after the process `life` begins the turn, which has sent `said` messages."""
        if life is None:
            return TurnProcesses(said=said)
        if life == self.life:
            return self._replace(held=True)
        before = 0 if said > self.said else self.deaths
        return TurnProcesses(life, held=True, deaths=before + self.held, said=said)

    @property
    def over(self) -> bool:
        """Whether the turn crashed too many processes."""
        return self.deaths >= MAX_DEATHS


NO_LIVES = TurnProcesses()
"""The state of a turn that never began."""
