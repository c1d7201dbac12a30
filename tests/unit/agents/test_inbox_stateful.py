"""An inbox that followed events equals one built from a fresh `ready`."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hubbub.agents.inbox import Inbox, TurnPlan
from hubbub.protocol.messages import Message, SenderKind
from tests.unit.agents.builders import ME, event, message, pending, ready

THREADS = ["dm.alice.bot", "dm.bob.bot", "channel.desk", "broadcast"]


@dataclass
class Hub:
    """A hub's state for one agent."""

    log: list[Message] = field(default_factory=list)
    unsettled: dict[int, Message] = field(default_factory=dict)
    """Wakes whose turns have not ended."""
    started: dict[int, str] = field(default_factory=dict)


class InboxMachine(RuleBasedStateMachine):
    """Events, turns, lost connections. After each, the inbox equals a fresh one."""

    @initialize(concurrency=st.integers(1, 3))
    def start(self, concurrency: int) -> None:
        self.hub = Hub()
        self.concurrency = concurrency
        self.running: list[TurnPlan] = []
        self.inbox = self.fresh()

    def fresh(self) -> Inbox:
        inbox = Inbox(ME, concurrency=self.concurrency)
        waiting = tuple(pending(m, self.hub.started.get(s)) for s, m in self.hub.unsettled.items())
        inbox.begin(ready(len(self.hub.log), *self.hub.log, pending=waiting))
        return inbox

    @rule(
        thread=st.sampled_from(THREADS),
        human=st.booleans(),
        wakes=st.booleans(),
        twice=st.booleans(),
        hop=st.integers(0, 3),
    )
    def someone_sends_a_message(
        self, thread: str, human: bool, wakes: bool, twice: bool, hop: int
    ) -> None:
        kind: SenderKind = "human" if human else "agent"
        sent = message(len(self.hub.log) + 1, "alice", thread=thread, kind=kind, hop=hop)
        self.hub.log.append(sent)
        if wakes:
            self.hub.unsettled[sent.seq] = sent
        assert self.inbox.receive(event(sent, wakes=wakes)) != "duplicate"
        if twice:
            assert self.inbox.receive(event(sent, wakes=wakes)) == "duplicate"

    @rule(thread=st.sampled_from(THREADS))
    def the_agent_sends_a_message(self, thread: str) -> None:
        sent = message(len(self.hub.log) + 1, ME, thread=thread, kind="agent")
        self.hub.log.append(sent)
        self.inbox.note(sent)

    @rule()
    def turns_start(self) -> None:
        for plan in self.inbox.next_turns():
            self.running.append(plan)
            self.hub.started.update((m.seq, plan.id) for m in plan.incoming)

    @rule(data=st.data())
    def a_turn_ends(self, data: st.DataObject) -> None:
        if not self.running:
            return
        plan = self.running.pop(data.draw(st.integers(0, len(self.running) - 1)))
        self.inbox.ended(plan.thread_id)
        for m in plan.incoming:
            del self.hub.unsettled[m.seq]

    @rule()
    def the_connection_is_lost_and_resumed(self) -> None:
        waiting = tuple(pending(m, self.hub.started.get(s)) for s, m in self.hub.unsettled.items())
        head = len(self.hub.log)
        self.inbox.begin(ready(head, *self.hub.log, pending=waiting, resumed=True))

    @rule()
    def the_process_dies_and_another_starts(self) -> None:
        self.running = []
        self.inbox = self.fresh()

    @invariant()
    def threads_are_those_of_a_fresh_inbox(self) -> None:
        assert list(self.inbox.threads) == list(self.fresh().threads)

    @invariant()
    def every_wake_runs_or_waits_exactly_once(self) -> None:
        running = [m.seq for plan in self.running for m in plan.incoming]
        waiting = sum(self.inbox.waiting(thread) for thread in THREADS)
        assert len(running) == len(set(running))
        assert len(running) + waiting == len(self.hub.unsettled)

    @invariant()
    def a_thread_has_one_turn_at_a_time_and_the_limit_holds(self) -> None:
        threads = [plan.thread_id for plan in self.running]
        assert len(threads) == len(set(threads)) <= self.concurrency


TestInbox = InboxMachine.TestCase
