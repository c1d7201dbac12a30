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
