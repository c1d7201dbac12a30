"""Several participants who react to the same messages at once, with a store that fails and a hub
that comes back: what is counted is what was told as done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.mods.reactions.mod import ReactionsConfig, ReactionsMod
from tests.examples import examples
from tests.interaction.peers import Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

PEOPLE = ("ann", "bob", "cat", "dan")
IDS = ("m1", "m2")
MOST_KINDS, MOST_EACH, NAMED = 3, 2, 2
FILE = config(network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}})


class Ask(NamedTuple):
    """Something that a participant asks for."""

    who: str
    verb: Literal["add", "remove", "toggle"]
    id: str
    emoji: str
    twice: bool
    """A second time with the same cid, as after a lost connection."""


ASKS = st.builds(
    Ask,
    st.sampled_from(PEOPLE),
    st.sampled_from(["add", "remove", "toggle"]),
    st.sampled_from(IDS),
    st.sampled_from("👍🎉👀🔥"),
    st.booleans(),
)


class ReactionsMachine(RuleBasedStateMachine):
    """The model: who has reacted to what, by the answers alone."""

    @initialize()
    def start(self) -> None:
        self.folder = TemporaryDirectory()
        self.there = set[tuple[str, str, str]]()
        self.cids = 0
        self.begin()
        for id in IDS:
            sent = self.life.run(self.peers["ann"].call("broadcast_text_message", text=id))
            assert sent["id"] == id

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        limits = ReactionsConfig(max_kinds=MOST_KINDS, max_each=MOST_EACH, who=NAMED)
        self.life = HubLife(FILE, self.store, [ReactionsMod(limits)])
        join = self.life.network.join
        self.peers: dict[str, Peer] = {name: self.life.run(join(name)) for name in PEOPLE}

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.folder.cleanup()

    @rule()
    def restart(self) -> None:
        self.life.end()
        self.begin()
        self.life.run(self.check())

    @rule(asks=st.lists(ASKS, min_size=1, max_size=8), failing=st.sampled_from([0, 0, 0, 1, 2]))
    def one_breath(self, asks: list[Ask], failing: int) -> None:
        self.store.failing = failing
        self.life.run(self.breathe(asks))
        self.store.failing = 0
        self.life.run(self.check())

    async def breathe(self, asks: list[Ask]) -> None:
        """All at once: each answer that tells of a change has turned one thing over."""
        answered = await asyncio.gather(*map(self.ask, asks))
        for ask, answers in zip(asks, answered, strict=True):
            fine = [answer["value"] for answer in answers if answer["op"] == "result"]
            assert all(value == fine[0] for value in fine), "a repetition gets the first answer"
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] in ("store_unavailable", "limit"), answer
            if fine and fine[0]["changed"]:
                self.there ^= {(ask.id, ask.emoji, ask.who)}

    async def ask(self, ask: Ask) -> list[Frame]:
        self.cids += 1
        peer, cid = self.peers[ask.who], f"c{self.cids}"
        args = {"message_id": ask.id, "emoji": ask.emoji}
        refs = [
            await peer.post(f"{ask.verb}_reaction", cid=cid, **args) for _ in range(1 + ask.twice)
        ]
        return [await peer.answer(ref) for ref in refs]

    async def check(self) -> None:
        """What everybody reads is the model."""
        for name, peer in self.peers.items():
            by_id = await peer.call("list_reactions", message_ids=list(IDS))
            by_thread = await peer.call("list_reactions", thread="broadcast")
            assert by_id == by_thread
            told = {m["message_id"]: m["reactions"] for m in by_id["messages"]}
            assert all(told.values()), "messages without reactions are not told of"
            for id in IDS:
                self.check_message(id, name, told.get(id, []))

    def check_message(self, id: str, me: str, told: list[dict[str, Any]]) -> None:
        kinds = {emoji for message, emoji, _ in self.there if message == id}
        assert len(kinds) <= MOST_KINDS
        assert sorted(each["emoji"] for each in told) == sorted(kinds)
        assert sum(each["mine"] for each in told) <= MOST_EACH
        for each in told:
            who = {w for message, emoji, w in self.there if (message, emoji) == (id, each["emoji"])}
            assert each["count"] == len(who)
            assert each["mine"] == (me in who)
            assert set(each["who"]) <= who
            assert len(each["who"]) == min(NAMED, len(who))
            assert each["more"] == (len(who) > NAMED)


TestReactions = pytest.mark.slow(pytest.mark.behaviour("M-236", "M-237")(ReactionsMachine.TestCase))
TestReactions.settings = settings(max_examples=examples(20), stateful_step_count=12, deadline=None)
