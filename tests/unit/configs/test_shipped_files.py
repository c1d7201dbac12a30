"""What all shipped configs have in common."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.agents.launch import load_agent_class
from hubbub.config.loader import load
from hubbub.network.wakes import Reason

CONFIGS = Path(__file__).parents[3] / "configs"
FILES = sorted(CONFIGS.glob("*.yaml"))
KEYS = {"OPENAI_API_KEY": "key"}
ELSEWHERE = {"HUBBUB_LISTEN": "127.0.0.1:7", "HUBBUB_STORE": "sqlite::memory:"}


def test_the_shipped_networks_are_there() -> None:
    with_models = ["debate", "newsroom", "pipeline", "software-team", "support-desk", "team"]
    assert sorted(f.stem for f in FILES) == sorted([*with_models, "quickstart"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_config_listens_on_the_default_address_unless_told_otherwise(path: Path) -> None:
    assert str(load(path, environ=KEYS).address) == "127.0.0.1:4820"
    told = load(path, environ={**KEYS, **ELSEWHERE})
    assert told.address.port == 7
    assert told.file.network.store == "sqlite::memory:"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_config_needs_no_account_to_be_read_and_keeps_its_own_store(path: Path) -> None:
    network = load(path, environ={}).file.network
    assert network.name == path.stem
    assert network.store == f"sqlite:{CONFIGS / path.stem}.db"
    assert network.auth == "open"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_agent_says_on_its_card_what_it_is_for(path: Path) -> None:
    for name, agent in load(path, environ=KEYS).file.agents.items():
        assert agent.card.description, name
        assert agent.card.skills, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_class_and_folder_that_is_named_exists(path: Path) -> None:
    for agent in load(path, environ=KEYS).file.agents.values():
        if agent.kind == "python":
            assert load_agent_class(agent, CONFIGS).__doc__
        folder = agent.settings.get("folder")
        assert folder is None or list(Path(str(folder)).glob("*.md"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_instructions_name_only_participants_that_exist(path: Path) -> None:
    file = load(path, environ=KEYS).file
    known = {*file.agents, *file.humans}
    for agent in file.agents.values():
        mentioned = {w.strip('@.,:;”“"') for w in agent.instruction.split() if "@" in w}
        assert mentioned - {""} <= known


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_config_opens_with_a_comment_that_says_how_to_start_it(path: Path) -> None:
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
