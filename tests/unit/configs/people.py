"""A person in a network under test: says something, and waits for what others say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from hubbub.client import Client
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message

__all__ = ["PATIENCE_S", "Person"]

PATIENCE_S = 100.0
"""How long a person waits before the test fails."""


class Person:
    """Wraps a connected client."""

    def __init__(self, client: Client):
        self.client = client
        self.heard: list[Message] = []
        """Everything so far, also what nobody has waited for."""
        self._unread: list[Message] = []
        self._events = client.events()

    async def tells(self, to: str, text: str) -> None:
        """A direct message."""
        await self.client.call("send_text_message", to=to, text=text)

    async def posts(self, channel: str, text: str) -> None:
        await self.client.call("post_to_channel", channel=channel, text=text)

    async def broadcasts(self, text: str) -> None:
        await self.client.call("broadcast_text_message", text=text)

    async def asks(self, to: str, text: str) -> str:
        """A direct message, and the text of the answer."""
        await self.tells(to, text)
        return (await self.hears(to, lambda message: message.type == "direct")).text

    async def hears(
        self, sender: str, condition: Callable[[Message], bool] = lambda message: True
    ) -> Message:
        """The next message of `sender` for which `condition` holds. Each is heard once."""
        for message in self._unread:
            if message.sender_id == sender and condition(message):
                self._unread.remove(message)
                return message
        try:
            async with asyncio.timeout(PATIENCE_S):
                while True:
                    message = await self._next()
                    if message.sender_id == sender and condition(message):
                        return message
                    self._unread.append(message)
        except TimeoutError as error:
            told = "\n".join(f"{m.sender_id} in {m.thread_id}: {m.text}" for m in self.heard)
            raise AssertionError(f"{sender} did not say it; heard was:\n{told}") from error

    async def _next(self) -> Message:
        while True:
            item = await anext(self._events)
            if isinstance(item, Event):
                await self.client.ack(item.seq)
                self.heard.append(item.message)
                return item.message
