"""Which turns wait for a person, and whether a turn has read something from outside."""

from __future__ import annotations

import pytest

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.turn.driver import TrustState, untrusted_ids
from hubbub.agents.turn_tasks import ParkedTurns
from hubbub.protocol.turns import Step
from tests.unit.agents.builders import message, plan

PLAN, OTHER = plan(message(1)), plan(message(2))


@pytest.mark.behaviour("H-83")
class TestParking:
    def setup_method(self) -> None:
        self.again: list[TurnPlan] = []
        self.parking = ParkedTurns(self.again.append)

    def test_a_parked_turn_goes_on_once_when_something_is_decided(self) -> None:
        self.parking.park(PLAN)
        self.parking.ended(PLAN.id)
        assert self.again == []
        self.parking.decided(PLAN.id, running=False)
        self.parking.decided(PLAN.id, running=False)
        assert self.again == [PLAN]
        self.again.clear()
        self.parking.park(PLAN)
        assert self.parking.drop(PLAN.id)
        assert not self.parking.drop(PLAN.id)
        self.parking.decided(PLAN.id, running=False)
        assert self.again == []

    def test_what_is_decided_while_the_turn_runs_is_not_forgotten(self) -> None:
        self.parking.decided(PLAN.id, running=True)
        self.parking.park(PLAN)
        assert self.again == []
        self.parking.ended(PLAN.id)
        assert self.again == [PLAN]
        assert not self.parking.drop(PLAN.id), "it waits no more"

    def test_it_means_nothing_for_a_turn_that_has_come_to_its_end(self) -> None:
        self.parking.decided(PLAN.id, running=True)
        self.parking.ended(PLAN.id)
        self.parking.park(PLAN)
        self.parking.ended(PLAN.id)
        assert self.again == [], "that was another time"

    def test_after_a_lost_connection_all_go_on_and_those_that_run_ask_once_more(self) -> None:
        self.parking.park(PLAN)
        self.parking.recheck([OTHER])
        assert self.again == [PLAN]
        self.parking.park(OTHER)
        self.parking.ended(OTHER.id)
        assert self.again == [PLAN, OTHER]

    def test_all_of_them_can_be_forgotten(self) -> None:
        self.parking.park(PLAN)
        self.parking.decided(OTHER.id, running=True)
        self.parking.clear()
        self.parking.park(OTHER)
        self.parking.ended(OTHER.id)
        self.parking.recheck([])
        assert self.again == [OTHER]


@pytest.mark.behaviour("H-88")
class TestTaint:
    def test_the_first_thing_from_outside_is_noted_and_all_that_another_process_needs(self) -> None:
        trust = TrustState()
        assert trust.read([]) == ()
        assert not trust.untrusted
        assert trust.read(["fetch", "fetch", "m7"]) == ("fetch", "m7")
        assert trust.untrusted
        assert trust.read(["fetch"]) == (), "it is known"
        assert TrustState(steps=[Step(n=1), Step(n=2, untrusted=("fetch",))]).untrusted
        assert not TrustState(steps=[Step(n=1, notes=("fetch",))]).untrusted
        trust = TrustState(untrusted=True)
        assert trust.read(["fetch"]) == ()
        other = message(2).model_copy(update={"untrusted": True})
        assert untrusted_ids([message(1), other]) == ["m2"]
