"""Several participants who react to the same messages at once, with a store that fails and a hub
that comes back: what is counted is what was told as done."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import rule

from hubbub.mods.api import Mod
from hubbub.mods.reactions.mod import ReactionsConfig, ReactionsMod
from tests.interaction.peers import Frame
from tests.stateful.mod_life import FAILING, ModMachine, as_test

pytestmark = pytest.mark.behaviour("M-236", "M-237")
IDS = ("m1", "m2")
MOST_KINDS, MOST_EACH, NAMED = 3, 2, 2


class Ask(NamedTuple):
    """Something that a participant asks for."""

    who: str
    verb: str
    id: str
    emoji: str
    twice: bool


ASKS = st.builds(
    Ask,
    st.sampled_from(sorted(ModMachine.people)),
    st.sampled_from(["add", "remove", "toggle"]),
    st.sampled_from(IDS),
    st.sampled_from("👍🎉👀🔥"),
    st.booleans(),
)


class ReactionsMachine(ModMachine):
    """The model: who has reacted to what, by the answers alone."""

    def mods(self) -> list[Mod]:
        limits = ReactionsConfig(max_kinds=MOST_KINDS, max_each=MOST_EACH, who=NAMED)
        return [ReactionsMod(limits)]

    def prepare(self) -> None:
        self.there = set[tuple[str, str, str]]()
        for id in IDS:
            self.run(self.value("ann", "broadcast_text_message", text=id))

    @rule(asks=st.lists(ASKS, min_size=1, max_size=8), failing=FAILING)
    def react(self, asks: list[Ask], failing: int) -> None:
        self.breathe(failing, lambda: self.make_all(asks))

    async def make_all(self, asks: list[Ask]) -> None:
        """Each answer that tells of a change has turned one thing over."""
        answered = await asyncio.gather(*map(self.make, asks))
        for ask, answers in zip(asks, answered, strict=True):
            fine = [answer["value"] for answer in answers if answer["op"] == "result"]
            assert all(value == fine[0] for value in fine), "a repetition gets the first answer"
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] in ("store_unavailable", "limit"), answer
            if fine and fine[0]["changed"]:
                self.there ^= {(ask.id, ask.emoji, ask.who)}

    async def make(self, ask: Ask) -> list[Frame]:
        args = {"message_id": ask.id, "emoji": ask.emoji}
        return await self.repeated(ask.who, f"{ask.verb}_reaction", ask.twice, **args)

    async def check(self) -> None:
        """What everybody reads is the model."""
        for name in self.people:
            by_id = await self.value(name, "list_reactions", message_ids=list(IDS))
            assert by_id == await self.value(name, "list_reactions", thread="broadcast")
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
            assert (each["count"], each["mine"]) == (len(who), me in who)
            assert set(each["who"]) <= who
            assert (len(each["who"]), each["more"]) == (min(NAMED, len(who)), len(who) > NAMED)


TestReactions = as_test(ReactionsMachine, 20)
