"""Names of tools in an agent's section: which can stand where."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.tools.naming import given_names, wrong_names
from hubbub.config.agents import AgentConfig

OFFERED = ("send_text_message", "read_thread", "recall")


def config(**settings: JsonValue) -> AgentConfig:
    return AgentConfig.model_validate(settings)


MINE = {"tools.py:own": "mine"}


def told(own: Mapping[str, str] | None = MINE, /, **settings: JsonValue) -> list[str]:
    """What is wrong, each with its place."""
    found = wrong_names(config(**settings), OFFERED, own)
    return [f"{wrong.key} {wrong.at}: {wrong.message}" for wrong in found]


def test_tools_that_there_are_or_may_be_can_be_named() -> None:
    cases: list[dict[str, JsonValue]] = [
        {"tools": ["recall", "finish", "ask_human", "tools.py:own"]},
        {"disabled_tools": ["recall", "mine", "ask_human", "decline", "tidy_steps"]},
        {"disabled_tools": ["fork"], "fork": {}},
        {"disabled_tools": ["search_knowledge"], "knowledge": {"folders": ["faq"]}},
        {"disabled_tools": ["load_skill"], "skills": ["skills"]},
        {"disabled_tools": ["shop_buy"], "mcp": ["shop"], "tool_settings": {"shop_x": {}}},
        {"begin_with": "shop_find", "mcp": ["shop"]},
        {"begin_with": "mine"},
        {"begin_with": "mine", "tools": ["tools.py:own"]},
        {"begin_with": "ask_human", "tools": ["recall"]},
        {"begin_with": "load_skill", "tools": ["recall"], "skills": ["skills"]},
        {"tool_settings": {"mine": {}, "recall": {}}},
        {"kind": "pipeline", "disabled_tools": ["decline", "recall"]},
        {"kind": "pipeline", "tool_settings": {"ask_agent": {"timeout": "5s"}}},
    ]
    for settings in cases:
        assert told(**settings) == []
    given: dict[str, JsonValue] = {"disabled_tools": ["x"], "tool_settings": {"y": {}}}
    assert told(None, **given) == []
    assert len(told(**given)) == 2
    assert told(None, tools=["recal"]) == [
        "tools 0: there is no tool 'recal'; did you mean 'recall'?"
    ], "a function is named by its place"
    assert given_names(config()) == set()
    assert given_names(config(fork={}, knowledge={"folders": ["a"]}, skills=["b"])) == {
        "fork",
        "search_knowledge",
        "load_skill",
    }
    assert given_names(config(kind="pipeline", skills=["b"])) == {"ask_agent", "answer_asker"}


@pytest.mark.behaviour("K-3")
def test_a_name_that_cannot_stand_there_or_go_is_told(snapshot: SnapshotAssertion) -> None:
    own = {**MINE, "other.py:own": "mine", "tools.py:finish": "finish"}
    own["tools.py:recall"] = "recall"
    cases: list[dict[str, JsonValue]] = [
        {"disabled_tools": ["recall", "recal"]},
        {"tool_settings": {"read_thred": {}}},
        {"disabled_tools": ["shop"], "mcp": ["shop"]},
        {"tools": ["shop_buy"], "mcp": ["shop"]},
        {"tool_settings": {"decline": {}}},
        {"begin_with": "recall", "disabled_tools": ["recall"]},
        {"tools": ["recall", "recall"]},
        {"tools": ["tools.py:own", "other.py:own"]},
        {"tools": ["tools.py:finish", "finish"]},
        {"tools": ["tools.py:recall", "recall"]},
        {"begin_with": "finish"},
        {"begin_with": "recal"},
        {"begin_with": "read_thread", "tools": ["recall", "tools.py:own"]},
        {"begin_with": "mine", "tools": ["recall"]},
        # What an agent cannot do without.
        {"disabled_tools": ["finish"]},
        {"disabled_tools": ["use_tools"]},
        {"disabled_tools": ["ask_human"], "mode": "interactive"},
        {"disabled_tools": ["ask_human"], "kind": "router"},
        {"disabled_tools": ["answer_asker"], "kind": "pipeline"},
        {"disabled_tools": ["ask_agent"], "kind": "planner"},
    ]
    found = {json.dumps(settings): told(own, **settings) for settings in cases}
    assert all(len(mistakes) == 1 for mistakes in found.values())
    assert found == snapshot
