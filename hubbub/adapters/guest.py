"""A turn that another framework takes.

    class Mine(GuestAgent):
        async def run(self, turn: GuestTurn) -> str:
            return await my_framework(turn.prompt, tools=[wrap(tool, turn) for tool in turn.tools])

What the run is given, and what it tells of its work, `GuestTurn` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox
from hubbub.agents.python.agent import Agent
from hubbub.app.process import run_loop
from hubbub.client import Client, WebSocketTransport
from hubbub.client.runfile import find_network
from hubbub.config.agents import AgentConfig
from hubbub.interop.guest import GuestBackend, GuestTurn, text_of

__all__ = ["NETWORK_TOOLS", "GuestAgent", "GuestTurn", "WorkerThreads", "text_of"]

NETWORK_TOOLS = ("list_participants", "read_thread", "send_text_message", "post_to_channel")
"""The operations that an agent is offered as tools, unless it names others."""

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = ThreadPoolExecutor(64, "guest")


class GuestAgent(Agent):
    """Base of the agents of other frameworks. It has no handlers: `run` takes whole turns.

    `network_tools` are operations of the hub and its mods, which its model is offered as tools.
    `model` stands in the turns' records.
    """

    model: str | None = None

    def __init__(self, name: str = "", *, network_tools: Sequence[str] = NETWORK_TOOLS):
        self.name, self.network_tools = name, tuple(network_tools)

    async def run(self, turn: GuestTurn) -> str:
        """Take a turn, and return the answer; an empty one is not sent. Cancelled when people stop
        the turn. `ModelError` ends it as `model_error`, anything else as `handler_error`.
        """
        raise NotImplementedError

    def serve(self, address: str | None = None, *, token: str | None = None) -> None:
        """Join a running network under this agent's name, and take turns until Ctrl-C. The address
        and the token are found as by `hubbub agents run`. Raises `UserError` without a network, and
        `ConnectionLost` when the hub closes for good.
        """
        with contextlib.suppress(KeyboardInterrupt):
            run_loop(self.served(address, token=token))

    async def served(self, address: str | None = None, *, token: str | None = None) -> None:
        """`serve` in a loop that runs already, until cancelled."""
        from hubbub.agents.launch import run_python_agent

        place = find_network(address)
        token = token or place.tokens.get(self.name)
        transport = WebSocketTransport(*place.urls)
        async with Client(transport, self.name, "agent", token=token, turns=True) as client:
            await run_python_agent(self, client)

    def _backend(self, client: Client, inbox: Inbox, config: AgentConfig) -> AgentBackend:
        return GuestBackend(self, client, inbox, config)


class WorkerThreads:
    """Of a framework that works in threads: they tell the turn what they do, and wait until it is
    recorded. When the turn is over, a thread ends with what it would tell next.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits: set[Future[Any]] = set()  # of whatever is waited for
        self._over = False

    async def __aenter__(self) -> WorkerThreads:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        for future in tuple(self._waits):
            future.cancel()

    async def run(self, work: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """What `work(...)` returns, which runs in a thread and in a context of its own."""
        call = contextvars.copy_context().run
        return await self._loop.run_in_executor(_WORKERS, lambda: call(work, *args, **kw))

    def wait(self, telling: Coroutine[Any, Any, T]) -> T:
        """What this returns in the turn's loop. Called in a thread, which `SystemExit` ends: that
        passes by those who catch each `Exception`.
        """
        if self._over:  # its loop may be closed
            telling.close()
            raise SystemExit
        future = asyncio.run_coroutine_threadsafe(telling, self._loop)
        self._waits.add(future)
        if self._over:  # since then
            future.cancel()
        try:
            return future.result()
        except CancelledError:
            raise SystemExit from None
        finally:
            self._waits.discard(future)
