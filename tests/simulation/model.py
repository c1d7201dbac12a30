"""A model that does what the message says, and a tool whose effects are counted.

A text is `t17 pay`: a token that no other text has, and what the agent shall do.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable

from pydantic import JsonValue

from hubbub import tool
from hubbub.agents.models.base import CallRequest, Completion, CompletionRequest, OnDelta
from hubbub.agents.tools.base import Tool
from hubbub.errors import ModelError

__all__ = ["DOES", "MOST_TOKENS", "ObedientModel", "shop"]

DOES = ("echo", "pay", "ask", "quiet", "fail", "slow", "work", "chat", "pass")
"""What a message to an agent may want: an answer; a payment; that it asks its colleague, and what
`chat` does without end; silence; a model that fails; one that takes long; many steps; that it
hands the work on, and its model fails then."""
WRITES = 100
"""Tokens of an answer."""
MOST_TOKENS = 2500
"""No question with its answer is larger."""
_INCOMING = re.compile(r"<incoming_message [^>]*> <content>(t\S+) (\w+)")


class ObedientModel:
    """Each question is asked and answered in virtual time."""

    name = "obedient"

    def __init__(self, colleague: str):
        self._colleague = colleague

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        first = next(m for m in question.messages if m["role"] == "user")
        said = _INCOMING.findall(str(first["content"]))
        token, does = said[-1] if said else ("none", "echo")
        step = sum(m["role"] == "assistant" for m in question.messages)
        await asyncio.sleep(30.0 if does == "slow" else 0.05)
        if does == "fail" or (does == "pass" and step):
            raise ModelError("the endpoint is down")
        calls = self._calls(token, does, step)
        if step > 8:
            calls = [("finish", {"reason": "enough"})]
        tokens = min((question.tokens or 1000) + WRITES // 2, MOST_TOKENS)
        made = tuple(
            CallRequest(f"c{step}.{n}", name, json.dumps(args))
            for n, (name, args) in enumerate(calls)
        )
        return Completion(None, made, tokens - WRITES // 2, WRITES // 2, "tool_calls")

    def _calls(self, token: str, does: str, step: int) -> list[tuple[str, dict[str, JsonValue]]]:
        answer: tuple[str, dict[str, JsonValue]] = "finish", {"message": f"{token}-re {does}"}
        match does:
            case "pay" if step == 0:
                return [("pay", {"what": token})]
            case "ask" | "chat" if step == 0:
                then = "echo" if does == "ask" else "chat"
                text = f"{token}+ {then}"
                return [("send_text_message", {"to": self._colleague, "text": text}), answer]
            case "pass":
                return [("send_text_message", {"to": self._colleague, "text": f"{token}+ echo"})]
            case "work" if step < 6:
                return [("look", {"what": f"{token} {step}"})]
            case "quiet":
                return [("finish", {"reason": "nothing to say"})]
        return [answer]

    async def close(self) -> None:
        """There is no connection."""


def shop(paid: Callable[[str], None]) -> dict[str, Tool]:
    """The agent's tools; `paid` is told of each payment as it is made."""

    @tool(permission="write", confirm=True, outside=False)
    async def pay(what: str) -> str:
        """Pay for something. It cannot be taken back."""
        await asyncio.sleep(0.01)
        paid(what)
        await asyncio.sleep(15.0)
        return f"paid for {what}"

    @tool(outside=False)
    async def look(what: str) -> str:
        """Look at something."""
        await asyncio.sleep(0.01)
        return f"{what} is there"

    return {"sim:pay": pay, "sim:look": look}
