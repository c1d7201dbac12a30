"""A person at the full-screen client, in a real network, without a terminal."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC

from textual.pilot import Pilot
from textual.widgets import OptionList, Static

from hubbub.cli.full.app import FullScreenChat
from hubbub.cli.full.composer import Writing
from hubbub.cli.full.conversation_view import ConversationView
from hubbub.cli.full.panels import DetailsPanel
from hubbub.cli.full.screen import ChatScreen
from hubbub.cli.full.state import State
from hubbub.client import Backoff, Client, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork

__all__ = ["DEADLINE_S", "FILE", "Desk", "next_event", "read_all", "sitting"]

DEADLINE_S = 30.0
FILE = NetworkFile.model_validate(
    {
        "network": {"name": "town", "auth": "open", "limits": {"text": "2KiB"}},
        "channels": {"general": {}},
        "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
        "agents": {"calculator": {"instruction": "add"}},
    }
)


class Desk:
    """Ann's screen and keyboard."""

    network: LocalNetwork
    client: Client
    app: FullScreenChat
    pilot: Pilot[int]

    def __init__(self, network: LocalNetwork) -> None:
        self.network = network
        self.away = False

    # Hands ------------------------------------------------------------------------------------

    async def presses(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def writes(self, text: str) -> None:
        """Put a text into the composer, as pasted."""
        self.writing.focus()
        await self.pilot.pause()
        self.writing.insert(text)
        await self.pilot.pause()

    async def says(self, text: str) -> None:
        """Write a text (or a command) and press Enter."""
        await self.writes(text)
        await self.presses("enter")

    # Eyes -------------------------------------------------------------------------------------

    @property
    def chat(self) -> ChatScreen:
        return self.app.chat

    @property
    def state(self) -> State:
        return self.chat.state

    @property
    def view(self) -> ConversationView:
        return self.chat.query_one(ConversationView)

    @property
    def writing(self) -> Writing:
        return self.chat.query_one(Writing)

    @property
    def conversation(self) -> list[str]:
        """The lines of the conversation that are in sight, without the gutter."""
        view = self.view
        return [view.render_line(y).text[2:].rstrip() for y in range(view.size.height)]

    def listed(self, name: str) -> list[str]:
        """The lines of a list, `#threads` or `#people`."""
        return [
            str(option.prompt) for option in self.app.screen.query_one(name, OptionList).options
        ]

    @property
    def status(self) -> str:
        return str(self.chat.query_one("#status", Static).render())

    @property
    def header(self) -> str:
        return str(self.chat.query_one("#header", Static).render())

    @property
    def details(self) -> str:
        panel = self.chat.query_one(DetailsPanel)
        return str(panel.query_one(Static).render()) if panel.display else ""

    @property
    def told(self) -> list[str]:
        """The notifications in sight."""
        return [notification.message for notification in self.app._notifications]

    async def sees(self, condition: Callable[[], bool]) -> None:
        """Wait until the condition holds."""
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                await self.pilot.pause()

    async def tells(self, text: str) -> None:
        """Wait for a notification with this text."""
        await self.sees(lambda: any(text in told for told in self.told))

    async def reads(self, text: str) -> str:
        """Wait for a line of the conversation with this text."""
        await self.sees(lambda: any(text in line for line in self.conversation))
        return next(line for line in self.conversation if text in line)

    # The connection ---------------------------------------------------------------------------

    def attach(self, outlet: Outlet) -> Inlet:
        if self.away:
            raise ConnectionRefusedError(111, "nobody there")
        return self.network.hub.attach(outlet)

    def cut(self, code: CloseCode = CloseCode.SLOW) -> None:
        """The hub closes ann's socket."""
        for session in self.network.hub.sessions():
            if session.participant == "ann":
                session.close(code, "cut by the test")

    async def keeps(self, thread: str, head: int, read: int) -> None:
        """Wait until the hub would tell a new window of ann's that of a thread."""
        async with asyncio.timeout(DEADLINE_S):
            while await self._kept(thread) != (head, read):
                await self.pilot.pause()

    async def _kept(self, thread: str) -> tuple[int, int] | None:
        transport = MemoryTransport(self.network.hub.attach)
        async with Client(transport, "ann", "human", latest=True) as ann:
            return next(((t.head, t.read) for t in ann.ready.threads if t.id == thread), None)


async def read_all(network: LocalNetwork, thread: str = "channel.general") -> None:
    """Ann has read a thread in another window."""
    async with Client(MemoryTransport(network.hub.attach), "ann", "human", latest=True) as ann:
        heads = {found.id: found.head for found in ann.ready.threads}
        await ann.call("mark_read", thread=thread, upto=heads[thread])


@asynccontextmanager
async def sitting(
    network: LocalNetwork, *, size: tuple[int, int] = (120, 36), opening: str | None = "#general"
) -> AsyncIterator[Desk]:
    """Ann sits at her screen, in #general."""
    desk = Desk(network)
    backoff = Backoff(first_s=0.02, most_s=0.05)
    desk.client = Client(MemoryTransport(desk.attach), "ann", "human", latest=True, backoff=backoff)
    async with desk.client:
        desk.app = FullScreenChat(desk.client, opening=opening, zone=UTC)
        async with desk.app.run_test(size=size) as desk.pilot:
            await desk.sees(desk.chat.engine.began.is_set)
            wanted = "broadcast" if opening is None else opening.replace("#", "channel.")
            await desk.sees(lambda: desk.state.current == wanted)
            yield desk


async def next_event(client: Client) -> Event:
    """The next message that somebody else has sent, acknowledged."""
    async with asyncio.timeout(DEADLINE_S):
        async for item in client.events():
            if isinstance(item, Event) and item.message.sender_id != client.participant:
                await client.ack(item.seq)
                return item
    raise AssertionError
