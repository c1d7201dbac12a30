"""Agents with a scripted model, for tests and screenshots."""

from __future__ import annotations

from pathlib import Path

from hubbub.protocol.operations import Turns
from hubbub.testing.model_server import Script, load_script
from tests.browser.support.room import Plan, Room

__all__ = ["LAST", "NEWSROOM", "QUESTION", "TEAM", "ask", "newsroom_script", "team_script"]

_HERE = Path(__file__).parent
NEWSROOM: Plan = {
    "channels": {
        "general": {"description": "Everything"},
        "desk": {"description": "Stories on their way"},
    },
    "models": {"default": {"model": "scripted", "price": {"input": 0.4, "output": 1.6}}},
    "agents": {
        "editor": {
            "kind": "llm",
            "instruction": "You lead a small newsroom. Ask the researcher for facts.",
            "card": {
                "description": "Leads the newsroom",
                "skills": ["editing", "planning"],
                "examples": ["How large is Jupiter?", "Think slowly: which headline?"],
            },
        },
        "researcher": {
            "kind": "llm",
            "instruction": "You look things up and answer with facts and their source.",
            "card": {
                "description": "Looks things up",
                "skills": ["facts"],
                "examples": ["How large is Saturn?"],
            },
        },
    },
    "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
}
"""ann owns it; bob is a member."""


def newsroom_script() -> Script:
    """The script of the newsroom's model; it has the gate `thinking` (for "slowly" questions)."""
    return load_script(_HERE / "newsroom.yaml")


QUESTION = "How big is Jupiter?"
LAST = "It is big."
"""The helper's final answer to ann."""

_AGENT: Plan = {"kind": "llm", "tools": ["send_text_message"]}
TEAM: Plan = {
    "channels": {"desk": {}},
    "models": {"default": {"model": "scripted", "price": {"input": 1.0, "output": 10.0}}},
    "agents": {
        "helper": {**_AGENT, "instruction": "You are the helper."},
        "expert": {**_AGENT, "instruction": "You are the expert."},
    },
    "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
}
"""Ann asks the helper, the helper asks the expert, and the helper answers ann."""


def team_script() -> Script:
    """The script of the team's model; it has the gate `end` (for "slowly" questions)."""
    return load_script(_HERE / "team.yaml")


async def ask(room: Room) -> None:
    """Ann asks; returns once she has her answer and all turns have ended."""
    ann = await room.join("ann")
    await ann.tells("helper", QUESTION)
    await ann.hears("helper", lambda message: message.text == LAST)
    while True:
        turns = Turns.model_validate(await ann.client.call("list_turns")).turns
        if all(turn.outcome is not None for turn in turns):
            return
