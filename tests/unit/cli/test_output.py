"""What commands print."""

from __future__ import annotations

import json
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.cli.output import console, counted, emit_json, program, table
from hubbub.protocol.messages import Card


def test_columns_stand_under_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    table(("NAME", "X"), [("ann", "1"), ("bartholomew", "2"), ("李", "3")])
    assert capsys.readouterr().out.splitlines() == [
        "NAME         X",
        "ann          1",
        "bartholomew  2",
        "李           3",
    ]


def test_without_a_heading_there_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    table((), [("a", "1")])
    assert capsys.readouterr().out == "a  1\n"


def test_an_empty_table_is_its_heading(capsys: pytest.CaptureFixture[str]) -> None:
    table(("A", "B"), [])
    assert capsys.readouterr().out == "A  B\n"
    table((), [])
    assert capsys.readouterr().out == ""


def test_long_cells_are_not_cut(capsys: pytest.CaptureFixture[str]) -> None:
    table(("A",), [("word " * 60 + "end",)])
    assert capsys.readouterr().out.endswith("end\n")


@given(st.lists(st.tuples(st.text(), st.text()), max_size=4))
def test_a_cell_is_one_line_whatever_is_in_it(rows: list[tuple[str, str]]) -> None:
    out = StringIO()
    with redirect_stdout(out):
        table(("A", "B"), rows)
    assert out.getvalue().count("\n") == len(rows) + 1
    assert "\x1b" not in out.getvalue()


def test_json_is_one_line_of_models_and_maps(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json([Card(description="ä\nb")])
    emit_json({"cards": [Card()], "n": None})
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == [{"description": "ä\nb", "skills": []}]
    assert json.loads(second) == {"cards": [{"description": "", "skills": []}], "n": None}
    assert "ä" in first


def test_the_program_is_called_by_its_name_where_a_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hubbub").write_text("#!/bin/sh\n")
    (tmp_path / "hubbub").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert program() == "hubbub"


@pytest.mark.parametrize(
    ("started", "called"),
    [
        ("{here}/.venv/bin/hubbub", ".venv/bin/hubbub"),
        (".venv/bin/hubbub", ".venv/bin/hubbub"),
        ("/opt/elsewhere/hubbub", "/opt/elsewhere/hubbub"),
        ("{here}/hubbub/__main__.py", f"{sys.executable} -m hubbub"),
        ("/usr/bin/pytest", "hubbub"),
    ],
)
def test_the_program_is_called_by_its_path_where_no_shell_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: str, called: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [started.format(here=tmp_path)])
    assert program() == called


def test_one_is_not_many() -> None:
    assert [counted(n, "person", "people") for n in (0, 1, 2)] == [
        "0 people",
        "1 person",
        "2 people",
    ]


def test_a_console_takes_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[bold]not bold[/bold] :smile: 12 " + "x" * 200)
    assert capsys.readouterr().out == "[bold]not bold[/bold] :smile: 12 " + "x" * 200 + "\n"
