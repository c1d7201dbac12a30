"""Sentences about mistakes."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.problems import ConfigProblems, listing, nearest, shown_path
from hubbub.errors import ConfigError, UserError


def test_problems_are_one_error_with_one_line_each_in_order_of_place() -> None:
    error = ConfigProblems(
        [
            ConfigError("third", "b.yaml", 1),
            ConfigError("second", "a.yaml", 10),
            ConfigError("first", "a.yaml", 9),
        ]
    )
    assert str(error) == "a.yaml:9: first\na.yaml:10: second\nb.yaml:1: third"
    assert [problem.line for problem in error.problems] == [9, 10, 1]
    assert isinstance(error, UserError)


def test_the_same_problem_is_told_once() -> None:
    twice = [ConfigError("x", "a.yaml", 1), ConfigError("x", "a.yaml", 1)]
    assert str(ConfigProblems(twice)) == "a.yaml:1: x"


@pytest.mark.parametrize(
    ("name", "valid", "expected"),
    [
        ("edtor", ["editor", "writer"], "; did you mean 'editor'?"),
        ("EDITOR", ["editor", "writer"], "; did you mean 'editor'?"),
        ("zzz", ["editor", "writer"], "; valid: editor, writer"),
        ("zzz", [], ""),
    ],
)
def test_a_wrong_name_is_answered_with_the_nearest_or_all(
    name: str, valid: list[str], expected: str
) -> None:
    assert nearest(name, valid) == expected


def test_a_long_list_of_names_is_cut_and_says_how_many_there_are() -> None:
    names = [f"n{n:02}" for n in range(20)]
    assert listing(names, limit=3) == "n00, n01, n02, … (20 in all)"
    assert listing(names[:3], limit=3) == "n00, n01, n02"


def test_a_path_is_shown_relative_when_it_lies_below_the_current_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b.yaml") == "a/b.yaml"
    assert shown_path(tmp_path.parent / "b.yaml") == str(tmp_path.parent / "b.yaml")
