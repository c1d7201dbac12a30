"""The sessions of an agent: one for each thread, or one for all, which survive restarts.

Which session belongs to a thread the agent remembers at the hub, under one key of its own memory:
wherever it is started anew, its program goes on with what it knows, if it still does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import BaseModel

from hubbub.client import Client
from hubbub.interop.acp.network import NetworkTools
from hubbub.interop.acp.program import AcpProgram, AcpSession, Server
from hubbub.interop.thread_memory import ThreadMemory

__all__ = ["AcpSessions", "SavedSession"]

MEMORY_KEY = "acp.sessions"
_ALL_THREADS = "*"


class SavedSession(BaseModel):
    """What is remembered of a session."""

    id: str
    told: str = ""
    """A hash of the system prompt that it was given."""
    cost: float | None = None
    """US dollars that it has cost so far."""


@dataclass
class _SessionHolder:
    turn: str
    free: asyncio.Event


class AcpSessions:
    """Which session a turn works in. At most one turn at a time works in a session, and it has it
    also while it waits for a person.
    """

    def __init__(
        self,
        program: AcpProgram,
        network: NetworkTools,
        client: Client,
        servers: Sequence[Server],
    ):
        """`servers` are MCP servers besides the network's own."""
        self._program, self._network = program, network
        self._servers = servers
        self._open: dict[str, AcpSession] = {}
        self._held: dict[str, _SessionHolder] = {}
        self._remembered = ThreadMemory(client, MEMORY_KEY, SavedSession)

    def key(self, thread_id: str) -> str:
        """What the session of a thread is remembered by."""
        return thread_id if self._program.config.session == "thread" else _ALL_THREADS

    async def hold(self, key: str, turn: str) -> None:
        """Wait until the session is the turn's, and what was cancelled in it has ended."""
        while (holder := self._held.get(key)) is not None and holder.turn != turn:
            await holder.free.wait()
        self._held.setdefault(key, _SessionHolder(turn, asyncio.Event()))
        if (session := self._open.get(key)) is not None and session.usable and holder is None:
            await session.idle()

    def release(self, turn: str) -> None:
        """The turn works in its session no more."""
        for key, holder in list(self._held.items()):
            if holder.turn == turn:
                del self._held[key]
                holder.free.set()

    async def of(self, key: str) -> tuple[AcpSession, SavedSession]:
        """The session, and what is known of it: nothing but its id if it is new. Raises
        `ProgramFailed`.
        """
        known = await self._remembered.of(key)
        session = self._open.get(key)
        if session is not None and session.usable and not session.listener and known is not None:
            return session, known
        running = await self._program.running()
        mcp_key, server = self._network.server()
        cwd, servers = self._program.config.cwd, [server, *self._servers]
        session, loaded = await running.session(cwd, servers, known.id if known else None)
        session.key = mcp_key
        self._open[key] = session
        if known is None or not loaded:
            known = SavedSession(id=session.id)
        return session, known

    async def remember(self, key: str, known: SavedSession) -> None:
        """For the next turn, in whichever process."""
        await self._remembered.keep(key, known)

    async def spent(self, thread_id: str, cost: float | None) -> None:
        """What the thread's session has cost by now."""
        key = self.key(thread_id)
        if (known := await self._remembered.of(key)) is not None:
            await self.remember(key, known.model_copy(update={"cost": cost}))
