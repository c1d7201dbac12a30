"""What the agents' processes are told."""

from __future__ import annotations

import json
import sys

import pytest

from hubbub.app.launch import agent_tokens, units
from tests.unit.app.conftest import Loading, Write

TOKENS = {"a": "hub_secret_a", "b": "hub_secret_b", "c": "hub_secret_c", "operator": "hub_op"}


@pytest.fixture
def config_text(write: Write) -> str:
    write("bot.py", "class Bot: ...\n")
    return """
        agents:
          a: {kind: python, class: bot.py:Bot}
          b: {kind: python, class: bot.py:Bot, process: shared}
          c: {kind: python, class: bot.py:Bot, process: shared}
        """


def test_agents_have_processes_of_their_own_or_share_one(
    loading: Loading, config_text: str
) -> None:
    found = units(loading(config_text), "ws://h:1", TOKENS, "run1")
    assert [unit.agents for unit in found] == [("a",), ("b", "c")]
    assert list(found[1].command)[-4:] == ["--name", "b", "--name", "c"]
    assert list(found[0].command)[:5] == [sys.executable, "-m", "hubbub", "agent", "run"]


@pytest.mark.behaviour("L-6")
def test_no_token_stands_on_a_command_line(loading: Loading, config_text: str) -> None:
    for unit in units(loading(config_text), "ws://h:1", TOKENS, "run1"):
        assert not any("secret" in word for word in unit.command)


@pytest.mark.behaviour("L-6")
def test_a_process_gets_the_tokens_of_its_agents_only(loading: Loading, config_text: str) -> None:
    own, shared = units(loading(config_text), "ws://h:1", TOKENS, "run1")
    assert agent_tokens(own.environment) == {"a": "hub_secret_a"}
    assert agent_tokens(shared.environment) == {"b": "hub_secret_b", "c": "hub_secret_c"}
    assert own.environment["HUBBUB_URL"] == "ws://h:1"
    assert own.environment["HUBBUB_RUN"] == "run1"


def test_a_network_without_agents_has_no_processes(loading: Loading) -> None:
    assert units(loading("humans: {ann: {}}"), "ws://h:1", TOKENS, "run1") == []


@pytest.mark.parametrize("environ", [{}, {"HUBBUB_TOKENS": ""}])
def test_without_a_launcher_there_are_no_tokens(environ: dict[str, str]) -> None:
    assert agent_tokens(environ) == {}


def test_tokens_travel_as_json() -> None:
    assert agent_tokens({"HUBBUB_TOKENS": json.dumps({"a": "x"})}) == {"a": "x"}
