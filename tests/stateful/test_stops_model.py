"""Stops, resumes and takeovers at once: nothing continues where it is stopped, and each sender gets
an answer or a notice."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.network.queries import PendingWakes, TurnById, WakeOf
from hubbub.protocol.messages import Message
from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stop_harness import beginning
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife
from tests.stateful.mod_life import FAILING

PEOPLE = ("ann", "bob")
AGENTS = ("calc", "bot")
FILE = config(
    network={
        "limits": {"burst": 100_000, "calls_per_second": 1_000_000},
        "budgets": {"wakes": None, "fan_out": None, "agents": None, "wall_clock": None},
    },
    channels={"desk": {"members": "all"}},
)


class Action(NamedTuple):
    """An action of a person or an agent."""

    what: str
    who: str
    about: str
    """The agent, or the target of a stop."""


TARGETS = ("calc", "bot", "channel.desk", "dm.ann.calc", "all")
ACTIONS = st.one_of(
    st.builds(Action, st.just("ask"), st.sampled_from(PEOPLE), st.sampled_from([*AGENTS, "desk"])),
    st.builds(
        Action, st.sampled_from(["begin", "begin", "answer", "end"]), st.sampled_from(AGENTS),
        st.just(""),
    ),
    st.builds(
        Action, st.sampled_from(["stop", "resume"]), st.sampled_from(PEOPLE),
        st.sampled_from(TARGETS),
    ),
    st.builds(
        Action, st.sampled_from(["stop turn", "take over", "hand back"]), st.sampled_from(PEOPLE),
        st.sampled_from(AGENTS),
    ),
)  # fmt: skip


class StopsMachine(RuleBasedStateMachine):
    """The invariants are checked against the log, without a model."""

    @initialize()
    def start(self) -> None:
        self.store = MoodyStore()
        self.life = HubLife(FILE, self.store)
        join = self.life.network.join
        self.peers: dict[str, Peer] = {name: self.life.run(join(name)) for name in PEOPLE}
        for name in AGENTS:
            self.peers[name] = self.life.run(join(name, "agent", turns=True))
        self.life.run(self.peers["ann"].say("calc", "hello"))
        self.wakes: dict[str, list[Frame]] = {name: [] for name in AGENTS}
        self.turns: dict[str, list[str]] = {name: [] for name in AGENTS}
        self.refused = False

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()

    @rule(actions=st.lists(ACTIONS, min_size=1, max_size=8), failing=FAILING)
    def act_at_once(self, actions: list[Action], failing: int) -> None:
        self.store.failing = failing
        self.refused |= failing > 0
        self.life.run(self.act(actions))
        self.store.failing = 0
        self.life.run(self.check())

    async def act(self, actions: list[Action]) -> None:
        """Posts all actions at once, then collects the agents' wakes."""
        posted = [(action, ref) for action in actions if (ref := await self.post(action))]
        for action, ref in posted:
            answer = await self.peers[action.who].answer(ref)
            expected = {"store_unavailable", "stopped", "taken_over", "turn_over", "forbidden"}
            assert answer["op"] == "result" or answer["code"] in expected, (action, answer)
        await self.life.network.quiet()
        async with self.life.network.hub.services.ending.exclusive():
            pass
        for name in AGENTS:
            await self.collect_wakes(name)

    async def collect_wakes(self, name: str) -> None:
        peer = self.peers[name]
        try:
            events = await peer.sync()
        except ConnectionError:
            events = []
        self.wakes[name] += [event for event in events if event.get("wake")]

    async def post(self, action: Action) -> str | None:
        what, who, about = action
        peer = self.peers[who]
        target: dict[str, Any] = {"scope": "agent", "target": about}
        if about.startswith(("channel.", "dm.")):
            target["scope"] = "thread"
        elif about == "all":
            target = {"scope": "all"}
        match what:
            case "ask" if about == "desk":
                return await peer.post("post_to_channel", channel="desk", text="@calc @bot ?")
            case "ask":
                return await peer.post("send_text_message", to=about, text="?")
            case "begin" if self.wakes[who]:
                start = beginning(self.wakes[who].pop(0))
                self.turns[who].append(start["id"])
                return await peer.post("begin_turn", start=start)
            case "answer" if self.turns[who]:
                turn = self.turns[who][-1]
                return await peer.post("post_to_channel", channel="desk", text="!", cause=turn)
            case "end" if self.turns[who]:
                end = {"id": self.turns[who][-1], "outcome": "finished"}
                record = await self.life.network.hub.store.read(TurnById(end["id"]))
                return await peer.post("end_turn", end=end) if record else None
            case "stop" | "resume":
                return await peer.post(what, **target)
            case "stop turn" if self.turns[about]:
                return await peer.post("stop", scope="turn", target=self.turns[about][-1])
            case "take over":
                held = self.life.network.hub.kernel.state.takeovers.holder(about)
                return None if held else await peer.post("take_over", agent=about)
            case "hand back":
                return await peer.post("hand_back", agent=about)
        return None

    async def check(self) -> None:
        """Asserts what must hold while nothing is in flight."""
        hub = self.life.network.hub
        log = [json.loads(e.body) for e in await hub.store.log(0, hub.kernel.log.head, 10_000)]
        notices = [body["content"] for body in log if body["sender_kind"] == "system"]
        notified = {id for notice in notices for id in notice.get("messages", ())}
        notified |= {notice.get("message", "") for notice in notices}
        for agent in AGENTS:
            for row in await hub.store.read(PendingWakes(agent, hub.kernel.log.head)):
                thread_id = Message.model_validate_json(row.body).thread_id
                stopped = hub.kernel.state.stops.of(agent, thread_id)
                assert stopped is None or self.refused, (agent, row)
            for body in log:
                wake = await hub.store.read(WakeOf(agent, body["seq"]))
                if body["sender_kind"] != "human" or wake is None:
                    continue
                if wake.reply is None:
                    handled = wake.reason in ("stopped", "taken_over") and body["id"] in notified
                elif wake.state == "ended":
                    turn = await hub.store.read(TurnById(wake.taken or ""))
                    handled = body["id"] in notified or (turn is not None and bool(turn.sent))
                else:
                    handled = True  # an answer can still come
                assert handled, (agent, body["id"], wake)


TestStops = pytest.mark.behaviour("H-20", "H-21", "H-23", "H-24", "H-25")(StopsMachine.TestCase)
TestStops.settings = settings(max_examples=examples(40), stateful_step_count=12, deadline=None)
