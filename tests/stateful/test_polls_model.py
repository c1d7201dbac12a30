"""Voters, two who close, a store that fails, time that passes and a hub that comes back: the result
is that of the votes that were accepted, and its thread reads it once."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubbub.mods.polls.mod import PollsConfig, PollsMod
from tests.examples import examples
from tests.interaction.hand_clock import HandClock
from tests.interaction.mods.workplace import at_time
from tests.interaction.peers import DEADLINE_S, Frame, Peer, config
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

VOTERS = {"ann": "human", "bot": "agent", "dot": "agent"}
DESK = "channel.desk"
FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    channels={"desk": {"members": "all"}},
)


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


class PollsMachine(RuleBasedStateMachine):
    """The model: what each voter may have voted for, and when the poll has ended."""

    @initialize(secret=st.booleans(), span=st.sampled_from([None, 100, 1000]))
    def start(self, secret: bool, span: int | None) -> None:
        self.folder = TemporaryDirectory()
        self.clock = HandClock()
        self.secret, self.closed = secret, False
        self.deadline = None if span is None else self.clock.wall + span
        self.votes: dict[str, tuple[int, ...]] = {}
        self.begin()
        args: dict[str, Any] = {"deadline": at_time(self.deadline)} if self.deadline else {}
        asked = self.ask(
            "ann",
            "create_poll",
            thread=DESK,
            question="?",
            options=["a", "b", "c"],
            secret=secret,
            multiple=True,
            **args,
        )
        assert self.life.run(asked)["op"] == "result"

    def begin(self) -> None:
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'x.db'}")
        mods = [PollsMod(PollsConfig(announce=False, time_limit=DEADLINE_S))]
        self.life = HubLife(FILE, self.store, mods, clock=self.clock)
        self.peers: dict[str, Peer] = {
            name: self.life.run(self.life.network.join(name, kind)) for name, kind in VOTERS.items()
        }

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.run(self.told_in_the_end())
            self.life.end()
            self.folder.cleanup()

    async def ask(self, who: str, name: str, **args: Any) -> Frame:
        peer = self.peers[who]
        return await peer.answer(await peer.post(name, **args))

    @property
    def over(self) -> bool:
        return self.closed or (self.deadline is not None and self.clock.wall >= self.deadline)

    @rule(down=st.sampled_from([0, 0, 50, 500]))
    def restart(self, down: int) -> None:
        self.life.end()
        self.clock.wall += down
        self.begin()
        self.life.run(self.check())

    @rule(seconds=st.sampled_from([10, 70, 300]), failing=st.sampled_from([0, 0, 1, 2]))
    def time_passes(self, seconds: int, failing: int) -> None:
        self.life.run(self.passes(seconds, failing))
        self.life.run(self.check())

    async def passes(self, seconds: int, failing: int) -> None:
        self.store.failing = failing
        self.clock.wall += seconds
        self.life.network.hub.mods.look()
        await self.life.network.quiet()
        self.store.failing = 0

    @rule(
        deeds=st.lists(DEEDS, min_size=1, max_size=4, unique_by=lambda deed: deed.who),
        closing=st.sampled_from([0, 0, 0, 1, 2]),
        failing=st.sampled_from([0, 0, 0, 1, 2]),
    )
    def one_breath(self, deeds: list[Deed], closing: int, failing: int) -> None:
        """All at once: votes of different people, and some who close the poll."""
        self.store.failing = failing
        self.life.run(self.breathe(deeds, closing))
        self.store.failing = 0
        self.life.run(self.check())

    async def breathe(self, deeds: list[Deed], closing: int) -> None:
        was_over = self.over
        votes = [self.vote(deed) for deed in deeds]
        closes = [self.ask("ann", "close_poll", poll="p1") for _ in range(closing)]
        answers = await asyncio.gather(*closes, *votes)
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
            poll = (await self.ask("bot", "read_poll", poll="p1"))["value"]["poll"]
            self.closed = poll["state"] == "closed"

    async def vote(self, deed: Deed) -> Frame:
        if deed.options:
            return await self.ask(deed.who, "vote", poll="p1", options=list(deed.options))
        return await self.ask(deed.who, "retract_vote", poll="p1")

    def counts(self) -> list[int]:
        found = Counter(option for options in self.votes.values() for option in options)
        return [found[n] for n in (1, 2, 3)]

    async def check(self) -> None:
        """What must hold whenever nothing is under way."""
        messages, read = await self.results(), await self.read()
        while (again := await self.read()) != read:  # it was just about to end
            read = again
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

    async def read(self) -> Frame:
        read: Frame = (await self.ask("bot", "read_poll", poll="p1"))["value"]
        return read

    async def results(self) -> list[Frame]:
        await self.life.network.quiet()
        page = (await self.ask("dot", "read_thread", thread=DESK))["value"]["messages"]
        return [message for message in page if message["sender_id"] == "hub"]

    async def told_in_the_end(self) -> None:
        if not self.over:
            assert (await self.ask("ann", "close_poll", poll="p1"))["op"] == "result"
        while not await self.results():
            await self.passes(61, 0)
        await self.passes(61, 0)
        assert len(await self.results()) == 1


TestPolls = pytest.mark.slow(
    pytest.mark.behaviour("M-155", "M-157", "M-158", "M-159")(PollsMachine.TestCase)
)
TestPolls.settings = settings(max_examples=examples(20), stateful_step_count=12, deadline=None)
