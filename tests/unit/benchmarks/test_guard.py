"""What the guard says about figures that have grown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import guard


def test_what_has_grown_by_more_than_a_fifth_is_named() -> None:
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


def test_a_guard_that_cannot_measure_says_so_and_fails_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(guard, "RESULTS", tmp_path)
    monkeypatch.setitem(sys.modules, "benchmarks.rounds", None)  # as if it could not be imported
    guard.main()
    assert capsys.readouterr().out.startswith("the guard could not measure: ModuleNotFoundError")
