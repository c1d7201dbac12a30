"""How much work waits at each agent: its wakes that no turn has settled yet.

    a wake is committed -> it waits; a turn takes it -> it is worked on; the turn ends -> it is gone

Kept by what the log has written, whoever asked for it: the figures are those of the store.
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

    What the log had before the hub started is added by `restore`, an agent at a time: until then
    the depth of such an agent tells only what has come since.
    """

    def __init__(self, agents: Iterable[str] = ()):
        """`agents`: those whose earlier wakes are still to be restored."""
        self._open: dict[str, array[int]] = {}
        """Ascending. Eight bytes for each: an agent may be away for long."""
        self._turns: dict[str, list[tuple[str, int]]] = {}
        """The wakes (agent, seq) that running turns have taken."""
        self._taken: dict[tuple[str, int], str] = {}
        """The turn that has taken a wake."""
        self._missing: dict[str, _SettledEarly] = {agent: _SettledEarly() for agent in agents}
        self._over: set[str] = set()
        """Turns that have ended while anything was still to be restored."""

    def depth(self, agent: str, without: Collection[str] = ()) -> int:
        """How many wakes wait at the agent, or are worked on; not those of the turns `without`."""
        found = self._open.get(agent)
        if found is None:
            return 0
        if not without:
            return len(found)
        return len(found) - sum(len(self._turns.get(turn, ())) for turn in without)

    def holds(self, agent: str, seq: int) -> bool:
        """Whether the message at `seq` has woken the agent, who is not done with it."""
        found = self._open.get(agent)
        return found is not None and _has(found, seq)

    def taken_by(self, turn: str) -> Sequence[tuple[str, int]]:
        """The wakes (agent, seq) that a turn has taken which has not ended."""
        return self._turns.get(turn, ())

    def woken(self, agent: str, seq: int) -> None:
        """A message that wakes the agent is in the log: the last one so far."""
        found = self._open.get(agent)
        if found is None:
            found = self._open[agent] = array("q")
        found.append(seq)

    def restore(self, agent: str, wakes: Iterable[OpenWake]) -> None:
        """Add what the store had for the agent when the hub started, or a little later."""
        meanwhile = self._missing.pop(agent, None) or _SettledEarly()
        found = self._open.setdefault(agent, array("q"))
        for seq, turn in wakes:
            if meanwhile.settles(seq, turn) or turn in self._over:
                continue
            if not _has(found, seq):
                insort(found, seq)
            if turn is not None and (agent, seq) not in self._taken:
                self._take(turn, agent, (seq,))
        if not self._missing:
            self._over.clear()

    def recorded(self, records: Collection[Record]) -> None:
        """These records are durable."""
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
        found = self._open.get(agent)
        if found is not None and _has(found, seq):
            del found[bisect_left(found, seq)]

    def _passed(self, passed: WakesSettled) -> None:
        """Wakes that no turn has taken are settled by having been acknowledged."""
        agent, upto = passed.participant, passed.upto
        meanwhile = self._missing.get(agent)
        if meanwhile is not None:
            meanwhile.floor = max(upto, meanwhile.floor)
        found = self._open.get(agent)
        if found:
            end = bisect_right(found, upto)
            taken = self._taken
            kept = [seq for seq in found[:end] if (agent, seq) in taken] if taken else ()
            found[:end] = array("q", kept)


class _SettledEarly:
    """What was settled of an agent while its earlier wakes were not restored yet."""

    __slots__ = ("floor", "settled")

    def __init__(self) -> None:
        self.settled: set[int] = set()
        self.floor = 0
        """Up to here it has dealt with its wakes without a turn."""

    def settles(self, seq: int, turn: str | None) -> bool:
        return seq in self.settled or (turn is None and seq <= self.floor)


def _has(ascending: array[int], seq: int) -> bool:
    at = bisect_left(ascending, seq)
    return at < len(ascending) and ascending[at] == seq


# Each is called with records of its own type: that is what the Any stands for.
_CHANGES: dict[type[Record], Callable[[Queues, Any], None]] = {
    TurnBegun: Queues._begun,
    WakesTaken: Queues._more,
    TurnEnded: Queues._ended,
    WakesSettled: Queues._passed,
}
