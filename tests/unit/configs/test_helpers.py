"""What the agents of the examples work with: archive, prices, workshop, and their files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from archive import PUBLIC, Archive
from hypothesis import given
from hypothesis import strategies as st
from outing import CITIES, weather
from workshop import release, run_examples

from hubbub.agents.launch import load_agent_class
from hubbub.agents.tools.base import ToolFailed
from hubbub.config.loader import load
from hubbub.network.wakes import Reason


@pytest.fixture
def archive() -> Iterator[Archive]:
    filled = Archive()
    filled.add("p1", PUBLIC, "threads.md", "A thread is an ordered list of messages.", "Threads")
    filled.add("p2", PUBLIC, "agents.md", "An agent wakes when it is mentioned.", "Waking")
    filled.add("m1", "dm.ann.librarian", "ann", "My password is swordfish.", sender="ann")
    filled.add("m2", "channel.desk", "ben", "The budget of the project is 40 euros.", sender="ben")
    filled.add("m3", "channel.desk", "ann", "The budget should be 50 euros.", sender="ann")
    yield filled
    filled.close()


def sources(archive: Archive, question: str, *places: str, sender: str | None = None) -> list[str]:
    return [hit.source for hit in archive.search(question, places, sender)]


def test_a_word_is_found_in_another_form_where_it_may_be_read(archive: Archive) -> None:
    assert sources(archive, "what is a message?") == ["threads.md"]
    assert sources(archive, "waking agents") == ["agents.md"]
    question = "what is the password?"
    assert sources(archive, question, "dm.ann.librarian") == ["ann"]
    assert sources(archive, question, "dm.ben.librarian") == []
    assert sources(archive, question) == []
    assert sources(archive, "project budget", "channel.desk") == ["ben"]
    assert sources(archive, "project budget", "channel.other") == []


def test_too_few_of_the_words_are_no_answer_of_a_message_fewer_are_enough(
    archive: Archive,
) -> None:
    assert sources(archive, "ordered list of blue whales swimming") == []
    assert sources(archive, "the of and") == []
    archive.add("p3", PUBLIC, "bikes.md", "A bike has two wheels.")
    archive.add("m4", "channel.desk", "eve", "My bike is blue.", sender="eve")
    assert sources(archive, "what colour is my bike?", "channel.desk") == ["eve"]


def test_the_title_decides_and_a_snippet_is_the_piece_that_matters(archive: Archive) -> None:
    archive.add("p3", PUBLIC, "long.md", "A hub. " * 9, "Hubs and other things")
    archive.add("p4", PUBLIC, "short.md", "One hub routes what is sent.", "What a hub is")
    assert sources(archive, "what is a hub?") == ["short.md", "long.md"]
    long = "nothing " * 100 + "the treasure lies under the oak " + "nothing " * 100
    archive.add("p5", PUBLIC, "map.md", long)
    [hit] = archive.search("where is the treasure under the oak?", [])
    assert "treasure lies under the oak" in hit.snippet
    assert len(hit.snippet) < 300


@given(st.text(max_size=80) | st.text('"*():^-ANDORNEAR {}', max_size=40))
def test_no_question_is_taken_for_query_syntax(question: str) -> None:
    archive = Archive()
    archive.add("k", "dm.a.b", "a", question + " secret", sender="a")
    assert archive.search(question, []) == []
    archive.search(question, ["dm.a.b"])
    archive.close()


@given(st.sampled_from(CITIES), st.integers(1, 12))
def test_summer_is_never_colder_than_another_month(city: str, month: int) -> None:
    degrees = [int(weather(city, m).split()[0]) for m in (month, 7)]
    assert degrees[0] <= degrees[1]


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
    assert "nothing was tried" in run_examples("x = 1")
    for source in ("def (", "1 / 0", "import nothing_of_this_name"):
        with pytest.raises(ToolFailed, match="does not run"):
            run_examples(source)


def test_only_modules_are_released_and_stand_where_people_use_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("../double.py", "/etc/double.py", "double", "Double.py", ""):
        with pytest.raises(ToolFailed, match="no name for a module"):
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
        [*with_models, "chat-endpoint", "quickstart", "two-languages"]
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
