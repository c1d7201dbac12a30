"""Names of tools in an agent's section: which can stand where."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.tools.tool_names import wrong_names
from hubbub.config.agents import AgentConfig

OFFERED = ("send_text_message", "read_thread", "recall")


def config(**settings: JsonValue) -> AgentConfig:
    return AgentConfig.model_validate(settings)


MINE = {"tools.py:own": "mine"}


def told(own: Mapping[str, str] | None = MINE, /, **settings: JsonValue) -> list[str]:
    """What is wrong, each with its place."""
    found = wrong_names(config(**settings), OFFERED, own)
    return [f"{wrong.key} {wrong.at}: {wrong.message}" for wrong in found]


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
