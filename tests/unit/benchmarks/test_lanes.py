from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.lanes import Lane, Lost


class Ticks:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lane_with(receivers: int = 1, *, answers: bool = True) -> tuple[Lane, list[int], Ticks]:
    clock = Ticks()
    lane = Lane(receivers, answers=answers, clock=clock)
    sent: list[int] = []
    lane.transmit = sent.append
    return lane, sent, clock


def test_the_next_message_waits_for_arrival_and_answer() -> None:
    lane, sent, clock = lane_with()
    lane.start(1)
    clock.now = 2.0
    lane.answered(0)
    assert sent == [0]
    clock.now = 5.0
    lane.arrived(0, 0)
    assert (sent, lane.in_flight) == ([0, 1], 1)
    assert (list(lane.answer_times), list(lane.round_trips)) == ([2.0], [5.0])
    lane, sent, _ = lane_with(answers=False)
    lane.start(3)
    assert (sent, lane.in_flight) == ([0, 1, 2], 3)
    lane.stop()
    for index in range(3):
        lane.arrived(0, index)
    assert sent == [0, 1, 2], "it completes what is in flight, and sends no more"
    lane.verify()


def test_what_is_lost_repeated_reordered_or_not_asked_for_is_noticed() -> None:
    lane, _, _ = lane_with()
    lane.start(2)
    lane.answered(0)
    lane.answered(1)
    lane.stop()
    with pytest.raises(Lost, match="2 of 2"):
        lane.verify()
    for fine, wrong in (([0], 0), ([], 1), ([0], 2)):
        lane, _, _ = lane_with()
        lane.start(4)
        for index in fine:
            lane.arrived(0, index)
        with pytest.raises(Lost, match="was due"):
            lane.arrived(0, wrong)
    lane, _, _ = lane_with()
    lane.start(1)
    lane.arrived(0, 0)
    lane.answered(0)
    for wrong in (0, 7):
        with pytest.raises(Lost, match="answered"):
            lane.answered(wrong)
    with pytest.raises(RuntimeError, match="no wire"):
        Lane(1, answers=False, clock=Ticks()).start(1)


@given(
    receivers=st.integers(0, 4),
    window=st.integers(1, 8),
    choices=st.lists(st.integers(0, 10**6), max_size=60),
)
def test_the_window_is_never_exceeded_and_everything_is_accounted_for(
    receivers: int, window: int, choices: list[int]
) -> None:
    lane, sent, _ = lane_with(receivers)
    lane.start(window)
    arrived = [0] * receivers
    answered = 0
    for choice in choices:
        place = choice % (receivers + 1)
        if place < receivers and arrived[place] < len(sent):
            arrived[place] += 1
            lane.arrived(place, arrived[place] - 1)
        elif place == receivers and answered < len(sent):
            lane.answered(answered)
            answered += 1
        assert lane.in_flight == window
        assert lane.done == min([answered, *arrived])
        assert lane.sent == lane.done + window
