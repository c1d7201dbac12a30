"""What a turn shows of itself, without an agent."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.agents.turn.activity import TurnActivities, TurnActivity
from tests.unit.agents.builders import message, plan

WITHIN_S = 30.0
SOON_S = 0.005
PLAN = plan(message(1))


class Told:
    """Activities, and what those hear of them who read along in the turn's thread."""

    def __init__(self) -> None:
        self.heard: list[dict[str, JsonValue]] = []
        self.activities = TurnActivities(self.tell)
        self._news = asyncio.Event()

    async def tell(self, thread_id: str, data: JsonValue) -> None:
        assert thread_id == PLAN.thread_id
        assert isinstance(data, dict)
        self.heard.append(data)
        self._news.set()

    @property
    def states(self) -> list[JsonValue]:
        return [data["state"] for data in self.heard]

    async def until(self, state: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not self.heard or self.heard[-1]["state"] != state:
                self._news.clear()
                await self._news.wait()


@pytest.fixture
async def told() -> Told:
    return Told()


def said(state: str, step: int, **more: Any) -> dict[str, JsonValue]:
    return {"state": state, "turn": PLAN.id, "step": step, **more}


async def test_every_change_is_told_with_turn_and_step_and_the_end_once(told: Told) -> None:
    async with told.activities.of(PLAN):
        pass
    assert told.heard == [], "nothing was shown, so nothing is over"
    async with told.activities.of(PLAN) as activity:
        for _ in range(3):
            await activity.show("thinking", 1)
        await activity.show("calling", 1, ["add", "look", "add"])
        await activity.show("thinking", 2)
    async with activity.waiting("bob"):  # what a turn left behind shows nothing any more
        pass
    assert told.heard == [
        said("thinking", 1),
        said("calling", 1, tool="add, look"),
        said("thinking", 2),
        said("idle", 2),
    ]


async def gives_up(activity: TurnActivity) -> None:
    async with activity.waiting("carol"):
        raise TimeoutError


async def test_who_is_waited_for_is_named_until_the_last_has_answered(told: Told) -> None:
    async with told.activities.of(PLAN) as activity:
        async with activity.waiting("bob"), activity.waiting("bob"):
            assert told.heard == [said("waiting", 1, **{"for": "bob"})]
            with pytest.raises(TimeoutError):
                await gives_up(activity)
            assert told.heard[-2]["for"] == "bob, carol"
            assert told.heard[-1]["for"] == "bob"
        assert told.heard[-1] == said("thinking", 1)
    assert told.states == ["waiting", "waiting", "waiting", "thinking", "idle"]


async def test_what_lasts_is_shown_as_it_stands_then_and_nothing_else(told: Told) -> None:
    async with told.activities.of(PLAN, SOON_S) as activity:
        await activity.show("thinking", 1)
        await activity.show("thinking", 2)
        await told.until("thinking")
        for _ in range(100):  # faster than anybody could read
            async with activity.waiting("bob"):
                pass
        async with activity.waiting("bob"):
            await told.until("waiting")
        await told.until("thinking")
        await activity.show("calling", 2, ["add"])
        await told.until("calling")
    assert told.heard[0] == said("thinking", 2)
    assert told.states == ["thinking", "waiting", "thinking", "calling", "idle"]


@pytest.mark.behaviour("H-83")
async def test_a_turn_that_waits_for_a_person_is_shown_until_it_goes_on(told: Told) -> None:
    async with told.activities.of(PLAN) as activity:
        await activity.show("calling", 2, ["pay"])
        await activity.park(2)
    assert told.heard[-1] == said("waiting", 2, **{"for": "approval"})
    await told.activities.repeat()
    async with told.activities.of(plan(message(2))) as activity:
        await activity.show("thinking", 1)
    assert told.states == ["calling", "waiting", "waiting", "thinking", "idle", "waiting"]
    async with told.activities.of(PLAN) as activity:
        await activity.show("thinking", 3)
    await told.activities.repeat()
    assert told.states[-2:] == ["thinking", "idle"]


@pytest.mark.behaviour("H-83")
async def test_a_turn_that_will_not_go_on_is_idle(told: Told) -> None:
    async with told.activities.of(PLAN) as activity:
        await activity.park(1)
    await told.activities.drop(PLAN.id)
    await told.activities.drop(PLAN.id)
    assert told.states == ["waiting", "idle"]
