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


def test_examples_are_counted_and_wrong_ones_told_with_what_came_out() -> None:
    assert run_examples(RIGHT) == "all 2 examples are right"
    told = run_examples(RIGHT.replace("2 * n", "3 * n"))
    assert told.startswith("1 of 2 examples fail:")
    assert "6" in told
    assert "nothing was tried" in run_examples("x = 1")
    for source in ("def (", "1 / 0", "import nothing_of_this_name"):
        with pytest.raises(ToolFailed, match="does not run"):
            run_examples(source)


def test_only_modules_are_released_and_stand_where_people_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("../double.py", "/etc/double.py", "double", "Double.py", ""):
        with pytest.raises(ToolFailed, match="no name for a module"):
            release(name, RIGHT)
    assert not list(tmp_path.iterdir())
    assert release("double.py", RIGHT) == "released as released/double.py"
    assert (tmp_path / "released" / "double.py").read_text() == RIGHT
