"""Parked turns, and whether a turn has read untrusted content."""

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
        self.resumed: list[TurnPlan] = []
        self.parking = ParkedTurns(self.resumed.append)

    def test_a_parked_turn_resumes_once_after_a_decision_unless_dropped(self) -> None:
        self.parking.park(PLAN)
        self.parking.ended(PLAN.id)
        assert self.resumed == []
        self.parking.decided(PLAN.id, running=False)
        self.parking.decided(PLAN.id, running=False)
        assert self.resumed == [PLAN]
        self.resumed.clear()
        self.parking.park(PLAN)
        assert self.parking.drop(PLAN.id)
        assert not self.parking.drop(PLAN.id)
        self.parking.decided(PLAN.id, running=False)
        assert self.resumed == []

    def test_a_decision_while_the_turn_runs_resumes_it_once_it_is_parked(self) -> None:
        self.parking.decided(PLAN.id, running=True)
        self.parking.park(PLAN)
        assert self.resumed == []
        self.parking.ended(PLAN.id)
        assert self.resumed == [PLAN]
        assert not self.parking.drop(PLAN.id), "no longer parked"

    def test_a_decision_is_forgotten_when_the_turn_ends_without_parking(self) -> None:
        self.parking.decided(PLAN.id, running=True)
        self.parking.ended(PLAN.id)
        self.parking.park(PLAN)
        self.parking.ended(PLAN.id)
        assert self.resumed == []

    def test_a_recheck_resumes_all_parked_turns_and_running_ones_once_they_park(self) -> None:
        self.parking.park(PLAN)
        self.parking.recheck([OTHER])
        assert self.resumed == [PLAN]
        self.parking.park(OTHER)
        self.parking.ended(OTHER.id)
        assert self.resumed == [PLAN, OTHER]

    def test_clear_forgets_parked_turns_and_decisions(self) -> None:
        self.parking.park(PLAN)
        self.parking.decided(OTHER.id, running=True)
        self.parking.clear()
        self.parking.park(OTHER)
        self.parking.ended(OTHER.id)
        self.parking.recheck([])
        assert self.resumed == [OTHER]


@pytest.mark.behaviour("H-88")
def test_the_first_untrusted_sources_are_reported_and_restored_from_the_record() -> None:
    trust = TrustState()
    assert trust.read([]) == ()
    assert not trust.untrusted
    assert trust.read(["fetch", "fetch", "m7"]) == ("fetch", "m7")
    assert trust.untrusted
    assert trust.read(["fetch"]) == (), "already reported"
    assert TrustState(steps=[Step(n=1), Step(n=2, untrusted=("fetch",))]).untrusted
    assert not TrustState(steps=[Step(n=1, notes=("fetch",))]).untrusted
    assert TrustState(untrusted=True).read(["fetch"]) == ()
    other = message(2).model_copy(update={"untrusted": True})
    assert untrusted_ids([message(1), other]) == ["m2"]
