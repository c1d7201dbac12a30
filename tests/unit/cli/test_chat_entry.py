"""`hubbub chat` before it joins a network."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hubbub.cli.connection import Unreachable
from hubbub.cli.talk import chat
from hubbub.errors import UserError


def test_chat_without_a_network_or_a_valid_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUBBUB_STATE_DIR", str(tmp_path))
    with pytest.raises(UserError, match="hubbub up"):
        chat()
    for name in ("two words", "hub", "t7", "ä", "x" * 65):
        with pytest.raises(UserError, match="is not a valid name"):
            chat(address="127.0.0.1:1", as_=name)
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        with pytest.raises(Unreachable, match=f"{port}: Connection refused; start one with `hub"):
            chat(address=f"127.0.0.1:{port}", as_="ann")


@pytest.mark.slow
def test_a_conversation_does_not_import_the_terminal_library() -> None:
    code = "import sys, hubbub.people.chat.conversation; print('prompt_toolkit' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
