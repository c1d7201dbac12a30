"""What the model is asked to do, and whether what it did makes sense."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hubbub.protocol.turns import Turn

__all__ = ["TASKS", "Task"]

Sensible = Callable[[Turn, Sequence[str]], bool]
"""Of the turn's record and the texts that the person got."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something that a person asks for."""

    name: str
    message: str
    sensible: Sensible


def _says(pattern: str) -> Sensible:
    wanted = re.compile(pattern, re.IGNORECASE)
    return lambda turn, said: any(wanted.search(text) for text in said)


def _calls(tool: str, **arguments: object) -> Sensible:
    def sensible(turn: Turn, said: Sequence[str]) -> bool:
        calls = (c for step in turn.steps for c in step.calls if c.name == tool and not c.error)
        return any(
            isinstance(call.arguments, dict) and arguments.items() <= call.arguments.items()
            for call in calls
        )

    return sensible


TASKS = (
    Task("greet", "Hello! Please say hello to me.", _says(r"\b(hello|hi)\b")),
    Task("capital", "What is the capital of France?", _says("paris")),
    Task("add", "Use the tool add: what is 2 + 3?", _calls("add", a=2, b=3)),
    Task("weather", "What is the weather in Oslo?", _calls("weather", city="Oslo")),
    Task("light", "Switch the light in the kitchen on.", _calls("switch_light", room="kitchen")),
    Task("colour", "Name a colour of a ripe tomato.", _says("red")),
    Task("repeat", "Send me the word banana.", _says("banana")),
    Task("finish", "There is nothing to do. Call finish.", _calls("finish")),
    Task("yes", "Is water wet? Answer yes or no.", _says(r"\b(yes|no)\b")),
    Task("ask", "Ask me for my name with the tool ask_human.", _calls("ask_human")),
)
"""Ten of them."""
