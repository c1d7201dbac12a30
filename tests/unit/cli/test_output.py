"""Commands print tables, JSON and text."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.output import console, counted, emit_json, program, table
from hubbub.protocol.messages import Card


def printed(headings: tuple[str, ...], rows: Sequence[Sequence[str]]) -> str:
    with redirect_stdout(StringIO()) as out:
        table(headings, rows)
    return out.getvalue()


def test_columns_are_aligned_and_not_truncated() -> None:
    people = [("ann", "1"), ("bartholomew", "2"), ("李", "3")]
    assert printed(("NAME", "X"), people).splitlines() == [
        "NAME         X",
        "ann          1",
        "bartholomew  2",
        "李           3",
    ]
    assert printed((), [("a", "1")]) == "a  1\n"
    assert printed(("A", "B"), []) == "A  B\n"
    assert printed((), []) == ""
    assert printed(("A",), [("word " * 60 + "end",)]).endswith("end\n")


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_any_cell_is_printed_on_one_line(rows: list[tuple[str, str]]) -> None:
    out = printed(("A", "B"), rows)
    assert out.count("\n") == len(rows) + 1
    assert "\x1b" not in out


def test_models_and_maps_are_printed_as_one_line_of_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    emit_json([Card(description="ä\nb")])
    emit_json({"cards": [Card()], "n": None})
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == [{"description": "ä\nb", "skills": []}]
    assert json.loads(second) == {"cards": [{"description": "", "skills": []}], "n": None}
    assert "ä" in first


def test_the_shown_program_name_is_one_that_a_shell_can_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for argv0, name in (
        (f"{tmp_path}/.venv/bin/hubbub", ".venv/bin/hubbub"),
        (".venv/bin/hubbub", ".venv/bin/hubbub"),
        ("/opt/elsewhere/hubbub", "/opt/elsewhere/hubbub"),
        (f"{tmp_path}/hubbub/__main__.py", f"{sys.executable} -m hubbub"),
        ("/usr/bin/pytest", "hubbub"),
    ):
        monkeypatch.setattr(sys, "argv", [argv0])
        assert program() == name
    (tmp_path / "hubbub").write_text("#!/bin/sh\n")
    (tmp_path / "hubbub").chmod(0o755)
    monkeypatch.setattr(sys, "argv", ["/opt/elsewhere/hubbub"])
    assert program() == "hubbub"


def test_text_with_markup_is_printed_literally(capsys: pytest.CaptureFixture[str]) -> None:
    text = "[bold]not bold[/bold] :smile: 12 " + "x" * 200
    console().print(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_only_a_count_of_one_has_the_singular() -> None:
    counts = [counted(n, "person", "people") for n in (0, 1, 2)]
    assert counts == ["0 people", "1 person", "2 people"]
