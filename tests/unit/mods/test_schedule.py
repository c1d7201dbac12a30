"""Times and recurrence of reminders."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.schedule.repository import ReminderRow, after_occurrence, reschedule
from hubbub.mods.schedule.when import Cron, Every, Once, parse_when, zone_of

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


NOW = at("2026-01-30T08:00:00+00:00")  # a Friday


@pytest.mark.behaviour("M-201")
def test_each_notation_of_a_time_is_understood() -> None:
    for text, first in (
        ("2026-01-31T09:00", "2026-01-31T09:00+01:00"),
        ("2026-01-31 09:00", "2026-01-31T09:00+01:00"),
        ("2026-01-31T09:00+05:00", "2026-01-31T09:00+05:00"),
        ("2026-01-31T09:00Z", "2026-01-31T09:00+00:00"),
        ("10:30", "2026-01-30T10:30+01:00"),
        ("9:00", "2026-01-31T09:00+01:00"),
        ("in 10m", "2026-01-30T08:10+00:00"),
        (" In  1h30m ", "2026-01-30T09:30+00:00"),
        ("every 2h", "2026-01-30T10:00+00:00"),
        ("every 1 d", "2026-01-31T08:00+00:00"),
        ("0 9 * * 1-5", "2026-02-02T09:00+01:00"),
        ("*/15 * * * *", "2026-01-30T08:15+00:00"),
    ):
        assert parse_when(text, BERLIN, NOW).next(NOW) == at(first), text


@pytest.mark.behaviour("M-201")
def test_an_invalid_time_or_zone_is_refused_with_the_reason() -> None:
    for text, reason in (
        ("soon", "is not a time; use"),
        ("", "is not a time"),
        ("in 0s", "between one second"),
        ("in 99999d", "between one second and ten years"),
        ("every", "is not a time"),
        ("2026-01-30T08:59", "is in the past"),
        ("2126-01-30T08:59", "ten years ahead"),
        ("61 * * * *", "not a cron expression: bad minute"),
        ("0 0 30 2 *", "not a cron expression"),
        ("* * * * * *", "is not a time"),
        ("25:00", "is not a time"),
    ):
        with pytest.raises(ValueError, match=reason):
            parse_when(text, BERLIN, NOW)
    for name in ("", "Europe", "Europe/Nope", "../../etc/passwd", "/etc/passwd"):
        with pytest.raises(ValueError, match="there is no time zone"):
            zone_of(name)
    assert zone_of("utc") is UTC


@pytest.mark.behaviour("M-209")
def test_a_local_time_skipped_by_a_clock_change_still_occurs_once() -> None:
    rule, occurrences = Cron("30 2 * * *", BERLIN), list[float]()
    after = at("2026-03-28T12:00+01:00")  # clocks go from 2 to 3 on the 29th
    for _ in range(3):
        after = rule.next(after) or 0.0
        occurrences.append(after)
    assert occurrences == [
        at("2026-03-29T03:00+02:00"), at("2026-03-30T02:30+02:00"), at("2026-03-31T02:30+02:00"),
    ]  # fmt: skip


@pytest.mark.behaviour("M-209")
def test_a_local_time_repeated_by_a_clock_change_occurs_once() -> None:
    rule, occurrences = Cron("30 2 * * *", BERLIN), list[float]()
    after = at("2026-10-24T12:00+02:00")  # clocks go back from 3 to 2 on the 25th
    for _ in range(2):
        after = rule.next(after) or 0.0
        occurrences.append(after)
    assert occurrences[1] == at("2026-10-26T02:30+01:00")
    between = at("2026-10-25T02:45+02:00")  # within the repeated hour
    assert rule.next(between) == occurrences[1]


MOMENTS = st.floats(NOW, NOW + 4e8)


@pytest.mark.behaviour("M-209")
@given(MOMENTS, st.integers(1, 10**6))
def test_an_interval_recurs_at_whole_multiples(after: float, seconds: int) -> None:
    rule = Every(NOW, float(seconds))
    following = rule.next(after)
    assert following is not None
    assert after < following <= after + seconds + 1e-3
    assert abs((following - NOW) / seconds - round((following - NOW) / seconds)) < 1e-6


FIELDS = [st.sampled_from(("*", "*/7", "0", "30", "5,45")), st.sampled_from(("*", "2", "*/5"))]


@pytest.mark.behaviour("M-209")
@given(MOMENTS, *FIELDS, st.sampled_from(("*", "1-5", "0")))
def test_a_cron_rule_recurs_forever_and_only_forward(
    after: float, minute: str, hour: str, day: str
) -> None:
    rule = Cron(f"{minute} {hour} * * {day}", BERLIN)
    for _ in range(5):
        following = rule.next(after)
        assert following is not None
        assert following > after
        after = following


@pytest.mark.behaviour("M-201")
@given(st.text(max_size=100) | st.text("0123456789*/-,#LW: in every smhd", max_size=100))
def test_any_text_is_a_future_time_or_refused(text: str) -> None:
    try:
        rule = parse_when(text, BERLIN, NOW)
    except ValueError:
        return
    assert isinstance(rule, Once | Every | Cron)
    assert (rule.next(NOW) or 0) > NOW


@pytest.mark.behaviour("M-210")
def test_the_search_for_a_rare_time_is_bounded() -> None:
    for rare in ("0 0 29 2 */7", "59 23 29 2 */8", "0 0 */31 */12 7"):
        assert parse_when(rare, BERLIN, NOW).shortest(NOW) >= 86400


START = 1_800_000_000.0
WHENS = st.sampled_from(
    ("every 1m", "every 90m", "0 9 * * 1-5", "*/15 * * * *", "30 2 * * *", "in 2h", "0 0 29 2 *")
)
ZONES = st.sampled_from(("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe"))
WAITS = st.lists(st.floats(0, 5e6), min_size=1, max_size=15)


def row(when: str, zone: str, times: int | None, until: float | None) -> ReminderRow:
    new = ReminderRow(
        1, "ann", "", "channel.desk", "x", ("ann",), when, zone, START, 0.0, until, times
    )
    due = new.rule.next(START)
    assert due is not None
    return new._replace(due=due)


@pytest.mark.behaviour("M-202", "M-203", "M-209")
@given(WHENS, ZONES, st.none() | st.integers(1, 5), st.none() | st.floats(0, 1e7), WAITS)
def test_occurrences_increase_and_are_never_in_the_past(
    when: str, zone: str, times: int | None, until: float | None, waits: list[float]
) -> None:
    reminder: ReminderRow | None = row(when, zone, times, None if until is None else START + until)
    occurrences, now = list[float](), START
    for wait in waits:
        if reminder is None:
            break
        now = max(now, reminder.due) + wait  # the hub can be down for long
        occurrences.append(reminder.due)
        reminder = after_occurrence(reminder, reminder, now)
        if reminder is not None:
            assert reminder.due > now
            assert reminder.due == reminder.rule.next(now)
            assert reschedule(reminder, now) == reminder
    assert occurrences == sorted(set(occurrences))
    assert times is None or len(occurrences) <= times
    assert all(until is None or due <= START + until for due in occurrences[1:])


@pytest.mark.behaviour("M-209")
@given(WHENS, ZONES, st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_clock_set_back_brings_the_next_occurrence_nearer_but_not_into_the_past(
    when: str, zone: str, ahead: float, back: float
) -> None:
    reminder = row(when, zone, None, None)
    advanced = after_occurrence(reminder, reminder, reminder.due + ahead)
    if advanced is None:
        return
    now = max(START, reminder.due + ahead - back)
    rescheduled = reschedule(advanced, now)
    assert now < rescheduled.due <= advanced.due


@pytest.mark.behaviour("M-209")
def test_a_time_zone_that_no_longer_exists_pauses_its_reminder() -> None:
    old = row("0 9 * * *", "UTC", None, None)._replace(zone="Mars/Base")
    assert reschedule(old, START) == old
    after = after_occurrence(old, old, START)
    assert after is not None
    assert (after.paused, after.problem) == (True, "the time zone Mars/Base does not exist")
