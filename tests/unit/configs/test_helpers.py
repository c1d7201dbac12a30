"""What the agents of the examples work with: archive, prices, workshop, and their files."""

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
def test_no_question_is_taken_for_query_syntax(question: str) -> None:
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


def test_examples_are_counted_and_wrong_ones_told_with_what_came_out() -> None:
    assert run_examples(RIGHT) == "all 2 examples are right"
    told = run_examples(RIGHT.replace("2 * n", "3 * n"))
    assert told.startswith("1 of 2 examples fail:")
    assert "6" in told
    assert "nothing was tested" in run_examples("x = 1")
    for source in ("def (", "1 / 0", "import nothing_of_this_name"):
        with pytest.raises(ToolFailed, match="does not run"):
            run_examples(source)


def test_only_modules_are_released_and_stand_where_people_use_them(
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


def test_the_shipped_networks_are_there() -> None:
    with_models = [
        "coding-team",
        "debate",
        "newsroom",
        "pipeline",
        "software-team",
        "support-desk",
        "team",
    ]
    assert sorted(f.stem for f in FILES) == sorted(
        [
            *with_models,
            "a2a",
            "chat-endpoint",
            "irc-bridge",
            "matrix-bridge",
            "partners",
            "quickstart",
            "two-languages",
        ]
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_network_can_be_read_started_and_understood(path: Path) -> None:
    network = load(path, environ={}).file.network  # without an account
    assert (network.name, network.auth) == (path.stem, "open")
    assert network.store == f"sqlite:{CONFIGS / path.stem}.db"
    told = load(path, environ={**KEYS, **ELSEWHERE})
    assert (told.address.port, told.file.network.store) == (7, "sqlite::memory:")
    loaded = load(path, environ=KEYS)
    assert str(loaded.address) == "127.0.0.1:4820"
    known = {*loaded.file.agents, *loaded.file.humans}
    for name, agent in loaded.file.agents.items():
        assert agent.card.description, name
        assert agent.card.skills, name
        if agent.kind == "python":
            assert load_agent_class(agent, CONFIGS).__doc__
        folder = agent.settings.get("folder")
        assert folder is None or list(Path(str(folder)).glob("*.md"))
        mentioned = {w.strip('@.,:;”“"') for w in agent.instruction.split() if "@" in w}
        assert mentioned - {""} <= known
    text = path.read_text()
    assert text.startswith("# ")
    assert f"hubbub up configs/{path.name}" in text
    assert "hubbub chat" in text


def test_the_quickstart_needs_no_model() -> None:
    file = load(CONFIGS / "quickstart.yaml", environ={}).file
    assert not file.models
    assert {agent.kind for agent in file.agents.values()} == {"python"}
    assert {agent.process for agent in file.agents.values()} == {"own"}


def test_the_pages_speak_of_wakes_as_the_hub_decides_them() -> None:
    page = (CONFIGS / "knowledge" / "threads-and-wakes.md").read_text()
    for reason in (Reason.DIRECT, Reason.MENTION, Reason.BROADCAST):
        assert reason.value in page.lower()
