"""Agents that never leave anything unanswered, and a tool: what a network must survive."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hubbub import Agent, Message
from hubbub.client import Client, RunFile, WebSocketTransport

__all__ = ["Clock", "Crier", "Forwarder", "Polite", "Unlucky", "remind_me"]

WORM = "FORWARD THIS TO ALL"


class Clock(Agent):
    """A bystander, who has nothing to do with any of it."""

    async def on_direct(self, message: Message) -> str:
        return f"tick {message.text}"


class _Sociable(Agent):
    """What all of the others do: answer a person who asks whether they are there."""

    async def on_direct(self, message: Message) -> str | None:
        return self.here(message)

    def here(self, message: Message) -> str | None:
        asks = message.sender_kind == "human" and "are you there" in message.text
        return f"I am here, {message.sender_id}" if asks else None

    async def others(self) -> Sequence[str]:
        """Who else is in it."""
        found = [p.id for p in await self.participants() if p.kind == "agent"]
        return [name for name in found if name not in (self.name, "clock")]


class Polite(_Sociable):
    """Thanks whoever has mentioned it, by a mention."""

    async def on_mention(self, message: Message) -> str:
        if message.sender_kind == "human":
            return self.here(message) or f"@{message.text.split()[-1]} thank you!"
        return f"@{message.sender_id} no, thank you!"


class Crier(_Sociable):
    """Answers every broadcast by another one, also those that it merely overhears."""

    async def on_broadcast(self, message: Message) -> None:
        await self.broadcast("me too")


class Unlucky(_Sociable):
    """Fails at all that it is asked, and tells everybody about every failure that it hears of."""

    async def on_mention(self, message: Message) -> str:
        answer = self.here(message)
        if answer is None:
            raise RuntimeError("no luck today")
        return answer

    async def on_channel_message(self, message: Message) -> str | None:
        if message.sender_kind != "system":
            return None
        return " ".join(f"@{name}" for name in await self.others()) + " it has failed!"


class Forwarder(_Sociable):
    """Does what a worm wants: sends it to everybody that it knows."""

    async def on_direct(self, message: Message) -> str | None:
        if message.text.startswith(WORM):
            for name in await self.others():
                await self.send(name, message.text)
        return self.here(message)


async def remind_me(agent: str) -> str:
    """Remind yourself of your work, from outside: the message has no cause that a hub could see."""
    (path,) = (Path(os.environ["HUBBUB_STATE_DIR"]) / "run").glob("*")
    url = RunFile.model_validate_json(path.read_bytes()).url
    async with Client(WebSocketTransport(url), "timer", "service", cursor="latest") as timer:
        await timer.call("send_text_message", to=agent, text="remember your work")
    return "reminded"
