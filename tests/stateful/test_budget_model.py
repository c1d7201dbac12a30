"""A budget holds for concurrent agents, despite store failures and restarts of agents and hub."""

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


class Question(NamedTuple):
    """A reservation that an agent requests."""

    agent: str
    key: str
    tokens: int


class Step(NamedTuple):
    """A step, and the share of its settled estimates that it used, in tenths."""

    agent: str
    n: int
    settles: tuple[str, ...]
    tenths: int


QUESTIONS = st.builds(
    Question, st.sampled_from(AGENTS), st.sampled_from(KEYS), st.integers(0, MOST)
)
STEPS = st.builds(
    Step,
    st.sampled_from(AGENTS),
    st.integers(1, 3),
    st.sets(st.sampled_from(KEYS)).map(lambda keys: tuple(sorted(keys))),
    st.integers(0, 10),
)


class BudgetMachine(RuleBasedStateMachine):
    """The model: each agent's reservations by key, and the costs of its steps by number.

    One message of a person starts a turn of each of three agents, which share its budget. A step
    costs at most its reservations plus the earlier cost of the same number.
    """

    @initialize()
    def start(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.reservations: dict[str, dict[str, int]] = {agent: {} for agent in AGENTS}
        self.steps: dict[tuple[str, int], int] = {}
        self.peers: dict[str, Peer] = {}
        self.open()
        sent = self.run(self.ann.say(list(AGENTS), "go"))
        self.interaction = f"i{sent['seq']}"
        self.turns = {agent: f"{agent}-{sent['id']}" for agent in AGENTS}
        for agent, turn in self.turns.items():
            start = {"id": turn, "thread_id": sent["thread_id"], "messages": [sent["id"]]}
            self.run(self.peers[agent].call("begin_turn", start=start))

    def open(self) -> None:
        """Starts a hub on the stored log; all participants join."""
        self.store = MoodyStore(f"sqlite:{Path(self.folder.name) / 'hub.db'}")
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
            self.folder.cleanup()

    # The model ----------------------------------------------------------------------------

    @property
    def used(self) -> int:
        return sum(self.steps.values())

    @property
    def reserved(self) -> int:
        return sum(sum(reservations.values()) for reservations in self.reservations.values())

    # Calls --------------------------------------------------------------------------------

    @rule(questions=st.lists(QUESTIONS, min_size=1, max_size=6))
    def ask(self, questions: list[Question]) -> None:
        """Reserves all at once; the hub handles the calls of one agent in order."""
        answers = self.run(self.all_at_once(questions))
        for question, answer in zip(questions, answers, strict=True):
            if answer["op"] == "result":
                self.reservations[question.agent][question.key] = question.tokens
            else:
                assert answer["code"] == "budget_exhausted"
                (left,) = answer["details"]["left"]
                assert (left["limit"], left["of"]) == ("tokens", BUDGET)
                assert left["used"] + question.tokens > BUDGET

    async def all_at_once(self, questions: list[Question]) -> list[Frame]:
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

    @rule(question=QUESTIONS)
    def ask_alone(self, question: Question) -> None:
        """A reservation succeeds exactly if it fits."""
        before = self.reservations[question.agent].get(question.key, 0)
        fits = self.used + self.reserved - before + question.tokens <= BUDGET
        (answer,) = self.run(self.all_at_once([question]))
        assert (answer["op"] == "result") == fits
        if fits:
            self.reservations[question.agent][question.key] = question.tokens

    @rule(steps=st.lists(STEPS, min_size=1, max_size=5), failing=st.integers(0, 3))
    def record(self, steps: list[Step], failing: int) -> None:
        """Records steps of several agents at once, while some commits fail."""
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
    def without_repeats(steps: list[Step]) -> list[Step]:
        """At most one step per agent, since its price depends on the reservations."""
        return list({step.agent: step for step in steps}.values())

    def price(self, step: Step) -> tuple[int, list[str]]:
        """The cost of a step, and the keys that it settles."""
        reservations = self.reservations[step.agent]
        settled = [key for key in step.settles if key in reservations]
        estimate = sum(reservations[key] for key in settled)
        before = self.steps.get((step.agent, step.n), 0)
        return (before + estimate) * step.tenths // 10, settled

    async def recorded(self, steps: list[tuple[Step, int]]) -> list[Frame]:
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

    # Failures -----------------------------------------------------------------------------

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

    # Invariants ---------------------------------------------------------------------------

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
            costs = {(agent, step["n"]): _tokens(step) for step in map(json.loads, stored.steps)}
            assert costs == {key: cost for key, cost in self.steps.items() if key[0] == agent}


def _tokens(sums: Any) -> int:
    total: int = sums.get("tokens_in", 0) + sums.get("tokens_out", 0)
    return total


TestBudget = pytest.mark.behaviour("H-13", "H-9", "H-7")(BudgetMachine.TestCase)
TestBudget.settings = settings(max_examples=examples(20), stateful_step_count=20, deadline=None)
