from __future__ import annotations

from pathlib import Path

import pytest
from workshop import release, run_examples

from hubbub.agents.tools.base import ToolFailed

RIGHT = '''
def double(n):
    """
    >>> double(2)
    4
    >>> double(0)
    0
    """
    return 2 * n
'''


def test_examples_that_are_right_are_counted() -> None:
    assert run_examples(RIGHT) == "all 2 examples are right"


def test_an_example_that_is_wrong_is_told_with_what_came_out() -> None:
    told = run_examples(RIGHT.replace("2 * n", "3 * n"))
    assert told.startswith("1 of 2 examples fail:")
    assert "6" in told


def test_a_file_without_examples_is_not_called_right() -> None:
    assert "nothing was tried" in run_examples("x = 1")


@pytest.mark.parametrize("source", ["def (", "1 / 0", "import nothing_of_this_name"])
def test_a_file_that_does_not_run_is_a_failure_of_the_call(source: str) -> None:
    with pytest.raises(ToolFailed, match="does not run"):
        run_examples(source)


def test_a_released_file_stands_where_people_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert release("double.py", RIGHT) == "released as released/double.py"
    assert (tmp_path / "released" / "double.py").read_text() == RIGHT


@pytest.mark.parametrize("name", ["../double.py", "/etc/double.py", "double", "Double.py", ""])
def test_only_names_of_modules_are_released(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ToolFailed, match="no name for a module"):
        release(name, RIGHT)
    assert not list(tmp_path.iterdir())
