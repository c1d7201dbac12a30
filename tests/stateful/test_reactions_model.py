"""Reactions to the same messages at once, with store failures and restarts: the counts are those of
the confirmed changes."""

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


class Reaction(NamedTuple):
    """A requested change."""

    who: str
    verb: str
    id: str
    emoji: str
    twice: bool


REACTIONS = st.builds(
    Reaction,
    st.sampled_from(sorted(ModMachine.people)),
    st.sampled_from(["add", "remove", "toggle"]),
    st.sampled_from(IDS),
    st.sampled_from("👍🎉👀🔥"),
    st.booleans(),
)


class ReactionsMachine(ModMachine):
    """The model: the reactions by message, emoji and participant, from the answers alone."""

    def mods(self) -> list[Mod]:
        limits = ReactionsConfig(max_kinds=MOST_KINDS, max_each=MOST_EACH, who=NAMED)
        return [ReactionsMod(limits)]

    def prepare(self) -> None:
        self.expected = set[tuple[str, str, str]]()
        for id in IDS:
            self.run(self.value("ann", "broadcast_text_message", text=id))

    @rule(reactions=st.lists(REACTIONS, min_size=1, max_size=8), failing=FAILING)
    def react(self, reactions: list[Reaction], failing: int) -> None:
        self.at_once(failing, lambda: self.make_all(reactions))

    async def make_all(self, reactions: list[Reaction]) -> None:
        """Each confirmed change adds or removes one reaction."""
        answered = await asyncio.gather(*map(self.make, reactions))
        for reaction, answers in zip(reactions, answered, strict=True):
            values = [answer["value"] for answer in answers if answer["op"] == "result"]
            assert all(value == values[0] for value in values), "a repetition got another answer"
            for answer in answers:
                if answer["op"] == "error":
                    assert answer["code"] in ("store_unavailable", "limit"), answer
            if values and values[0]["changed"]:
                self.expected ^= {(reaction.id, reaction.emoji, reaction.who)}

    async def make(self, reaction: Reaction) -> list[Frame]:
        args = {"message_id": reaction.id, "emoji": reaction.emoji}
        return await self.repeated(
            reaction.who, f"{reaction.verb}_reaction", reaction.twice, **args
        )

    async def check(self) -> None:
        """All participants read the model's reactions."""
        for name in self.people:
            by_id = await self.value(name, "list_reactions", message_ids=list(IDS))
            assert by_id == await self.value(name, "list_reactions", thread="broadcast")
            listed = {m["message_id"]: m["reactions"] for m in by_id["messages"]}
            assert all(listed.values()), "a message without reactions is listed"
            for id in IDS:
                self.check_message(id, name, listed.get(id, []))

    def check_message(self, id: str, me: str, listed: list[dict[str, Any]]) -> None:
        kinds = {emoji for message, emoji, _ in self.expected if message == id}
        assert len(kinds) <= MOST_KINDS
        assert sorted(each["emoji"] for each in listed) == sorted(kinds)
        assert sum(each["mine"] for each in listed) <= MOST_EACH
        for each in listed:
            who = {
                w for message, emoji, w in self.expected if (message, emoji) == (id, each["emoji"])
            }
            assert (each["count"], each["mine"]) == (len(who), me in who)
            assert set(each["who"]) <= who
            assert (len(each["who"]), each["more"]) == (min(NAMED, len(who)), len(who) > NAMED)


TestReactions = as_test(ReactionsMachine, 20)
