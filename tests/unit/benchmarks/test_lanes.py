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


def test_as_many_messages_are_in_flight_as_the_window_has() -> None:
    lane, sent, _ = lane_with()
    lane.start(3)
    assert sent == [0, 1, 2]
    assert lane.in_flight == 3


def test_the_next_message_waits_for_arrival_and_answer() -> None:
    lane, sent, _ = lane_with()
    lane.start(1)
    lane.arrived(0, 0)
    assert sent == [0]
    lane.answered(0)
    assert sent == [0, 1]


def test_without_answers_arrival_is_enough() -> None:
    lane, sent, _ = lane_with(answers=False)
    lane.start(1)
    lane.arrived(0, 0)
    assert sent == [0, 1]


def test_a_message_to_many_is_complete_when_the_last_has_it() -> None:
    lane, sent, _ = lane_with(3, answers=False)
    lane.start(1)
    lane.arrived(2, 0)
    lane.arrived(0, 0)
    assert lane.done == 0
    lane.arrived(1, 0)
    assert lane.done == 1
    assert sent == [0, 1]


def test_a_round_trip_is_measured_from_sending_to_completion() -> None:
    lane, _, clock = lane_with()
    lane.start(1)
    clock.now = 2.0
    lane.answered(0)
    clock.now = 5.0
    lane.arrived(0, 0)
    assert list(lane.answer_times) == [2.0]
    assert list(lane.round_trips) == [5.0]


def test_a_stopped_lane_completes_what_is_in_flight_and_sends_no_more() -> None:
    lane, sent, _ = lane_with(answers=False)
    lane.start(2)
    lane.stop()
    lane.arrived(0, 0)
    lane.arrived(0, 1)
    assert sent == [0, 1]
    lane.verify()


def test_a_message_that_never_arrived_is_noticed() -> None:
    lane, _, _ = lane_with()
    lane.start(2)
    lane.answered(0)
    lane.answered(1)
    lane.stop()
    with pytest.raises(Lost, match="2 of 2"):
        lane.verify()


@pytest.mark.parametrize("arrivals", [[0, 0], [1], [0, 2]])
def test_repeated_and_reordered_arrivals_are_noticed(arrivals: list[int]) -> None:
    lane, _, _ = lane_with()
    lane.start(4)
    *fine, wrong = arrivals
    for index in fine:
        lane.arrived(0, index)
    with pytest.raises(Lost, match="was due"):
        lane.arrived(0, wrong)


def test_an_answer_to_nothing_is_noticed() -> None:
    lane, _, _ = lane_with()
    lane.start(1)
    with pytest.raises(Lost, match="answered"):
        lane.answered(7)


def test_a_second_answer_to_a_completed_message_is_noticed() -> None:
    lane, _, _ = lane_with()
    lane.start(1)
    lane.arrived(0, 0)
    lane.answered(0)
    with pytest.raises(Lost, match="answered"):
        lane.answered(0)


def test_a_lane_without_a_wire_says_so() -> None:
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
