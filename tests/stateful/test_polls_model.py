"""Votes and closings at once, with store failures, passing time and restarts: the result is that of
the accepted votes, and is posted once."""

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


class Vote(NamedTuple):
    """A requested vote."""

    who: str
    options: tuple[int, ...]
    """Numbered from 1; empty to retract the vote."""


VOTES = st.builds(
    Vote,
    st.sampled_from(sorted(VOTERS)),
    st.lists(st.integers(1, 3), max_size=2, unique=True).map(sorted).map(tuple),
)


class PollsMachine(ModMachine):
    """The model: each voter's accepted options, and whether the poll has ended."""

    people = VOTERS

    def mods(self) -> list[Mod]:
        return [PollsMod(PollsConfig(announce=False, time_limit=DEADLINE_S))]

    @initialize(secret=st.booleans(), span=st.sampled_from([None, 100, 1000]))
    def create(self, secret: bool, span: int | None) -> None:
        self.start()
        self.secret, self.closed = secret, False
        self.deadline = None if span is None else self.clock.wall + span
        self.votes: dict[str, tuple[int, ...]] = {}
        args: dict[str, Any] = {"thread": DESK, "question": "?", "options": ["a", "b", "c"]}
        if self.deadline:
            args["deadline"] = at_time(self.deadline)
        self.run(self.value("ann", "create_poll", secret=secret, multiple=True, **args))

    def teardown(self) -> None:
        if hasattr(self, "votes"):
            self.run(self.check_final_result())
        super().teardown()

    @property
    def has_ended(self) -> bool:
        return self.closed or (self.deadline is not None and self.clock.wall >= self.deadline)

    @rule(seconds=st.sampled_from([10, 70, 300]), failing=FAILING)
    def time_passes(self, seconds: int, failing: int) -> None:
        self.at_once(failing, lambda: self.pass_time(seconds))

    async def pass_time(self, seconds: int) -> None:
        advance(self.life.network, self.clock, seconds)
        await self.life.network.quiet()

    @rule(
        votes=st.lists(VOTES, min_size=1, max_size=4, unique_by=lambda vote: vote.who),
        closing=st.sampled_from([0, 0, 0, 1, 2]),
        failing=FAILING,
    )
    def vote(self, votes: list[Vote], closing: int, failing: int) -> None:
        """Different people vote, and `closing` calls close the poll."""
        self.at_once(failing, lambda: self.do_all(votes, closing))

    async def do_all(self, votes: list[Vote], closing: int) -> None:
        had_ended = self.has_ended
        closes = [self.ask("ann", "close_poll", poll="p1") for _ in range(closing)]
        answers = await asyncio.gather(*closes, *map(self.do, votes))
        ends, answers = answers[:closing], answers[closing:]
        for vote, answer in zip(votes, answers, strict=True):
            if answer["op"] == "result":
                assert not had_ended, "a vote was accepted after the end"
                assert answer["value"]["options"] == list(vote.options)
                self.votes[vote.who] = vote.options
            else:
                assert answer["code"] in ("store_unavailable", "conflict"), answer
                if answer["code"] == "conflict":
                    assert had_ended or closing
        self.closed = self.closed or any(a["op"] == "result" for a in ends)
        if closing and not self.closed:
            # A failed call may still have closed it, if only the write of the message failed.
            poll = (await self.value("bot", "read_poll", poll="p1"))["poll"]
            self.closed = poll["state"] == "closed"

    async def do(self, vote: Vote) -> Frame:
        if vote.options:
            return await self.ask(vote.who, "vote", poll="p1", options=list(vote.options))
        return await self.ask(vote.who, "retract_vote", poll="p1")

    def counts(self) -> list[int]:
        counts = Counter(option for options in self.votes.values() for option in options)
        return [counts[n] for n in (1, 2, 3)]

    async def results(self) -> list[Any]:
        return await hub_messages(self.life.network, self.peers["dot"])

    async def check(self) -> None:
        messages, read = await self.results(), await self.value("bot", "read_poll", poll="p1")
        while (again := await self.value("bot", "read_poll", poll="p1")) != read:
            read = again  # it ended in between
        poll, ended = read["poll"], read["poll"]["state"] == "closed"
        assert ended <= self.has_ended
        assert ended or not self.closed
        assert poll["voters"] == sum(bool(options) for options in self.votes.values())
        counts = [option.get("votes") for option in read["options"]]
        assert counts == ([None] * 3 if self.secret and not ended else self.counts())
        if self.secret:
            assert not any(option["voters"] for option in read["options"])
            assert read["mine"] == ([] if ended else list(self.votes.get("bot", ())))
        assert len(messages) <= ended
        for message in messages:
            assert list(message["content"]["votes"].values()) == self.counts()

    async def check_final_result(self) -> None:
        if not self.has_ended:
            await self.value("ann", "close_poll", poll="p1")
        while not await self.results():
            await self.pass_time(61)
        await self.pass_time(61)
        assert len(await self.results()) == 1


TestPolls = as_test(PollsMachine, 20)
