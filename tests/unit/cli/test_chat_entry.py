"""`hubbub chat` up to the first line: who, where, and what can go wrong."""

from __future__ import annotations

import io
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.chat.entry import chat
from hubbub.cli.joining import Unreachable
from hubbub.cli.naming import default_name
from hubbub.errors import UserError
from hubbub.protocol.thread_ids import is_participant_id


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("humans", "user", "name"),
    [
        (("ann", "bob"), "root", "ann"),
        ((), "carol", "carol"),
        ((), "Jean Paul", "Jean-Paul"),
        ((), "müller", "m-ller"),
        ((), "operator", "guest"),
        ((), "t5", "guest"),
        ((), "漢字", "guest"),
        ((), "x" * 80, "x" * 64),
    ],
)
def test_the_default_name_is_a_person_of_the_network_or_this_user(
    humans: tuple[str, ...], user: str, name: str
) -> None:
    assert default_name(humans, user) == name
    assert is_participant_id(name)


def test_no_network_is_one_sentence() -> None:
    with pytest.raises(UserError, match="hubbub up"):
        chat()


@pytest.mark.parametrize("name", ["two words", "hub", "t7", "ä", "x" * 65])
def test_an_impossible_name_is_one_sentence(name: str) -> None:
    with pytest.raises(UserError, match="cannot be a name"):
        chat("127.0.0.1:1", name)


def test_a_hub_that_is_not_there_is_told_with_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unreachable, match=f"{port}: Connection refused; start one with `hub"):
            chat(f"127.0.0.1:{port}", "ann")


@pytest.mark.slow
@pytest.mark.parametrize("library", ["prompt_toolkit", "textual"])
def test_the_terminal_library_is_loaded_only_for_a_terminal(library: str) -> None:
    code = f"import sys, hubbub.cli.chat.entry; print({library!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_full_screen_without_its_extra_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    with pytest.raises(UserError, match=r"pip install 'hubbub\[full\]'$"):
        chat(full=True)


def test_a_full_screen_without_a_terminal_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    with pytest.raises(UserError, match="needs a terminal"):
        chat(full=True)
