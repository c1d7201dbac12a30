"""The sessions of an agent: one for each thread, or one for all, which survive restarts.

Which session belongs to a thread the agent remembers at the hub, under one key of its own memory:
wherever it is started anew, its program goes on with what it knows, if it still does.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import BaseModel, TypeAdapter, ValidationError

from hubbub.client import Client
from hubbub.errors import OperationError
from hubbub.interop.acp.network import NetworkTools
from hubbub.interop.acp.program import Program, Server, Session
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.memory import Recalled

__all__ = ["Known", "Sessions"]

MEMORY_KEY = "acp.sessions"
_MOST = 100
"""Sessions that are remembered: the latest ones."""
_ALL_THREADS = "*"

log = get_logger(__name__)


class Known(BaseModel):
    """What is remembered of a session."""

    id: str
    told: str = ""
    """A hash of the system prompt that it was given."""
    cost: float | None = None
    """US dollars that it has cost so far."""


_REMEMBERED = TypeAdapter(dict[str, Known])


@dataclass
class _Holder:
    turn: str
    free: asyncio.Event


class Sessions:
    """Which session a turn works in. At most one turn at a time works in a session, and it has it
    also while it waits for a person.
    """

    def __init__(
        self,
        program: Program,
        network: NetworkTools,
        client: Client,
        servers: Sequence[Server],
    ):
        """`servers` are MCP servers besides the network's own."""
        self._program, self._network, self._client = program, network, client
        self._servers = servers
        self._open: dict[str, Session] = {}
        self._held: dict[str, _Holder] = {}
        self._remembered: dict[str, Known] | None = None

    def key(self, thread_id: str) -> str:
        """What the session of a thread is remembered by."""
        return thread_id if self._program.config.session == "thread" else _ALL_THREADS

    async def hold(self, key: str, turn: str) -> None:
        """Wait until the session is the turn's, and what was cancelled in it has ended."""
        while (holder := self._held.get(key)) is not None and holder.turn != turn:
            await holder.free.wait()
        self._held.setdefault(key, _Holder(turn, asyncio.Event()))
        if (session := self._open.get(key)) is not None and session.usable and holder is None:
            await session.idle()

    def release(self, turn: str) -> None:
        """The turn works in its session no more."""
        for key, holder in list(self._held.items()):
            if holder.turn == turn:
                del self._held[key]
                holder.free.set()

    async def of(self, key: str) -> tuple[Session, Known]:
        """The session, and what is known of it: nothing but its id if it is new. Raises
        `ProgramFailed`.
        """
        known = (await self._memory()).get(key)
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
            known = Known(id=session.id)
        return session, known

    async def remember(self, key: str, known: Known) -> None:
        """For the next turn, in whichever process. What the hub refuses is forgotten here, too."""
        memory = dict(await self._memory())
        before = memory.pop(key, None)
        memory[key] = known
        self._remembered = dict(list(memory.items())[-_MOST:])
        if before != known:
            with contextlib.suppress(OperationError):
                value = {key: each.model_dump() for key, each in self._remembered.items()}
                await self._client.call("remember", key=MEMORY_KEY, value=value)

    async def spent(self, thread_id: str, cost: float | None) -> None:
        """What the thread's session has cost by now."""
        key = self.key(thread_id)
        if (known := (await self._memory()).get(key)) is not None:
            await self.remember(key, known.model_copy(update={"cost": cost}))

    async def _memory(self) -> Mapping[str, Known]:
        if self._remembered is None:
            self._remembered = await self._recalled()
        return self._remembered

    async def _recalled(self) -> dict[str, Known]:
        try:
            value = await self._client.call("recall", key=MEMORY_KEY)
            return _REMEMBERED.validate_python(Recalled.model_validate(value).value)
        except OperationError as exc:
            if exc.code != ErrorCode.UNKNOWN_KEY:
                log.warning("sessions cannot be recalled", reason=str(exc))
        except ValidationError as exc:
            log.warning("sessions cannot be recalled", reason=str(exc))
        return {}
