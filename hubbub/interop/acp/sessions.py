"""The sessions of an agent: one per thread or one for all. They survive restarts.

The agent stores the session of each thread at the hub, under one key of its memory. After a restart
on any machine the program resumes the session, if it still has it.
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
    """A session, as stored at the hub."""

    id: str
    told: str = ""
    """Hash of the system prompt that it got."""
    cost: float | None = None
    """Its cost so far, in US dollars."""


@dataclass
class _SessionHolder:
    turn: str
    free: asyncio.Event


class AcpSessions:
    """Assigns sessions to turns. At most one turn at a time holds a session, also while it waits
    for a person.
    """

    def __init__(
        self,
        program: AcpProgram,
        network: NetworkTools,
        client: Client,
        servers: Sequence[Server],
    ):
        """`servers` are MCP servers in addition to the network's own."""
        self._program, self._network = program, network
        self._servers = servers
        self._open: dict[str, AcpSession] = {}
        self._held: dict[str, _SessionHolder] = {}
        self._saved = ThreadMemory(client, MEMORY_KEY, SavedSession)

    def key(self, thread_id: str) -> str:
        """The key under which the session of a thread is stored."""
        return thread_id if self._program.config.session == "thread" else _ALL_THREADS

    async def hold(self, key: str, turn: str) -> None:
        """Wait until the turn holds the session and a cancelled prompt in it has ended."""
        while (holder := self._held.get(key)) is not None and holder.turn != turn:
            await holder.free.wait()
        self._held.setdefault(key, _SessionHolder(turn, asyncio.Event()))
        if (session := self._open.get(key)) is not None and session.is_usable and holder is None:
            await session.wait_idle()

    def release(self, turn: str) -> None:
        """Release the session that the turn holds."""
        for key, holder in list(self._held.items()):
            if holder.turn == turn:
                del self._held[key]
                holder.free.set()

    async def open(self, key: str) -> tuple[AcpSession, SavedSession]:
        """The session, opened or resumed if necessary, and its stored state. Raises
        `ProgramFailed`.
        """
        saved = await self._saved.get(key)
        session = self._open.get(key)
        if session is not None and session.is_usable and not session.listener and saved is not None:
            return session, saved
        running = await self._program.running()
        mcp_key, server = self._network.server()
        cwd, servers = self._program.config.cwd, [server, *self._servers]
        session, resumed = await running.session(cwd, servers, saved.id if saved else None)
        session.key = mcp_key
        self._open[key] = session
        if saved is None or not resumed:
            saved = SavedSession(id=session.id)
        return session, saved

    async def save(self, key: str, session: SavedSession) -> None:
        """Store the session for later turns, in any process."""
        await self._saved.set(key, session)

    async def record_cost(self, thread_id: str, cost: float | None) -> None:
        """Store the cost of the thread's session so far, in US dollars."""
        key = self.key(thread_id)
        if (saved := await self._saved.get(key)) is not None:
            await self.save(key, saved.model_copy(update={"cost": cost}))
