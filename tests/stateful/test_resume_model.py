"""Whatever connects, breaks, resumes and speaks: everybody receives exactly what is theirs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.stateful.hub_life import HubLife

KINDS = {"ann": "human", "bob": "agent", "carol": "human"}
PEOPLE = tuple(KINDS)
WHO = st.sampled_from(PEOPLE)
WINDOW = 4
LIMITS = {"unacknowledged": WINDOW, "burst": 100_000, "calls_per_second": 1_000_000}


class Reader:
    """What one participant has: its socket, what it received and what it acknowledged."""

    def __init__(self) -> None:
        self.peer: Peer | None = None
        self.received: list[Frame] = []
        self.acked = 0
        self.last = 0
        """seq of the last event of this connection, for `prev`."""

    def take(self, events: list[Frame]) -> None:
        known = {event["seq"] for event in self.received}
        for event in events:
            assert event["prev"] == self.last, "a gap, or a number twice on one stream"
            assert event["seq"] > event["prev"]
            self.last = event["seq"]
            if event["seq"] not in known:
                self.received.append(event)


class ResumeMachine(RuleBasedStateMachine):
    """The model: an ordered log, memberships, and per participant what it must have received."""

    def __init__(self) -> None:
        super().__init__()
        self.readers = {name: Reader() for name in PEOPLE}
        self.expected: dict[str, list[tuple[int, str]]] = {name: [] for name in PEOPLE}
        self.members = {"ann"}
        self.threads: dict[str, int] = {}
        self.seq = 0
        self.said = 0

    @initialize()
    def start(self) -> None:
        self.life = HubLife(config(network={"limits": dict(LIMITS)}))
        self.run, self.network = self.life.run, self.life.network
        for name in PEOPLE:
            self.run(self.connect(name))
        self.run(self.post("ann", "create_channel", name="desk"))

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()

    # Steps ------------------------------------------------------------------------------------

    async def connect(self, name: str, *, cursor: int | None = None) -> None:
        reader = self.readers[name]
        more: dict[str, Any] = {}
        if cursor is not None:
            more["cursor"] = {"epoch": self.network.hub.kernel.state.epoch, "seq": cursor}
        reader.peer = await self.network.join(name, KINDS[name], **more)
        assert reader.peer.ready["resumed"] is (cursor is not None)
        reader.last = reader.peer.ready["cursor"]

    async def post(self, name: str, operation: str, /, **args: Any) -> Any:
        reader = self.readers[name]
        if reader.peer is None:
            await self.connect(name, cursor=reader.acked)
        assert reader.peer is not None
        value = await reader.peer.call(operation, **args)
        reader.take(reader.peer.events)
        reader.peer.events = []
        return value

    def message(self, sender: str, thread: str, value: Any, text: str) -> None:
        """The hub took a message: the model takes it too."""
        self.seq += 1
        self.threads[thread] = self.threads.get(thread, 0) + 1
        assert (value["seq"], value["thread_id"]) == (self.seq, thread)
        assert value["tseq"] == self.threads[thread], "positions of a thread are dense"
        audience = set(PEOPLE)
        if thread.startswith("dm."):
            audience = set(thread.split(".")[1:3])
        elif thread.startswith("channel."):
            audience = set(self.members)
        for name in audience - {sender}:
            self.expected[name].append((self.seq, text))

    def words(self) -> str:
        self.said += 1
        return f"word {self.said}"

    @rule(sender=WHO, to=WHO)
    def speak_to(self, sender: str, to: str) -> None:
        if sender != to:
            text = self.words()
            value = self.run(self.post(sender, "send_text_message", to=to, text=text))
            self.message(sender, "dm." + ".".join(sorted((sender, to))), value, text)

    @rule(sender=WHO)
    def broadcast(self, sender: str) -> None:
        text = self.words()
        value = self.run(self.post(sender, "broadcast_text_message", text=text))
        self.message(sender, "broadcast", value, text)

    @rule(sender=WHO)
    def post_to_desk(self, sender: str) -> None:
        if sender in self.members:
            text = self.words()
            value = self.run(self.post(sender, "post_to_channel", channel="desk", text=text))
            self.message(sender, "channel.desk", value, text)

    @precondition(lambda self: self.threads.get("broadcast"))
    @rule(sender=WHO)
    def reply_to_the_first_broadcast(self, sender: str) -> None:
        text = self.words()
        page = self.run(self.post(sender, "read_thread", thread="broadcast", before=2))
        root = page["messages"][0]
        value = self.run(self.post(sender, "reply", message_id=root["id"], text=text))
        self.message(sender, f"broadcast.t{root['seq']}", value, text)

    @rule(who=WHO)
    def join_desk(self, who: str) -> None:
        self.run(self.post(who, "join_channel", channel="desk"))
        self.members.add(who)

    @rule(who=WHO)
    def leave_desk(self, who: str) -> None:
        self.run(self.post(who, "leave_channel", channel="desk"))
        self.members.discard(who)

    @rule(who=WHO)
    def read(self, who: str) -> None:
        self.run(self.post(who, "list_channels"))

    @rule(who=WHO, back=st.integers(0, 3))
    def acknowledge(self, who: str, back: int) -> None:
        reader = self.readers[who]
        if reader.peer is not None and reader.received:
            seq = reader.received[max(0, len(reader.received) - 1 - back)]["seq"]
            if reader.acked < seq <= reader.last:
                reader.acked = seq
                self.run(reader.peer.ack(seq))

    @rule(who=WHO)
    def drop(self, who: str) -> None:
        """The connection breaks: what was on its way is gone."""
        reader = self.readers[who]
        if reader.peer is not None:
            self.run(reader.peer.close())
            self.run(self.network.gone(who))
            reader.peer = None

    @rule(who=WHO)
    def come_back(self, who: str) -> None:
        reader = self.readers[who]
        if reader.peer is None:
            self.run(self.connect(who, cursor=reader.acked))

    # What must hold ---------------------------------------------------------------------------

    @invariant()
    def nobody_has_what_is_not_theirs(self) -> None:
        for name, reader in self.readers.items():
            theirs = self.expected[name]
            got = [(e["seq"], e["message"]["content"]) for e in reader.received]
            others = [item for item in got if item not in theirs]
            own = {item[0] for item in others}
            sent_by_self = {e["seq"] for e in reader.received if e["message"]["sender_id"] == name}
            assert own <= sent_by_self
            assert [item for item in theirs if item in got] == [
                item for item in got if item in theirs
            ]

    @rule()
    def everybody_reads_to_the_end(self) -> None:
        for name in PEOPLE:
            self.run(self.finish(name))

    async def finish(self, name: str) -> None:
        reader = self.readers[name]
        if reader.peer is None:
            await self.connect(name, cursor=reader.acked)
        peer = reader.peer
        assert peer is not None
        last = self.expected[name][-1][0] if self.expected[name] else 0
        while True:
            reader.take(peer.events)
            peer.events = []
            if reader.last > reader.acked:
                reader.acked = reader.last
                await peer.ack(reader.last)
            if reader.last >= last:
                break
            await peer.until(lambda: bool(peer.events))
        got = {event["seq"] for event in reader.received}
        assert [seq for seq, _ in self.expected[name] if seq not in got] == [], "something is lost"


TestResume = pytest.mark.behaviour("S-1", "P-4", "P-17", "P-18")(ResumeMachine.TestCase)
TestResume.settings = settings(max_examples=examples(15), stateful_step_count=30, deadline=None)
