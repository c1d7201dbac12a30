"""Positions stay dense whatever the disk refuses and whoever repeats a write."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

PEOPLE = ("ann", "bob", "carol")
LIMITS = {"burst": 100_000, "calls_per_second": 1_000_000}


class Write(NamedTuple):
    """One write of a breath."""

    sender: str
    to: str
    cid: str | None
    text: str


WRITES = st.builds(
    Write,
    st.sampled_from(PEOPLE),
    st.sampled_from([*PEOPLE, "broadcast", "channel"]),
    st.none() | st.sampled_from(["c1", "c2", "c3"]),
    st.sampled_from(["x", "y"]),
).filter(lambda write: write.sender != write.to)


class NumberingMachine(RuleBasedStateMachine):
    """The model: what was acknowledged first under each (sender, cid), and every position."""

    @initialize()
    def start(self) -> None:
        self.store = MoodyStore()
        file = config(network={"limits": dict(LIMITS)}, channels={"desk": {}})
        self.life = HubLife(file, self.store)
        self.peers: dict[str, Peer] = {
            name: self.life.run(self.life.network.join(name)) for name in PEOPLE
        }
        self.taken: dict[int, tuple[str, int]] = {}
        self.first: dict[tuple[str, str], tuple[Write, Any]] = {}

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()

    @rule(writes=st.lists(WRITES, min_size=1, max_size=8), failing=st.integers(0, 2))
    def one_breath(self, writes: list[Write], failing: int) -> None:
        self.store.failing = failing
        answers = self.life.run(self.breathe(writes))
        self.store.failing = 0
        for write, answer in zip(writes, answers, strict=True):
            self.check(write, answer)

    async def breathe(self, writes: list[Write]) -> list[Frame]:
        """Send them all, then wait for all answers."""
        refs = []
        for write in writes:
            peer = self.peers[write.sender]
            if write.to == "channel":
                args: dict[str, Any] = {"channel": "desk", "text": write.text}
                ref = await peer.post("post_to_channel", cid=write.cid, **args)
            else:
                args = {"to": write.to, "text": write.text}
                ref = await peer.post("send_text_message", cid=write.cid, **args)
            refs.append((peer, ref))
        return [await peer.answer(ref) for peer, ref in refs]

    def check(self, write: Write, answer: Frame) -> None:
        if answer["op"] == "error":
            assert answer["code"] in ("store_unavailable", "cid_conflict"), answer
            if answer["code"] == "cid_conflict":
                assert answer["details"]["first"]["seq"] in self.taken or write.cid is not None
            return
        value = answer["value"]
        if answer.get("duplicate"):
            assert write.cid is not None
            before, first = self.first[write.sender, write.cid]
            assert before == write, "another body under the same cid is a conflict"
            assert (value["seq"], value["tseq"]) == (first["seq"], first["tseq"])
            return
        assert value["seq"] not in self.taken, "a position given twice"
        self.taken[value["seq"]] = (value["thread_id"], value["tseq"])
        if write.cid is not None:
            assert (write.sender, write.cid) not in self.first, "written twice under one cid"
            self.first[write.sender, write.cid] = (write, value)

    @invariant()
    def positions_are_dense(self) -> None:
        if not hasattr(self, "life"):
            return
        head = self.life.network.hub.kernel.log.head
        assert sorted(self.taken) == list(range(1, head + 1))
        threads: dict[str, list[int]] = {}
        for seq in sorted(self.taken):
            thread, tseq = self.taken[seq]
            threads.setdefault(thread, []).append(tseq)
        for name, tseqs in threads.items():
            assert tseqs == list(range(1, len(tseqs) + 1))
            known = self.life.network.hub.kernel.state.threads.get(name)
            assert known is not None
            assert known.tseq == len(tseqs)

    @rule(who=st.sampled_from(PEOPLE))
    def what_was_acknowledged_is_read_back(self, who: str) -> None:
        page = self.life.run(self.peers[who].call("read_thread", thread="broadcast", limit=100))
        held = [(m["seq"], m["tseq"]) for m in page["messages"]]
        known = [(s, t) for s, (thread, t) in sorted(self.taken.items()) if thread == "broadcast"]
        assert held == known[-100:]


TestNumbering = pytest.mark.behaviour("S-4", "P-18", "P-22", "S-5")(NumberingMachine.TestCase)
TestNumbering.settings = settings(max_examples=examples(20), stateful_step_count=15, deadline=None)
