"""`init`: a first network."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.app import providers
from tests.unit.cli.conftest import Command


@pytest.fixture(autouse=True)
def nothing_local(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model servers of this machine: what is found must not depend on it."""
    monkeypatch.setattr(providers, "LOOPBACK", ())
    for variable in ("OPENROUTER", "MISTRAL", "DEEPSEEK", "GEMINI"):
        monkeypatch.delenv(f"{variable}_API_KEY", raising=False)


@pytest.mark.slow
@pytest.mark.behaviour("L-9")
def test_a_network_is_written_that_passes_check(home: Path, hubbub: Command) -> None:
    ran = hubbub("init")
    assert ran.code == 0
    assert ran.out.splitlines() == [
        "wrote hubbub.yaml",
        "wrote agents/greeter.py",
        "no model is within reach; the network works without, hubbub.yaml says how to add one",
        "start it: hubbub up hubbub.yaml",
    ]
    assert hubbub("check").code == 0


@pytest.mark.slow
def test_a_key_in_the_environment_gives_an_agent_with_a_model(
    home: Path, hubbub: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    ran = hubbub("init", "new/folder", "--json")
    assert ran.json() == {
        "files": ["new/folder/hubbub.yaml", "new/folder/agents/greeter.py"],
        "models": [
            {
                "model": "gpt-5-mini",
                "base_url": "https://api.openai.com/v1",
                "key": "OPENAI_API_KEY",
                "source": "OPENAI_API_KEY is set",
            }
        ],
    }
    text = (home / "new/folder/hubbub.yaml").read_text()
    assert "sk-secret" not in text
    assert hubbub("check", "new/folder/hubbub.yaml").code == 0
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "OPENAI_API_KEY is not set" in hubbub("check", "new/folder/hubbub.yaml").err


def test_files_that_are_there_are_not_replaced_unasked(home: Path, hubbub: Command) -> None:
    (home / "hubbub.yaml").write_text("# mine\n")
    ran = hubbub("init")
    assert ran.code == 2
    assert ran.err == ("hubbub: hubbub.yaml would be replaced: name another folder, or --force\n")
    assert (home / "hubbub.yaml").read_text() == "# mine\n"
    assert not (home / "agents").exists()
    assert hubbub("init", "--force").code == 0
    assert (home / "hubbub.yaml").read_text() != "# mine\n"


def test_a_folder_that_cannot_be_written_is_one_sentence(home: Path, hubbub: Command) -> None:
    (home / "file").write_text("")
    ran = hubbub("init", "file")
    assert ran.code == 2
    assert "cannot be written" in ran.err
