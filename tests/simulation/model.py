"""A model that does what the message says, and a tool whose effects are counted.

A message is `t17 pay`: a unique token, and the agent's task.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import JsonValue

from hubbub import tool
from hubbub.agents.tools.base import Tool

__all__ = ["DOES", "FINISH", "REFUSED", "Calls", "obey", "shop"]

DOES = ("echo", "pay", "ask", "quiet", "fail", "slow", "work", "chat", "pass")
"""The tasks: answer; pay; ask the colleague (`chat` repeats that without end); stay silent; a model
that fails; a slow one; many steps; pass the work on, after which the agent's model fails or, for
every second token, its colleague's."""
Calls = list[tuple[str, dict[str, JsonValue]]]
FINISH = "finish"
REFUSED: Calls = []
"""The endpoint refuses the request permanently."""
_INCOMING = re.compile(r"<incoming_message [^>]*> <content>(t\S+) (\w+)")


def obey(messages: Sequence[dict[str, Any]], colleague: str) -> tuple[Calls, float]:
    """The model's calls for these messages, and the seconds it takes."""
    first = next(m for m in messages if m["role"] == "user")
    incoming = _INCOMING.findall(str(first["content"]))
    token, does = incoming[-1] if incoming else ("none", "echo")
    step = sum(m["role"] == "assistant" for m in messages)
    thinks = 30.0 if does == "slow" else 0.05
    if does == "pass" and token[-1:] in "02468":
        does = "relay"
    if does == "fail" or (does == "pass" and step):
        return REFUSED, thinks
    if step > 8:
        return [(FINISH, {"reason": "enough"})], thinks
    return _calls(token, does, step, colleague), thinks


def _calls(token: str, does: str, step: int, colleague: str) -> Calls:
    answer: tuple[str, dict[str, JsonValue]] = FINISH, {"message": f"{token}-re {does}"}
    match does:
        case "pay" if step == 0:
            return [("pay", {"what": token})]
        case "ask" | "chat" if step == 0:
            then = "echo" if does == "ask" else "chat"
            return [("send_text_message", {"to": colleague, "text": f"{token}+ {then}"}), answer]
        case "pass":
            return [("send_text_message", {"to": colleague, "text": f"{token}+ echo"})]
        case "relay" if step == 0:
            return [("send_text_message", {"to": colleague, "text": f"{token}+ fail"})]
        case "relay":
            return [(FINISH, {"reason": "it is passed on"})]
        case "work" if step < 6:
            return [("look", {"what": f"{token} {step}"})]
        case "quiet":
            return [(FINISH, {"reason": "nothing to say"})]
    return [answer]


def shop(paid: Callable[[str], None]) -> dict[str, Tool]:
    """The agent's tools; `paid` is called for each payment."""

    @tool(permission="write", confirm=True, untrusted=False)
    async def pay(what: str) -> str:
        """Pay for something. It cannot be undone."""
        await asyncio.sleep(0.01)
        paid(what)
        await asyncio.sleep(15.0)
        return f"paid for {what}"

    @tool(untrusted=False)
    async def look(what: str) -> str:
        """Look at something."""
        await asyncio.sleep(0.01)
        return f"{what} is there"

    return {"sim:pay": pay, "sim:look": look}
