"""A budget holds whoever asks at the same time, whatever the disk refuses and whoever restarts."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from hubbub.network.queries import AccountOf, TurnById
from tests.examples import examples
from tests.interaction.accounts import limited
from tests.interaction.peers import Frame, Peer
from tests.interaction.stores import MoodyStore
from tests.stateful.hub_life import HubLife

AGENTS = ("a", "b", "c")
BUDGET = 1000
MOST = 300
"""The largest estimate."""
KEYS = ("1", "2", "3")


class Asked(NamedTuple):
    """A question that an agent wants to ask."""

    agent: str
    key: str
    tokens: int


class Answered(NamedTuple):
    """A step: how much of the estimates it settles it has used, in tenths."""

    agent: str
    n: int
    settles: tuple[str, ...]
    tenths: int


ASKED = st.builds(Asked, st.sampled_from(AGENTS), st.sampled_from(KEYS), st.integers(0, MOST))
ANSWERED = st.builds(
    Answered,
    st.sampled_from(AGENTS),
    st.integers(1, 3),
    st.sets(st.sampled_from(KEYS)).map(lambda keys: tuple(sorted(keys))),
    st.integers(0, 10),
)


class BudgetMachine(RuleBasedStateMachine):
    """The model: what each agent has reserved, by key, and what its steps cost, by number.

    Three agents have a turn each because of one message of a person: they share its budget. A step
    costs no more than was reserved for it, besides what its number had cost before.
    """

    @initialize()
    def start(self) -> None:
        self.place = tempfile.TemporaryDirectory()
        self.reservations: dict[str, dict[str, int]] = {agent: {} for agent in AGENTS}
        self.steps: dict[tuple[str, int], int] = {}
        self.peers: dict[str, Peer] = {}
        self.open()
        asked = self.run(self.ann.say(list(AGENTS), "go"))
        self.interaction = f"i{asked['seq']}"
        self.turns = {agent: f"{agent}-{asked['id']}" for agent in AGENTS}
        for agent, turn in self.turns.items():
            start = {"id": turn, "thread_id": asked["thread_id"], "messages": [asked["id"]]}
            self.run(self.peers[agent].call("begin_turn", start=start))

    def open(self) -> None:
        """Start a hub on what is there, and let everybody join."""
        self.store = MoodyStore(f"sqlite:{Path(self.place.name) / 'hub.db'}")
        daily = {"network": {"tokens": 10 * BUDGET}}
        self.life = HubLife(limited(tokens=BUDGET, daily=daily), self.store)
        self.run = self.life.run
        self.ann = self.run(self.life.network.join("ann"))
        for agent in AGENTS:
            self.join(agent)

    def join(self, agent: str) -> None:
        self.peers[agent] = self.run(self.life.network.join(agent, "agent", turns=True))

    def teardown(self) -> None:
        if hasattr(self, "life"):
            self.life.end()
            self.place.cleanup()

    # The model ----------------------------------------------------------------------------

    @property
    def used(self) -> int:
        return sum(self.steps.values())

    @property
    def reserved(self) -> int:
        return sum(sum(reservations.values()) for reservations in self.reservations.values())

    # What agents do -----------------------------------------------------------------------

    @rule(questions=st.lists(ASKED, min_size=1, max_size=6))
    def ask(self, questions: list[Asked]) -> None:
        """All at once; the hub takes what one agent asks in its order."""
        answers = self.run(self.all_at_once(questions))
        for question, answer in zip(questions, answers, strict=True):
            if answer["op"] == "result":
                self.reservations[question.agent][question.key] = question.tokens
            else:
                assert answer["code"] == "budget_exhausted"
                (left,) = answer["details"]["left"]
                assert (left["limit"], left["of"]) == ("tokens", BUDGET)
                assert left["used"] + question.tokens > BUDGET

    async def all_at_once(self, questions: list[Asked]) -> list[Frame]:
        refs = [
            await self.peers[agent].post(
                "reserve_budget", turn=self.turns[agent], key=key, tokens=tokens
            )
            for agent, key, tokens in questions
        ]
        return [
            await self.peers[question.agent].answer(ref)
            for question, ref in zip(questions, refs, strict=True)
        ]

    @rule(question=ASKED)
    def ask_alone(self, question: Asked) -> None:
        """Exactly what fits is given."""
        before = self.reservations[question.agent].get(question.key, 0)
        fits = self.used + self.reserved - before + question.tokens <= BUDGET
        (answer,) = self.run(self.all_at_once([question]))
        assert (answer["op"] == "result") == fits
        if fits:
            self.reservations[question.agent][question.key] = question.tokens

    @rule(steps=st.lists(ANSWERED, min_size=1, max_size=5), failing=st.integers(0, 3))
    def record(self, steps: list[Answered], failing: int) -> None:
        """Steps of several agents at once, while the disk refuses some commits."""
        priced = [(step, *self.price(step)) for step in self.without_repeats(steps)]
        self.store.failing = failing
        answers = self.run(self.recorded([(step, cost) for step, cost, _ in priced]))
        self.store.failing = 0
        for (step, cost, settled), answer in zip(priced, answers, strict=True):
            if answer["op"] == "result":
                self.steps[step.agent, step.n] = cost
                for key in settled:
                    del self.reservations[step.agent][key]
            else:
                assert answer["code"] == "store_unavailable"

    @staticmethod
    def without_repeats(steps: list[Answered]) -> list[Answered]:
        """At most one step of an agent: its price depends on what is reserved."""
        return list({step.agent: step for step in steps}.values())

    def price(self, step: Answered) -> tuple[int, list[str]]:
        """What the step costs, and the keys that it settles."""
        reservations = self.reservations[step.agent]
        settled = [key for key in step.settles if key in reservations]
        estimate = sum(reservations[key] for key in settled)
        before = self.steps.get((step.agent, step.n), 0)
        return (before + estimate) * step.tenths // 10, settled

    async def recorded(self, steps: list[tuple[Answered, int]]) -> list[Frame]:
        refs = [
            await self.peers[step.agent].post(
                "record_step",
                turn=self.turns[step.agent],
                step={"n": step.n, "tokens_in": cost // 3, "tokens_out": cost - cost // 3},
                settles=list(step.settles),
            )
            for step, cost in steps
        ]
        return [
            await self.peers[step.agent].answer(ref)
            for (step, _), ref in zip(steps, refs, strict=True)
        ]

    # What goes wrong ----------------------------------------------------------------------

    @rule(agent=st.sampled_from(AGENTS))
    def an_agent_dies(self, agent: str) -> None:
        self.run(self.peers[agent].close())
        self.run(self.life.network.gone(agent))
        self.reservations[agent] = {}
        self.join(agent)

    @rule()
    def the_hub_restarts(self) -> None:
        for peer in (self.ann, *self.peers.values()):
            self.run(peer.close())
        self.life.end()
        self.reservations = {agent: {} for agent in AGENTS}
        self.open()

    # What holds ---------------------------------------------------------------------------

    @invariant()
    def the_budget_holds(self) -> None:
        if hasattr(self, "interaction"):
            assert self.used + self.reserved <= BUDGET
            budget = self.run(self.ann.call("read_budget", interaction=self.interaction))
            assert budget["used"]["tokens"] == self.used + self.reserved
            day = self.run(self.ann.call("read_spending"))
            assert [left["used"] for left in day["today"]] == [self.used + self.reserved]
            assert _tokens(day["total"]) == self.used

    @invariant()
    def the_store_has_the_sums_of_the_steps(self) -> None:
        if hasattr(self, "interaction"):
            self.run(self.check_store())

    async def check_store(self) -> None:
        ledger = await self.store.read(AccountOf(int(self.interaction[1:])))
        assert ledger is not None
        assert ledger.tokens_in + ledger.tokens_out == self.used
        assert ledger.turns == len(AGENTS)
        for agent, turn in self.turns.items():
            stored = await self.store.read(TurnById(turn))
            assert stored is not None
            found = {(agent, step["n"]): _tokens(step) for step in map(json.loads, stored.steps)}
            assert found == {key: cost for key, cost in self.steps.items() if key[0] == agent}


def _tokens(sums: Any) -> int:
    total: int = sums.get("tokens_in", 0) + sums.get("tokens_out", 0)
    return total


TestBudget = pytest.mark.behaviour("H-13", "H-9", "H-7")(BudgetMachine.TestCase)
TestBudget.settings = settings(max_examples=examples(20), stateful_step_count=20, deadline=None)
