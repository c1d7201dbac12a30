"""The calculator: arithmetic and unit conversion, exact where possible."""

from __future__ import annotations

import re

from expression import Problem
from manners import WELCOME, for_others, is_thanks, of_another_agent
from phrasing import as_calculation, plain_question, without_name
from quantities import calculate

from hubbub import Agent, Message

__all__ = ["Calculator", "answer", "is_calculation"]

HELP = (
    "I calculate and convert units. Try: 2 + 3 × 4^2 · 20% of 1,250 · sqrt(2) · 5 miles to km · "
    "72 F in C · 3 h 20 min in minutes · 10 GB / 50 Mbps in minutes"
)


class Calculator(Agent):
    """Answers messages addressed to it, and people's broadcasts that contain a calculation."""

    async def on_direct(self, message: Message) -> str | None:
        if of_another_agent(message, self.name):
            return None
        return answer(without_name(message.text, self.name))

    async def on_mention(self, message: Message) -> str | None:
        return answer(without_name(message.text, self.name))

    async def on_broadcast(self, message: Message) -> str | None:
        if message.sender_kind != "human" or for_others(message, self.name):
            return None
        return answer(message.text) if is_calculation(message.text) else None


def answer(text: str) -> str:
    """The result, as `5 miles in km = 8.04672 km`, or an error with its place."""
    if is_thanks(text):
        return WELCOME
    expression = as_calculation(text)
    try:
        result = str(calculate(expression))
    except Problem as problem:
        if not re.search(r"\d", expression):
            return HELP
        return f"I cannot calculate that:\n{problem.pointed(expression)}"
    if result == expression:
        return HELP
    return f"{expression} {result}" if result.startswith("≈") else f"{expression} = {result}"


def is_calculation(text: str) -> bool:
    """Whether `text` can be calculated, and is more than a lone number or word."""
    question = plain_question(text)
    if not re.search(r"\d", question) or re.fullmatch(r"[\d.,\s]*", question):
        return False
    try:
        calculate(as_calculation(text))
    except Problem:
        return False
    return True
