"""The base class for agents of other frameworks.

    class MyAgent(GuestAgent):
        async def run(self, turn: GuestTurn) -> str:
            return await my_framework(turn.prompt, tools=[wrap(tool, turn) for tool in turn.tools])

See `GuestTurn` for the input of a run and for how it reports its work.
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
from hubbub.errors import ConnectionLost, HubbubError, UserError
from hubbub.interop.guest import GuestBackend, GuestTurn, text_of
from hubbub.protocol.codes import may_reconnect

__all__ = [
    "NETWORK_TOOLS",
    "GuestAgent",
    "GuestTurn",
    "WorkerThreads",
    "answer_of",
    "check_type",
    "text_of",
]

NETWORK_TOOLS = ("list_participants", "read_thread", "send_text_message", "post_to_channel")
"""The operations offered as tools by default."""

P = ParamSpec("P")
T = TypeVar("T")

_WORKERS = ThreadPoolExecutor(64, "guest")


class GuestAgent(Agent):
    """An agent of another framework. It has no handlers: `run` takes whole turns.

    `network_tools` names the operations of the hub and its mods that its model is offered as tools;
    `model` is written to the turns' records.
    """

    model: str | None = None

    def __init__(self, name: str = "", *, network_tools: Sequence[str] = NETWORK_TOOLS):
        self.name, self.network_tools = name, tuple(network_tools)

    async def run(self, turn: GuestTurn) -> str:
        """Take a turn and return the answer; an empty answer is not sent.

        Cancelled when a person stops the turn. A `ModelError` ends the turn as `model_error`, any
        other exception as `handler_error`.
        """
        raise NotImplementedError

    def serve(self, address: str | None = None, *, token: str | None = None) -> None:
        """Join a running network under this agent's name and take turns until Ctrl-C.

        Address and token default to those that `hubbub agents run` uses. Raises `UserError` if
        there is no network or an event loop is running, and `ConnectionLost` when the hub closes
        the connection for good.
        """
        if _is_loop_running():
            raise UserError(
                "serve: an event loop is already running, as in a notebook; use `await "
                "agent.served()`"
            )
        with contextlib.suppress(KeyboardInterrupt):
            run_loop(self.served(address, token=token))

    async def served(self, address: str | None = None, *, token: str | None = None) -> None:
        """`serve` in a running event loop, until cancelled."""
        from hubbub.agents.launch import run_python_agent

        place = find_network(address)
        token = token or place.tokens.get(self.name)
        transport = WebSocketTransport(*place.urls)
        try:
            async with Client(transport, self.name, "agent", token=token, turns=True) as client:
                await run_python_agent(self, client)
        except ConnectionLost as error:
            if not may_reconnect(error.code):
                raise
            raise UserError(
                f"no network answers at {place.url} ({error.reason or 'connection lost'}); start "
                "one with `hubbub up`, or pass its `address`"
            ) from None

    def _backend(self, client: Client, inbox: Inbox, config: AgentConfig) -> AgentBackend:
        return GuestBackend(self, client, inbox, config)


def check_type(adapter: GuestAgent, agent: object, *types: type) -> None:
    """Raises `UserError` unless the adapter's agent has one of these types."""
    if not isinstance(agent, types):
        names = " or ".join(f"{t.__module__.partition('.')[0]}.{t.__name__}" for t in types)
        raise UserError(f"{type(adapter).__name__} takes an instance of {names}, not {agent!r}")


def answer_of(turn: GuestTurn, output: object) -> str:
    """A run's output as the turn's answer.

    Raises `HubbubError` if there is none although the model has called a tool.
    """
    text = text_of(output)
    calls = turn.steps[-1].calls if turn.steps else ()
    open_calls = [call.name for call in calls if call.result is None]
    if open_calls and not text.strip():
        raise HubbubError(
            f"the run ended before {', '.join(open_calls)} ran: the tool is unknown, or waits for "
            "an approval of the framework, which does not go through the hub"
        )
    return text


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class WorkerThreads:
    """Runs a framework's blocking code in threads, which report their work to the turn and wait
    until it is recorded. After the turn has ended, the next report ends the thread.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waits: set[Future[Any]] = set()  # with results of any type
        self._over = False

    async def __aenter__(self) -> WorkerThreads:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over = True
        for future in tuple(self._waits):
            future.cancel()

    async def run(self, work: Callable[P, T], *args: P.args, **kw: P.kwargs) -> T:
        """Run `work(...)` in a thread, in a copy of the context, and return its result."""
        call = contextvars.copy_context().run
        return await self._loop.run_in_executor(_WORKERS, lambda: call(work, *args, **kw))

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` in the turn's event loop and return its result. Called in a thread.

        After the turn has ended it raises `SystemExit`, which `except Exception` does not catch.
        """
        if self._over:  # the event loop may be closed
            work.close()
            raise SystemExit
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._waits.add(future)
        if self._over:  # since then
            future.cancel()
        try:
            return future.result()
        except CancelledError:
            raise SystemExit from None
        finally:
            self._waits.discard(future)
