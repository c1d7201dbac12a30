"""Voters, two who close, a store that fails, time that passes and a hub that comes back: the result
is that of the votes that were accepted, and its thread reads it once."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from hubbub.mods.api import Mod
from hubbub.mods.polls.mod import PollsConfig, PollsMod
from tests.interaction.mods.workspace import DESK, advance, at_time, hub_messages
from tests.interaction.peers import DEADLINE_S, Frame
from tests.stateful.mod_life import FAILING, ModMachine, as_test

pytestmark = pytest.mark.behaviour("M-155", "M-157", "M-158", "M-159")
VOTERS = {"ann": "human", "bot": "agent", "dot": "agent"}


class Deed(NamedTuple):
    """What somebody is about to do."""

    who: str
    options: tuple[int, ...]
    """What it votes for, from 1 on; empty: it takes its vote back."""


DEEDS = st.builds(
    Deed,
    st.sampled_from(sorted(VOTERS)),
    st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted).map(tuple),
)


class PollsMachine(ModMachine):
    """The model: what each voter may have voted for, and when the poll has ended."""

    people = VOTERS

    def mods(self) -> list[Mod]:
        return [PollsMod(PollsConfig(announce=False, time_limit=DEADLINE_S))]

    @initialize(secret=st.booleans(), span=st.sampled_from([None, 100, 1000]))
    def create(self, secret: bool, span: int | None) -> None:
        self.start()
        self.secret, self.closed = secret, False
        self.deadline = None if span is None else self.clock.wall + span
        self.votes: dict[str, tuple[int, ...]] = {}
        asked = {"thread": DESK, "question": "?", "options": ["a", "b", "c"]}
        more: dict[str, Any] = {"deadline": at_time(self.deadline)} if self.deadline else {}
        made = self.value("ann", "create_poll", secret=secret, multiple=True, **asked, **more)
        self.run(made)

    def teardown(self) -> None:
        if hasattr(self, "votes"):
            self.run(self.told_in_the_end())
        super().teardown()

    @property
    def over(self) -> bool:
        return self.closed or (self.deadline is not None and self.clock.wall >= self.deadline)

    @rule(seconds=st.sampled_from([10, 70, 300]), failing=FAILING)
    def time_passes(self, seconds: int, failing: int) -> None:
        self.breathe(failing, lambda: self.passes(seconds))

    async def passes(self, seconds: int) -> None:
        advance(self.life.network, self.clock, seconds)
        await self.life.network.quiet()

    @rule(
        deeds=st.lists(DEEDS, min_size=1, max_size=4, unique_by=lambda deed: deed.who),
        closing=st.sampled_from([0, 0, 0, 1, 2]),
        failing=FAILING,
    )
    def vote(self, deeds: list[Deed], closing: int, failing: int) -> None:
        """Votes of different people, and some who close the poll."""
        self.breathe(failing, lambda: self.do_all(deeds, closing))

    async def do_all(self, deeds: list[Deed], closing: int) -> None:
        was_over = self.over
        closes = [self.ask("ann", "close_poll", poll="p1") for _ in range(closing)]
        answers = await asyncio.gather(*closes, *map(self.do, deeds))
        ends, answers = answers[:closing], answers[closing:]
        for deed, answer in zip(deeds, answers, strict=True):
            if answer["op"] == "result":
                assert not was_over, "no vote after the end"
                assert answer["value"]["options"] == list(deed.options)
                self.votes[deed.who] = deed.options
            else:
                assert answer["code"] in ("store_unavailable", "conflict"), answer
                if answer["code"] == "conflict":
                    assert was_over or closing
        self.closed = self.closed or any(a["op"] == "result" for a in ends)
        if closing and not self.closed:
            # Who was told that the disk refuses may have ended it all the same: only the message
            # was refused.
            poll = (await self.value("bot", "read_poll", poll="p1"))["poll"]
            self.closed = poll["state"] == "closed"

    async def do(self, deed: Deed) -> Frame:
        if deed.options:
            return await self.ask(deed.who, "vote", poll="p1", options=list(deed.options))
        return await self.ask(deed.who, "retract_vote", poll="p1")

    def counts(self) -> list[int]:
        found = Counter(option for options in self.votes.values() for option in options)
        return [found[n] for n in (1, 2, 3)]

    async def results(self) -> list[Any]:
        return await hub_messages(self.life.network, self.peers["dot"])

    async def check(self) -> None:
        messages, read = await self.results(), await self.value("bot", "read_poll", poll="p1")
        while (again := await self.value("bot", "read_poll", poll="p1")) != read:
            read = again  # it was just about to end
        poll, ended = read["poll"], read["poll"]["state"] == "closed"
        assert ended <= self.over
        assert ended or not self.closed
        assert poll["voters"] == sum(bool(options) for options in self.votes.values())
        told = [option.get("votes") for option in read["options"]]
        assert told == ([None] * 3 if self.secret and not ended else self.counts())
        if self.secret:
            assert not any(option["voters"] for option in read["options"])
            assert read["mine"] == ([] if ended else list(self.votes.get("bot", ())))
        assert len(messages) <= ended
        for message in messages:
            assert list(message["content"]["votes"].values()) == self.counts()

    async def told_in_the_end(self) -> None:
        if not self.over:
            await self.value("ann", "close_poll", poll="p1")
        while not await self.results():
            await self.passes(61)
        await self.passes(61)
        assert len(await self.results()) == 1


TestPolls = as_test(PollsMachine, 20)
