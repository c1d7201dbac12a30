"""Names of tools in an agent's section of the config."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from pydantic import JsonValue
from syrupy.assertion import SnapshotAssertion

from hubbub.agents.tools.tool_names import wrong_names
from hubbub.config.agents import AgentConfig

OFFERED = ("send_text_message", "read_thread", "recall")


def errors_in(own: Mapping[str, str], **settings: JsonValue) -> list[str]:
    """The errors, each with its place."""
    errors = wrong_names(AgentConfig.model_validate(settings), OFFERED, own)
    return [f"{error.key} {error.at}: {error.message}" for error in errors]


@pytest.mark.behaviour("K-3")
def test_a_name_that_cannot_be_used_or_disabled_is_reported(snapshot: SnapshotAssertion) -> None:
    own = {
        "tools.py:own": "mine",
        "other.py:own": "mine",
        "tools.py:finish": "finish",
        "tools.py:recall": "recall",
    }
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
        # Tools that an agent cannot do without.
        {"disabled_tools": ["finish"]},
        {"disabled_tools": ["use_tools"]},
        {"disabled_tools": ["ask_human"], "mode": "interactive"},
        {"disabled_tools": ["ask_human"], "kind": "router"},
        {"disabled_tools": ["answer_asker"], "kind": "pipeline"},
        {"disabled_tools": ["ask_agent"], "kind": "planner"},
    ]
    errors = {json.dumps(settings): errors_in(own, **settings) for settings in cases}
    assert all(len(each) == 1 for each in errors.values())
    assert errors == snapshot
