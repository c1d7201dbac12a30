"""How reminders go on, whatever the clock and the hub do meanwhile."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.schedule.repository import ReminderRow, by_the_clock, following

START = 1_800_000_000.0
WHENS = st.sampled_from(
    ("every 1m", "every 90m", "0 9 * * 1-5", "*/15 * * * *", "30 2 * * *", "in 2h", "0 0 29 2 *")
)
ZONES = st.sampled_from(("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"))
WAITS = st.lists(st.floats(0, 5e6), min_size=1, max_size=15)


def row(when: str, zone: str, times: int | None, until: float | None) -> ReminderRow:
    made = ReminderRow(
        1, "ann", "", "channel.desk", "x", ("ann",), when, zone, START, 0.0, until, times
    )
    due = made.rule.next(START)
    assert due is not None
    return made._replace(due=due)


@pytest.mark.behaviour("M-202", "M-203", "M-209")
@given(WHENS, ZONES, st.none() | st.integers(1, 5), st.none() | st.floats(0, 1e7), WAITS)
def test_each_occurrence_is_a_later_one_and_none_is_in_the_past(
    when: str, zone: str, times: int | None, until: float | None, waits: list[float]
) -> None:
    reminder: ReminderRow | None = row(when, zone, times, None if until is None else START + until)
    said, now = list[float](), START
    for wait in waits:
        if reminder is None:
            break
        now = max(now, reminder.due) + wait  # the hub may be down for long
        said.append(reminder.due)
        reminder = following(reminder, reminder, now)
        if reminder is not None:
            assert reminder.due > now
            assert reminder.due == reminder.rule.next(now)
            assert by_the_clock(reminder, now) == reminder
    assert said == sorted(set(said))
    assert times is None or len(said) <= times
    assert all(until is None or due <= START + until for due in said[1:])


@pytest.mark.behaviour("M-209")
@given(WHENS, ZONES, st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_clock_that_was_set_back_brings_the_next_one_nearer_and_never_an_earlier_one(
    when: str, zone: str, ahead: float, back: float
) -> None:
    reminder = row(when, zone, None, None)
    gone_on = following(reminder, reminder, reminder.due + ahead)
    if gone_on is None:
        return
    now = max(START, reminder.due + ahead - back)
    seen = by_the_clock(gone_on, now)
    assert now < seen.due <= gone_on.due


@pytest.mark.behaviour("M-209")
def test_a_time_zone_that_is_not_known_any_more_pauses_with_the_reason() -> None:
    old = row("0 9 * * *", "UTC", None, None)._replace(zone="Mars/Base")
    assert by_the_clock(old, START) == old
    after = following(old, old, START)
    assert after is not None
    assert (after.paused, after.problem) == (True, "the time zone Mars/Base is not known")
