"""A person in a network under test, who sends messages and waits for answers."""

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
        """All received messages, including those that no test waited for."""
        self._unread: list[Message] = []
        self._events = client.events()

    async def tells(self, to: str, text: str) -> None:
        """Send a direct message."""
        await self.client.call("send_text_message", to=to, text=text)

    async def posts(self, channel: str, text: str) -> None:
        await self.client.call("post_to_channel", channel=channel, text=text)

    async def broadcasts(self, text: str) -> None:
        await self.client.call("broadcast_text_message", text=text)

    async def asks(self, to: str, text: str) -> str:
        """Send a direct message and return the text of the answer."""
        await self.tells(to, text)
        return (await self.hears(to, lambda message: message.type == "direct")).text

    async def hears(
        self, sender: str, condition: Callable[[Message], bool] = lambda message: True
    ) -> Message:
        """The next message from `sender` for which `condition` holds. Returns each only once."""
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
            heard = "\n".join(f"{m.sender_id} in {m.thread_id}: {m.text}" for m in self.heard)
            raise AssertionError(f"no such message from {sender}; received:\n{heard}") from error

    async def _next(self) -> Message:
        while True:
            item = await anext(self._events)
            if isinstance(item, Event):
                await self.client.ack(item.seq)
                self.heard.append(item.message)
                return item.message
