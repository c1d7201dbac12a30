"""Completions in bash, requested as by the script that typer installs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from tests.unit.cli.conftest import NETWORK, Shell, as_person, running

Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(hubbub: Shell, monkeypatch: pytest.MonkeyPatch) -> Complete:
    def completions(line: str) -> list[str]:
        words = line.split(" ")
        with monkeypatch.context() as bash:
            bash.setenv("_HUBBUB_COMPLETE", "complete_bash")
            bash.setenv("COMP_WORDS", " ".join(words))
            bash.setenv("COMP_CWORD", str(len(words) - 1))
            return hubbub().out.split()

    return completions


def test_names_threads_and_ids_of_a_running_network_are_completed(
    home: Path,
    hubbub: Shell,
    complete: Complete,
    monkeypatch: pytest.MonkeyPatch,
    snapshot: SnapshotAssertion,
) -> None:
    assert complete("hubbub ask ") == [], "no network is running"
    with running(NETWORK + "mods: [tasks]\n", home) as url:
        monkeypatch.setenv("HUBBUB_ADDRESS", url)
        monkeypatch.setenv("HUBBUB_AS", "ann")
        as_person(url, "bob", lambda bob: bob.call("list_threads"))
        for line in (
            ("send", "general", "hello all"),
            ("send", "bob", "hello"),
            ("tasks", "add", "-t", "general", "Write the intro"),
            ("stop", "thread", "#general"),
        ):
            assert hubbub(*line).code == 0
        lines = (
            "hubbub a",
            "hubbub tasks c",
            "hubbub tasks claim ",
            "hubbub tasks assign t1 ",
            "hubbub send ",
            "hubbub send bob ",
            "hubbub ask ",
            "hubbub threads mute ",
            "hubbub threads mute ge",
            "hubbub chat --open @",
            "hubbub messages list -t ",
            "hubbub messages edit ",
            "hubbub messages why ",
            "hubbub resume ",
            "hubbub resume thread ",
            "hubbub stop ",
            "hubbub stop agent ",
        )
        assert {line: complete(line) for line in lines} == snapshot
        monkeypatch.setenv("HUBBUB_ADDRESS", "town")
        assert complete("hubbub tasks show ") == ["t1"]
