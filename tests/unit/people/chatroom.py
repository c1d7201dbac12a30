"""Ann at a chat: a scripted console with the real client and hub."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from hubbub.client import Backoff, Client, ClientOptions, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.mods.loader import find_mod, settings_of
from hubbub.people.chat.console import Status, plain, render
from hubbub.people.chat.conversation import run_chat
from hubbub.people.shown import Line, MessageLine, OtherThreadLine
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork
from tests.unit.cli.conftest import settled

DEADLINE_S = 30.0
FILE = NetworkFile.model_validate(
    {
        "network": {"name": "town", "auth": "open"},
        "channels": {"general": {}, "desk": {"members": [], "description": "work"}},
        "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
        "agents": {"calculator": {"instruction": "add"}},
    }
)


def town(*mods: str) -> LocalNetwork:
    """A network with these mods."""
    kinds = [find_mod(name).kind for name in mods]
    return LocalNetwork(FILE, mods=[kind(settings_of(kind, {})) for kind in kinds])


def _is_notice(line: Line) -> bool:
    return isinstance(line, MessageLine | OtherThreadLine) and line.message.sender_kind == "system"


class Person:
    """A scripted console that types lines and waits for output."""

    def __init__(self, *, patient: bool = False) -> None:
        self.patient = patient
        self.shown: list[str] = []
        self._transcript: list[str] = []
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._idle = asyncio.Event()
        self._changed = asyncio.Event()

    def start(self, status: Status) -> None:
        self.status = status

    async def read(self) -> str | None:
        if self._lines.empty():
            self._idle.set()
        line = await self._lines.get()
        if line is not None:
            self._transcript.append(f"> {line}")
        return line

    def show(self, lines: Sequence[Line]) -> None:
        self.shown += [plain(render(line)) for line in lines]
        self._transcript += [plain(render(line)) for line in lines if not _is_notice(line)]
        self._changed.set()

    @property
    def transcript(self) -> str:
        """Everything typed and shown, without the hub's notices, whose order varies, and without
        ids, which depend on those notices."""
        return re.sub(r"\bm\d+\b", "<m>", settled("\n".join(self._transcript)))

    def refresh(self) -> None:
        self._changed.set()

    def types(self, *lines: str) -> None:
        for line in lines:
            self._lines.put_nowait(line)

    async def enters(self, *lines: str) -> None:
        """Types the lines and waits until a patient console has handled them all."""
        self._idle.clear()
        self.types(*lines)
        async with asyncio.timeout(DEADLINE_S):
            await self._idle.wait()

    def leaves(self) -> None:
        self._lines.put_nowait(None)

    async def sees(self, text: str) -> str:
        """Waits for a line with this text, and drops the lines before it."""
        await self._until(lambda: any(text in line for line in self.shown))
        n = next(n for n, line in enumerate(self.shown) if text in line)
        line, self.shown = self.shown[n], self.shown[n + 1 :]
        return line

    async def status_is_quiet(self) -> None:
        await self._until(lambda: not self.status.notices())

    async def status_shows(self, text: str) -> None:
        await self._until(lambda: any(text in notice for _, notice in self.status.notices()))

    async def _until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while not condition():
                self._changed.clear()
                await self._changed.wait()


class Chat:
    """Ann at her console, in a running network."""

    def __init__(self, network: LocalNetwork, opening: str | None) -> None:
        self.network = network
        self.opening = opening
        self.away = False
        self.ann = Person()
        self.code: int | None = None

    def attach(self, outlet: Outlet) -> Inlet:
        if self.away:
            raise ConnectionRefusedError(111, "no hub")
        return self.network.hub.gateway.attach(outlet)

    async def run(self) -> None:
        backoff = ClientOptions(backoff=Backoff(first_s=0.001, most_s=0.005))
        async with Client(MemoryTransport(self.attach), "ann", "human", options=backoff) as client:
            self.code = await run_chat(client, self.ann, opening=self.opening)

    def cut(self, code: CloseCode = CloseCode.SLOW) -> None:
        for session in self.network.hub.gateway.sessions():
            if session.participant == "ann":
                session.close(code, "cut by the test")


@asynccontextmanager
async def chatting(
    network: LocalNetwork, *, patient: bool = False, opening: str | None = "#general"
) -> AsyncIterator[Chat]:
    """Ann chats in #general, and leaves at the latest at the end of the block."""
    chat = Chat(network, opening)
    chat.ann = Person(patient=patient)
    async with asyncio.TaskGroup() as tasks:
        running = tasks.create_task(chat.run())
        yield chat
        chat.ann.leaves()
        async with asyncio.timeout(DEADLINE_S):
            await running


async def next_text(client: Client) -> str:
    async with asyncio.timeout(DEADLINE_S):
        async for item in client.events():
            if isinstance(item, Event) and item.message.sender_id != client.participant:
                await client.ack(item.seq)
                return item.message.text
    raise AssertionError
