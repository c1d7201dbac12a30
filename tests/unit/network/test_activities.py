"""The current activities of agents, from their latest signals."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.network.notifications import MAX_BYTES, MAX_THREADS, Activities


def shown(activities: Activities) -> dict[tuple[str, str], JsonValue]:
    return {(each.agent, each.thread_id): each.data for each in activities}


def test_data_without_a_state_means_idle_and_any_other_data_means_working() -> None:
    idle: list[JsonValue] = [None, False, "", "idle", {}, {"state": None}, {"state": "idle"}]
    work: list[JsonValue] = [True, 7, ["a"], "typing away", {"state": 3}]
    for data in (*idle, *work):
        activities = Activities()
        activities.note("bot", "two", "busy", 1.0)
        activities.note("bot", "one", data, 1.0)
        expected = {("bot", "one"): data} if data in work else {}
        assert shown(activities) == {("bot", "two"): "busy", **expected}


def test_stored_activities_are_bounded_in_size_and_threads() -> None:
    activities = Activities()
    activities.note("bot", "one", {"state": "thinking", "of": "x" * MAX_BYTES}, 1.0)
    assert shown(activities) == {("bot", "one"): {"state": "thinking"}}
    activities.note("bot", "one", "y" * (2 * MAX_BYTES), 1.0)
    assert shown(activities) == {("bot", "one"): {"state": "y" * MAX_BYTES}}
    activities = Activities()
    for n in range(MAX_THREADS + 5):
        activities.note("bot", f"t{n}", "busy", float(n))
    assert [each.thread_id for each in activities] == [f"t{n}" for n in range(5, MAX_THREADS + 5)]
    assert list(activities.working()) == [("bot", 0.0)]


SIGNALS = st.tuples(
    st.sampled_from(("ann", "bob")),
    st.sampled_from(("one", "two", None)),
    st.sampled_from(("thinking", "idle")),
)


@given(st.lists(SIGNALS, max_size=30))
def test_changes_alternate_and_agree_with_the_stored_activities(
    signals: list[tuple[str, str | None, str]],
) -> None:
    activities, working = Activities(), set[str]()
    for at, (agent, thread, state) in enumerate(signals):
        if thread is None:
            change = activities.clear(agent)
        else:
            change = activities.note(agent, thread, {"state": state}, float(at))
        if change == "working":
            assert agent not in working
            working.add(agent)
        elif change == "idle":
            working.remove(agent)
        assert {each.agent for each in activities} == working
        assert {name for name, _ in activities.working()} == working
