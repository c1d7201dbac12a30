"""Agents whose model is scripted: what tests and screenshots show of agents."""

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
    """What the agents' model says. Its holds are `thinking` (of "slowly ..." questions)."""
    return load_script(_HERE / "newsroom.yaml")


QUESTION = "How big is Jupiter?"
LAST = "It is big."
"""What the helper tells ann in the end."""

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
"""ann asks the helper, the helper asks the expert, the expert answers, and the helper tells ann."""


def team_script() -> Script:
    """Its holds are `end` (of "slowly ..." questions)."""
    return load_script(_HERE / "team.yaml")


async def ask(room: Room) -> None:
    """Ann asks; returns when she has been answered and nobody is at work any more."""
    ann = await room.join("ann")
    await ann.tells("helper", QUESTION)
    await ann.hears("helper", lambda message: message.text == LAST)
    while True:
        turns = Turns.model_validate(await ann.client.call("list_turns")).turns
        if all(turn.outcome is not None for turn in turns):
            return  # else asked again: the question itself takes its time
