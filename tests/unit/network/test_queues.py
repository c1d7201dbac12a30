"""The number of wakes waiting for an agent, compared with the store."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.network.queues import Queues
from hubbub.network.records import Batch, Record, TurnBegun, TurnEnded, WakesSettled, WakesTaken
from hubbub.network.store import reads
from hubbub.network.store.migrate import migrate
from hubbub.network.store.writer import BatchWriter
from hubbub.network.stored import OpenWake
from hubbub.testing.store_rows import message, wake

AGENTS = ("bob", "cy")


def test_restored_wakes_are_added_without_those_settled_meanwhile() -> None:
    queues = Queues(["bob", "cy"])
    queues.woken("bob", 9)
    queues.recorded([TurnBegun("bob-m2", "bob", 0.0, "{}", (2,)), TurnEnded("bob-m2", 0.0, "{}")])
    queues.recorded([TurnEnded("bob-m3", 0.0, "{}")])  # begun before the hub started
    queues.recorded([WakesSettled("bob", 1)])
    assert queues.depth("bob") == 1
    early = [(1, None), (2, None), (3, "bob-m3"), (4, "bob-m4"), (5, None), (9, None)]
    queues.restore("bob", [OpenWake(*row) for row in early])
    assert queues.depth("bob") == 3
    queues.recorded([TurnEnded("bob-m4", 0.0, "{}")])
    assert queues.depth("bob") == 2
    queues.restore("cy", [OpenWake(4, "cy-m4")])
    queues.restore("new", [OpenWake(6, None)])
    assert (queues.depth("cy"), queues.depth("new")) == (1, 1)


# Against a store ------------------------------------------------------------------------------


class StoreAndQueues:
    """Queues and a store that receive the same records."""

    def __init__(self) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        migrate(self.db, "a test's database")
        self.writer = BatchWriter(tail=3)
        self.writer.start(0)
        self.queues = Queues()
        self.seq = 0
        self.turns: dict[str, str] = {}

    def open(self, agent: str) -> list[OpenWake]:
        return list(reads.open_wakes(self.db, agent, self.seq))

    def wake(self, agents: set[str]) -> None:
        self.seq += 1
        rows = [wake(agent, self.seq) for agent in sorted(agents)]
        self.writer.write(self.db, Batch(messages=[message(self.seq)], deliveries=rows))
        for agent in agents:
            self.queues.woken(agent, self.seq)

    def record(self, record: Record) -> None:
        self.writer.write(self.db, Batch([record]))
        self.queues.recorded([record])

    def begin(self, agent: str, most: int) -> None:
        free = [wake.seq for wake in self.open(agent) if wake.started is None][:most]
        if free:
            turn = f"{agent}-m{free[0]}"
            self.turns[turn] = agent
            self.record(TurnBegun(turn, agent, 0.0, "{}", tuple(free)))

    def take(self, agent: str, last: int) -> None:
        """The agent's latest turn takes open wakes, even those of its other turns."""
        running = [turn for turn, owner in self.turns.items() if owner == agent]
        if running:
            seqs = tuple(wake.seq for wake in self.open(agent)[-last:])
            self.record(WakesTaken(running[-1], agent, seqs))

    def end(self, agent: str, index: int) -> None:
        running = [turn for turn, owner in self.turns.items() if owner == agent]
        if running:
            turn = running[index % len(running)]
            del self.turns[turn]
            self.record(TurnEnded(turn, 0.0, "{}"))

    def restart(self) -> None:
        """Restarts the hub."""
        self.queues = Queues(AGENTS)
        for agent in AGENTS:
            self.queues.restore(agent, self.open(agent))

    def close(self) -> None:
        self.db.close()


few = st.integers(0, 3)
agents = st.sampled_from(AGENTS)
steps = st.one_of(
    st.tuples(st.just("wake"), st.sets(agents, min_size=1), few),
    st.tuples(st.just("begin"), agents, few),
    st.tuples(st.just("take"), agents, st.integers(1, 3)),
    st.tuples(st.just("end"), agents, few),
    st.tuples(st.just("settle"), agents, few),
    st.tuples(st.just("restart"), agents, few),
)


@pytest.mark.behaviour("H-101")
@given(st.lists(steps, max_size=40))
def test_the_depth_equals_the_unsettled_wakes_in_the_store(
    plan: list[tuple[str, object, int]],
) -> None:
    pair = StoreAndQueues()
    try:
        for name, who, number in plan:
            if isinstance(who, set):
                pair.wake(who)
            elif name == "settle":
                pair.record(WakesSettled(str(who), max(0, pair.seq - number)))
            elif name == "restart":
                pair.restart()
            else:
                {"begin": pair.begin, "take": pair.take, "end": pair.end}[name](str(who), number)
            for agent in AGENTS:
                assert pair.queues.depth(agent) == len(pair.open(agent))
    finally:
        pair.close()
