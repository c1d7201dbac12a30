"""`hubbub chat` up to the first line: who, where, and what can go wrong."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.connection import Unreachable
from hubbub.cli.talk import chat
from hubbub.errors import UserError


def test_what_stands_in_the_way_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path))
    with pytest.raises(UserError, match="hubbub up"):
        chat()
    for name in ("two words", "hub", "t7", "ä", "x" * 65):
        with pytest.raises(UserError, match="is not a valid name"):
            chat(address="127.0.0.1:1", as_=name)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with pytest.raises(Unreachable, match=f"{port}: Connection refused; start one with `hub"):
            chat(address=f"127.0.0.1:{port}", as_="ann")


@pytest.mark.slow
def test_the_terminal_libraries_are_loaded_only_for_a_terminal() -> None:
    libraries = "{'prompt_toolkit'}"
    code = (
        "import sys, hubbub.people.chat.conversation\n"
        f"print(sorted({libraries} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
