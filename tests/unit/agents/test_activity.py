"""The activity of turns as the readers of a thread see it, without an agent."""

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


class Thread:
    """The activities of turns, and the signals that the readers of the thread receive."""

    def __init__(self) -> None:
        self.signals: list[dict[str, JsonValue]] = []
        self.activities = TurnActivities(self.send)
        self._sent = asyncio.Event()

    async def send(self, thread_id: str, data: JsonValue) -> None:
        assert thread_id == PLAN.thread_id
        assert isinstance(data, dict)
        self.signals.append(data)
        self._sent.set()

    @property
    def states(self) -> list[JsonValue]:
        return [data["state"] for data in self.signals]

    async def wait_for(self, state: str) -> None:
        async with asyncio.timeout(WITHIN_S):
            while not self.signals or self.signals[-1]["state"] != state:
                self._sent.clear()
                await self._sent.wait()


@pytest.fixture
async def thread() -> Thread:
    return Thread()


def signal(state: str, step: int, **more: Any) -> dict[str, JsonValue]:
    return {"state": state, "turn": PLAN.id, "step": step, **more}


async def test_each_change_is_signalled_with_turn_and_step_and_the_end_once(thread: Thread) -> None:
    async with thread.activities.of(PLAN):
        pass
    assert thread.signals == [], "nothing was shown, so nothing ends"
    async with thread.activities.of(PLAN) as activity:
        for _ in range(3):
            await activity.show("thinking", 1)
        await activity.show("calling", 1, ["add", "look", "add"])
        await activity.show("thinking", 2)
    async with activity.waiting("bob"):  # outlives its turn and shows nothing
        pass
    assert thread.signals == [
        signal("thinking", 1),
        signal("calling", 1, tool="add, look"),
        signal("thinking", 2),
        signal("idle", 2),
    ]


async def time_out(activity: TurnActivity) -> None:
    async with activity.waiting("carol"):
        raise TimeoutError


async def test_participants_are_named_while_the_turn_waits_for_them(thread: Thread) -> None:
    async with thread.activities.of(PLAN) as activity:
        async with activity.waiting("bob"), activity.waiting("bob"):
            assert thread.signals == [signal("waiting", 1, **{"for": "bob"})]
            with pytest.raises(TimeoutError):
                await time_out(activity)
            assert thread.signals[-2]["for"] == "bob, carol"
            assert thread.signals[-1]["for"] == "bob"
        assert thread.signals[-1] == signal("thinking", 1)
    assert thread.states == ["waiting", "waiting", "waiting", "thinking", "idle"]


async def test_only_states_that_last_are_signalled(thread: Thread) -> None:
    async with thread.activities.of(PLAN, SOON_S) as activity:
        await activity.show("thinking", 1)
        await activity.show("thinking", 2)
        await thread.wait_for("thinking")
        for _ in range(100):  # too short to be signalled
            async with activity.waiting("bob"):
                pass
        async with activity.waiting("bob"):
            await thread.wait_for("waiting")
        await thread.wait_for("thinking")
        await activity.show("calling", 2, ["add"])
        await thread.wait_for("calling")
    assert thread.signals[0] == signal("thinking", 2)
    assert thread.states == ["thinking", "waiting", "thinking", "calling", "idle"]


@pytest.mark.behaviour("H-83")
async def test_a_parked_turn_is_shown_as_waiting_until_it_resumes(thread: Thread) -> None:
    async with thread.activities.of(PLAN) as activity:
        await activity.show("calling", 2, ["pay"])
        await activity.park(2)
    assert thread.signals[-1] == signal("waiting", 2, **{"for": "approval"})
    await thread.activities.repeat()
    async with thread.activities.of(plan(message(2))) as activity:
        await activity.show("thinking", 1)
    assert thread.states == ["calling", "waiting", "waiting", "thinking", "idle", "waiting"]
    async with thread.activities.of(PLAN) as activity:
        await activity.show("thinking", 3)
    await thread.activities.repeat()
    assert thread.states[-2:] == ["thinking", "idle"]


@pytest.mark.behaviour("H-83")
async def test_a_dropped_parked_turn_becomes_idle_once(thread: Thread) -> None:
    async with thread.activities.of(PLAN) as activity:
        await activity.park(1)
    await thread.activities.drop(PLAN.id)
    await thread.activities.drop(PLAN.id)
    assert thread.states == ["waiting", "idle"]
