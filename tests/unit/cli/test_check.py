"""`check` and `schema`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Command


def write(home: Path, text: str, name: str = "hubbub.yaml") -> None:
    (home / name).write_text(text, encoding="utf-8")


def test_without_a_config_the_way_to_one_is_told(home: Path, hubbub: Command) -> None:
    ran = hubbub("up")
    assert (ran.code, ran.out) == (2, "")
    assert "there is no hubbub.yaml here; `hubbub init` writes one" in ran.err


def test_a_config_that_holds_together_is_summed_up(home: Path, hubbub: Command) -> None:
    write(home, "network: {name: town}\nhumans: {ann: {}}\nchannels: {a: {}, b: {}}\n")
    ran = hubbub("check")
    assert ran.code == 0
    assert ran.out == (
        "hubbub.yaml: fine; network 'town' with 0 agents, 1 person, 2 channels, 0 mods\n"
    )


def test_mistakes_are_told_one_a_line_as_compilers_do(home: Path, hubbub: Command) -> None:
    write(home, "netwrk: {}\nhumans: []\n", "net.yaml")
    ran = hubbub("check", "net.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.splitlines() == [
        "net.yaml:1: unknown key 'netwrk' in the file; did you mean 'network'?",
        "net.yaml:2: humans is a list: expected keys with values",
    ]


def test_mistakes_as_json_have_path_line_and_message(home: Path, hubbub: Command) -> None:
    write(home, "\n\nnetwrk: {}\n")
    ran = hubbub("check", "--json")
    assert ran.code == 2
    assert json.loads(ran.out) == [
        {
            "path": "hubbub.yaml",
            "line": 3,
            "message": "unknown key 'netwrk' in the file; did you mean 'network'?",
        }
    ]
    write(home, "")
    assert hubbub("check", "--json").json() == []


def test_a_file_that_is_not_there_is_one_mistake(home: Path, hubbub: Command) -> None:
    ran = hubbub("check", "--json", "gone.yaml")
    assert ran.code == 2
    (problem,) = json.loads(ran.out)
    assert (problem["path"], problem["line"]) == ("gone.yaml", None)
    assert "`hubbub init`" in problem["message"]


@pytest.mark.slow
def test_python_of_agents_is_tried(home: Path, hubbub: Command) -> None:
    write(home, "1 / 0\nBot = 1\n", "bot.py")
    write(home, "agents: {a: {kind: python, class: bot.py:Bot}}\n")
    ran = hubbub("check")
    assert ran.code == 2
    assert "bot.py:1: importing it raises ZeroDivisionError" in ran.err


def test_the_schema_is_printed(hubbub: Command) -> None:
    schema = hubbub("schema").json()
    assert isinstance(schema, dict)
    assert "properties" in schema
