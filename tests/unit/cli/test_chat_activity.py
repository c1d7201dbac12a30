"""What others are doing."""

from __future__ import annotations

import pytest
from pydantic import JsonValue

from hubbub.cli.chat.activity import LASTS_S, TYPING_S, Activities
from hubbub.protocol.frames import Signal


def activity(data: JsonValue, sender: str = "calc", thread: str | None = "broadcast") -> Signal:
    return Signal(type="activity", sender=sender, thread_id=thread, data=data)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("thinking", "calc is thinking"),
        ({"state": "thinking"}, "calc is thinking"),
        ({"state": "calling", "tool": "read_thread"}, "calc is calling read_thread"),
        ({"percent": 3}, "calc is thinking"),
        (True, "calc is thinking"),
        ("evil\x1b[2J", "calc is evil<U+001B>[2J"),
    ],
)
def test_an_activity_becomes_a_sentence(data: JsonValue, says: str) -> None:
    activities = Activities()
    activities.take(activity(data), 0)
    assert activities.now(0) == [says]


def test_a_long_activity_is_cut() -> None:
    activities = Activities()
    activities.take(activity("x" * 500), 0)
    assert len(activities.now(0)[0]) < 60


@pytest.mark.parametrize("data", ["idle", "done", "", None, False, {"state": "finished"}])
def test_an_activity_ends_when_it_says_so(data: JsonValue) -> None:
    activities = Activities()
    activities.take(activity("thinking"), 0)
    activities.take(activity(data), 1)
    assert activities.now(1) == []


def test_an_activity_that_nobody_confirms_grows_old() -> None:
    activities = Activities()
    activities.take(activity("thinking"), 0)
    assert activities.now(LASTS_S - 1) == ["calc is thinking"]
    activities.take(activity("thinking"), LASTS_S - 1)
    assert activities.now(LASTS_S + 1) == ["calc is thinking"]
    assert activities.now(2 * LASTS_S) == []


def test_somebody_who_works_in_two_threads_is_named_once() -> None:
    activities = Activities()
    activities.take(activity("thinking"), 0)
    activities.take(activity("thinking", thread="dm.a.b"), 0)
    assert activities.now(0) == ["calc is thinking"]
    activities.over("calc", "broadcast")
    assert activities.now(0) == ["calc is thinking"]
    activities.over("calc", "dm.a.b")
    assert activities.now(0) == []


def test_typing_is_an_activity_and_other_signals_are_not() -> None:
    activities = Activities()
    activities.take(Signal(type="typing", sender="bob", data=True), 0)
    activities.take(Signal(type="partial", sender="eve", data="text"), 0)
    assert activities.now(0) == ["bob is typing"]
    activities.take(Signal(type="typing", sender="bob", data=False), 0)
    assert activities.now(0) == []


def test_typing_is_soon_over() -> None:
    activities = Activities()
    activities.take(Signal(type="typing", sender="bob", data=True), 0)
    assert activities.now(TYPING_S + 1) == []


def test_what_is_done_is_told_with_since_when() -> None:
    activities = Activities()
    activities.take(activity("thinking"), 10)
    activities.take(activity("thinking"), 15)
    assert activities.by_sender(15)["calc"].since == 10
    activities.take(activity({"state": "calling", "tool": "add"}), 16)
    assert activities.by_sender(16)["calc"].since == 16
    activities.take(activity("thinking").model_copy(update={"age_s": 6.0}), 20)
    assert activities.by_sender(20)["calc"].since == 14


def test_what_is_done_in_a_thread_says_more_than_that_somebody_works() -> None:
    activities = Activities()
    activities.take(activity({"state": "thinking"}), 0)
    activities.take(activity({"state": "working"}, thread=None), 1)
    assert activities.now(1) == ["calc is thinking"]
    assert set(activities.in_thread("broadcast", 1)) == {"calc"}
    assert activities.in_thread("dm.a.b", 1) == {}
    activities.over("calc", "broadcast")
    assert activities.now(1) == ["calc is working"]


def test_idle_without_a_thread_is_idle_everywhere() -> None:
    activities = Activities()
    activities.take(activity("thinking"), 0)
    activities.take(activity("thinking", thread="dm.a.b"), 0)
    activities.take(activity({"state": "idle"}, thread=None), 1)
    assert activities.now(1) == []


def test_nothing_is_left_of_a_connection_that_is_gone() -> None:
    activities = Activities()
    activities.take(activity("thinking"), 0)
    activities.clear()
    assert activities.now(0) == []
