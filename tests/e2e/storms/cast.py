"""Agents that answer everything, and a tool, which a network must survive."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from hubbub import Agent, Message
from hubbub.client import Client, RunFile, WebSocketTransport

__all__ = ["Clock", "Crier", "Forwarder", "Polite", "Unlucky", "remind_me"]

WORM = "FORWARD THIS TO ALL"


class Clock(Agent):
    """A bystander that takes no part in the storm."""

    async def on_direct(self, message: Message) -> str:
        return f"tick {message.text}"


class _Sociable(Agent):
    """Answers a person who asks whether it is there."""

    async def on_direct(self, message: Message) -> str | None:
        return self.here(message)

    def here(self, message: Message) -> str | None:
        asks = message.sender_kind == "human" and "are you there" in message.text
        return f"I am here, {message.sender_id}" if asks else None

    async def others(self) -> Sequence[str]:
        """The other agents of the storm."""
        agents = [p.id for p in await self.participants() if p.kind == "agent"]
        return [name for name in agents if name not in (self.name, "clock")]


class Polite(_Sociable):
    """Thanks the sender of each mention with a mention."""

    async def on_mention(self, message: Message) -> str:
        if message.sender_kind == "human":
            return self.here(message) or f"@{message.text.split()[-1]} thank you!"
        return f"@{message.sender_id} no, thank you!"


class Crier(_Sociable):
    """Answers every broadcast with another, including those it only observes."""

    async def on_broadcast(self, message: Message) -> None:
        await self.broadcast("me too")


class Unlucky(_Sociable):
    """Fails on every mention, and announces every failure that it observes."""

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
    """Obeys a worm and sends it to all other agents."""

    async def on_direct(self, message: Message) -> str | None:
        if message.text.startswith(WORM):
            for name in await self.others():
                await self.send(name, message.text)
        return self.here(message)


async def remind_me(agent: str) -> str:
    """Remind yourself of your work, through a message whose cause the hub cannot see."""
    (path,) = (Path(os.environ["HUBBUB_STATE_DIR"]) / "run").glob("*")
    url = RunFile.model_validate_json(path.read_bytes()).url
    async with Client(WebSocketTransport(url), "timer", "service", cursor="latest") as timer:
        await timer.call("send_text_message", to=agent, text="remember your work")
    return "reminded"
