"""A network of agents whose model is scripted: what tests and screenshots show of agents."""

from __future__ import annotations

from pathlib import Path

from pydantic import JsonValue

from hubbub.testing.model_server import Script, load_script
from tests.browser.support.network import Plan

__all__ = ["NEWSROOM", "newsroom_script"]

_MODEL: dict[str, JsonValue] = {
    "model": "scripted",
    "base_url": "${OPENAI_BASE_URL}",
    "api_key": "${OPENAI_API_KEY}",
    "price": {"input": 0.4, "output": 1.6},
}

NEWSROOM: Plan = {
    "network": {"name": "newsroom"},
    "channels": {
        "general": {"description": "Everything"},
        "desk": {"description": "Stories on their way"},
    },
    "models": {"default": _MODEL},
    "agents": {
        "editor": {
            "kind": "llm",
            "instruction": "You lead a small newsroom. Ask the researcher for facts.",
            "card": {"description": "Leads the newsroom", "skills": ["editing", "planning"]},
        },
        "researcher": {
            "kind": "llm",
            "instruction": "You look things up and answer with facts and their source.",
            "card": {"description": "Looks things up", "skills": ["facts"]},
        },
    },
    "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
}
"""ann owns it; bob is a member."""


def newsroom_script() -> Script:
    """What the agents' model says. Its holds are `thinking` (of "slowly ..." questions)."""
    return load_script(Path(__file__).with_name("newsroom.yaml"))
