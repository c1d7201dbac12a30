"""Benchmark figures, goals, and the guard."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import guard
from benchmarks.figures import Comparison, Figure, at_least, at_most
from benchmarks.stats import Interval, middle, paired_ratio, percentile


def rounds(*rates: float) -> list[Interval]:
    return [
        Interval(rate=rate, p50_ms=1.0, p99_ms=2.0, cpu_us=10.0, load_busy=0.5) for rate in rates
    ]


def figure() -> Figure:
    comparison = Comparison("direct", rounds(60.0, 50.0, 55.0), rounds(100.0, 100.0, 100.0))
    return comparison.figure("messages", "1/s", lambda i: i.rate)


def test_a_percentile_is_one_of_the_values_and_needs_at_least_one() -> None:
    values = [4.0, 2.0, 1.0, 3.0]
    assert [percentile(values, q) for q in (0.0, 0.5, 0.75, 1.0)] == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_one_disturbed_round_moves_neither_the_median_nor_the_ratio() -> None:
    assert middle(rounds(100.0, 101.0, 5.0), lambda i: i.rate) == 100.0
    ours, theirs = rounds(50.0, 5.0, 50.0), rounds(100.0, 10.0, 100.0)
    assert paired_ratio(ours, theirs, lambda i: i.rate) == 0.5
    with pytest.raises(ValueError, match="longer"):
        paired_ratio(ours[:1], theirs[:2], lambda i: i.rate)


def test_a_figure_has_the_medians_of_both_sides_and_of_their_ratios() -> None:
    assert (figure().ours, figure().theirs, figure().ratio) == (55.0, 100.0, 0.55)
    assert figure().ours_rounds == [60.0, 50.0, 55.0]


def test_a_goal_bounds_the_ratio_or_the_value() -> None:
    for goal, met in (
        (at_least(0.5), True),
        (at_least(0.6), False),
        (at_most(0.6), True),
        (at_most(0.5), False),
        (at_most(55, of="value"), True),
        (at_most(54, of="value"), False),
    ):
        assert goal.met(figure()) is met
    with pytest.raises(ValueError, match="no ratio"):
        at_most(1.0).met(Figure("start", "import", "ms", ours=1.0))


def test_the_guard_names_figures_that_grew_by_more_than_a_fifth() -> None:
    baseline = {"direct": 3.0, "turn": 100.0, "command": 50.0, "gone": 1.0}
    lines, grown = guard.compared(
        {"direct": 3.7, "turn": 119.0, "command": 20.0, "new": 5.0}, baseline
    )
    assert grown == ["direct"]
    direct, turn, command, gone, new = lines
    assert direct.endswith("+23%   GROWN")
    assert turn.endswith("+19%")
    assert command.endswith("-60%")
    assert gone.endswith("not measured")
    assert new.split() == ["new", "5.00"]


def test_a_guard_that_cannot_measure_reports_why_without_failing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "RESULTS", tmp_path)
    monkeypatch.setitem(sys.modules, "benchmarks.rounds", None)  # the import fails
    guard.main()
    assert capsys.readouterr().out.startswith("the guard could not measure: ModuleNotFoundError")
