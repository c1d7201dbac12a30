"""Helpers of the example agents, and the example networks."""

from __future__ import annotations

from pathlib import Path

import pytest
from archive import Archive
from hypothesis import given
from hypothesis import strategies as st
from workshop import release, run_examples

from hubbub.agents.launch import load_agent_class
from hubbub.agents.tools.base import ToolFailed
from hubbub.config.loader import load
from hubbub.network.wakes import Reason


@given(st.text(max_size=80) | st.text('"*():^-ANDORNEAR {}', max_size=40))
def test_a_question_is_never_parsed_as_query_syntax(question: str) -> None:
    archive = Archive()
    archive.add("k", "dm.a.b", "a", question + " secret", sender="a")
    assert archive.search(question, []) == []
    archive.search(question, ["dm.a.b"])
    archive.close()


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


def test_doctest_examples_are_counted_and_failures_shown_with_their_output() -> None:
    assert run_examples(RIGHT) == "all 2 examples are right"
    report = run_examples(RIGHT.replace("2 * n", "3 * n"))
    assert report.startswith("1 of 2 examples fail:")
    assert "6" in report
    assert "nothing was tested" in run_examples("x = 1")
    for source in ("def (", "1 / 0", "import nothing_of_this_name"):
        with pytest.raises(ToolFailed, match="does not run"):
            run_examples(source)


def test_only_a_valid_module_name_is_released_and_to_the_released_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("../double.py", "/etc/double.py", "double", "Double.py", ""):
        with pytest.raises(ToolFailed, match="not a valid module name"):
            release(name, RIGHT)
    assert not list(tmp_path.iterdir())
    assert release("double.py", RIGHT) == "released as released/double.py"
    assert (tmp_path / "released" / "double.py").read_text() == RIGHT


CONFIGS = Path(__file__).parents[3] / "configs"
FILES = sorted(CONFIGS.glob("*.yaml"))
KEYS = {"OPENAI_API_KEY": "key"}
ELSEWHERE = {"HUBBUB_LISTEN": "127.0.0.1:7", "HUBBUB_STORE": "sqlite::memory:"}


def test_no_example_network_is_missing() -> None:
    names = """
        a2a chat-endpoint coding-team debate irc-bridge matrix-bridge newsroom partners pipeline
        quickstart software-team support-desk team two-languages
    """
    assert [file.stem for file in FILES] == names.split()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_network_loads_and_is_described(path: Path) -> None:
    network = load(path, environ={}).file.network  # without an API key
    assert (network.name, network.auth) == (path.stem, "open")
    assert network.store == f"sqlite:{CONFIGS / path.stem}.db"
    elsewhere = load(path, environ={**KEYS, **ELSEWHERE})
    assert (elsewhere.address.port, elsewhere.file.network.store) == (7, "sqlite::memory:")
    loaded = load(path, environ=KEYS)
    assert str(loaded.address) == "127.0.0.1:4820"
    participants = {*loaded.file.agents, *loaded.file.humans}
    for name, agent in loaded.file.agents.items():
        assert agent.card.description, name
        assert agent.card.skills, name
        if agent.kind == "python":
            assert load_agent_class(agent, CONFIGS).__doc__
        folder = agent.settings.get("folder")
        assert folder is None or list(Path(str(folder)).glob("*.md"))
        mentioned = {w.strip('@.,:;”“"') for w in agent.instruction.split() if "@" in w}
        assert mentioned - {""} <= participants
    text = path.read_text()
    assert text.startswith("# ")
    assert f"hubbub up configs/{path.name}" in text
    assert "hubbub chat" in text


def test_the_quickstart_needs_no_model() -> None:
    file = load(CONFIGS / "quickstart.yaml", environ={}).file
    assert not file.models
    assert {agent.kind for agent in file.agents.values()} == {"python"}
    assert {agent.process for agent in file.agents.values()} == {"own"}


def test_the_librarians_page_about_wakes_names_the_hubs_reasons() -> None:
    page = (CONFIGS / "knowledge" / "threads-and-wakes.md").read_text()
    for reason in (Reason.DIRECT, Reason.MENTION, Reason.BROADCAST):
        assert reason.value in page.lower()
