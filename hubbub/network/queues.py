"""The queue of each agent: its wakes that no turn has settled yet.

    a wake is committed -> queued; a turn takes it -> in progress; the turn ends -> removed

Updated from committed records only, so that the counts match the store.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

from hubbub.network.records import Record, TurnBegun, TurnEnded, WakesSettled, WakesTaken
from hubbub.network.stored import OpenWake

__all__ = ["Queues"]


class Queues:
    """The open wakes of agents, by position.

    `restore` adds the wakes from before the hub's start, one agent at a time. Until then the
    agent's depth counts only wakes since the start.
    """

    def __init__(self, agents: Iterable[str] = ()):
        """`agents` are those whose earlier wakes have yet to be restored."""
        self._open: dict[str, array[int]] = {}
        """Ascending, at eight bytes each, as an agent can be away for a long time."""
        self._turns: dict[str, list[tuple[str, int]]] = {}
        """The wakes (agent, seq) that running turns took."""
        self._taken: dict[tuple[str, int], str] = {}
        """The turn that took each wake."""
        self._missing: dict[str, _SettledEarly] = {agent: _SettledEarly() for agent in agents}
        self._over: set[str] = set()
        """Turns that ended before everything was restored."""

    def depth(self, agent: str, without: Collection[str] = ()) -> int:
        """How many of the agent's wakes are queued or in progress, except for the turns
        `without`."""
        queue = self._open.get(agent)
        if queue is None:
            return 0
        if not without:
            return len(queue)
        return len(queue) - sum(len(self._turns.get(turn, ())) for turn in without)

    def holds(self, agent: str, seq: int) -> bool:
        """Whether the message at `seq` woke the agent and that wake is not settled."""
        queue = self._open.get(agent)
        return queue is not None and _has(queue, seq)

    def taken_by(self, turn: str) -> Sequence[tuple[str, int]]:
        """The wakes (agent, seq) that a running turn took."""
        return self._turns.get(turn, ())

    def woken(self, agent: str, seq: int) -> None:
        """Add the wake of the last message in the log."""
        queue = self._open.get(agent)
        if queue is None:
            queue = self._open[agent] = array("q")
        queue.append(seq)

    def restore(self, agent: str, wakes: Iterable[OpenWake]) -> None:
        """Add the wakes that the store had for the agent at the hub's start, or a little later."""
        meanwhile = self._missing.pop(agent, None) or _SettledEarly()
        queue = self._open.setdefault(agent, array("q"))
        for seq, turn in wakes:
            if meanwhile.settles(seq, turn) or turn in self._over:
                continue
            if not _has(queue, seq):
                insort(queue, seq)
            if turn is not None and (agent, seq) not in self._taken:
                self._take(turn, agent, (seq,))
        if not self._missing:
            self._over.clear()

    def recorded(self, records: Collection[Record]) -> None:
        """Apply durable records."""
        for record in records:
            change = _CHANGES.get(type(record))
            if change is not None:
                change(self, record)

    def _begun(self, begun: TurnBegun) -> None:
        self._take(begun.id, begun.agent, begun.seqs)

    def _more(self, taken: WakesTaken) -> None:
        self._take(taken.turn, taken.agent, taken.seqs)

    def _take(self, turn: str, agent: str, seqs: Iterable[int]) -> None:
        held = self._turns.setdefault(turn, [])
        for seq in seqs:
            if self._taken.get((agent, seq)) != turn:
                self._taken[agent, seq] = turn
                held.append((agent, seq))

    def _ended(self, ended: TurnEnded) -> None:
        if self._missing:
            self._over.add(ended.id)
        for wake in self._turns.pop(ended.id, ()):
            if self._taken.get(wake) == ended.id:  # else another turn has it by now
                del self._taken[wake]
                self._settle(*wake)

    def _settle(self, agent: str, seq: int) -> None:
        meanwhile = self._missing.get(agent)
        if meanwhile is not None:
            meanwhile.settled.add(seq)
        queue = self._open.get(agent)
        if queue is not None and _has(queue, seq):
            del queue[bisect_left(queue, seq)]

    def _passed(self, passed: WakesSettled) -> None:
        """Settle acknowledged wakes that no turn took."""
        agent, upto = passed.participant, passed.upto
        meanwhile = self._missing.get(agent)
        if meanwhile is not None:
            meanwhile.floor = max(upto, meanwhile.floor)
        queue = self._open.get(agent)
        if queue:
            end = bisect_right(queue, upto)
            taken = self._taken
            remaining = [seq for seq in queue[:end] if (agent, seq) in taken] if taken else ()
            queue[:end] = array("q", remaining)


class _SettledEarly:
    """The wakes of an agent that were settled before its earlier wakes were restored."""

    __slots__ = ("floor", "settled")

    def __init__(self) -> None:
        self.settled: set[int] = set()
        self.floor = 0
        """Wakes up to this position without a turn are settled."""

    def settles(self, seq: int, turn: str | None) -> bool:
        return seq in self.settled or (turn is None and seq <= self.floor)


def _has(ascending: array[int], seq: int) -> bool:
    at = bisect_left(ascending, seq)
    return at < len(ascending) and ascending[at] == seq


# Any, as each function takes records of its own type.
_CHANGES: dict[type[Record], Callable[[Queues, Any], None]] = {
    TurnBegun: Queues._begun,
    WakesTaken: Queues._more,
    TurnEnded: Queues._ended,
    WakesSettled: Queues._passed,
}
