"""The interface between the runner and what takes an agent's turns: models, or handlers."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable
from weakref import WeakValueDictionary

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.errors import ConnectionLost
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message
from hubbub.user_code import contained

__all__ = ["AgentBackend", "MessageObserver"]


class AgentBackend:
    """What the runner asks and notifies. Subclasses override the methods that they need."""

    async def ready(self, ready: Ready) -> None:
        """A connection was established; called before the inbox takes in its state."""

    async def start(self) -> None:
        """Called once, when the agent has joined."""

    async def prepare(self) -> None:
        """Called after `start`, when turns may begin: build what the first turn would otherwise
        have to build, in pieces of a few milliseconds.
        """

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether code of the agent awaits exactly this message, so that it starts no turn.

        None: no. The verdict may come later; until then the message is not processed.
        """
        return None

    def observes(self, message: Message) -> bool:
        """Whether `observe` wants this message, which does not wake the agent."""
        return False

    async def observe(self, message: Message) -> None:
        """Process a message that does not wake the agent; a model sees it in its next prompt."""

    def shares(self, thread_id: str, parked: str) -> bool:
        """Whether turns of a thread need what a parked turn in the thread `parked` holds, and so
        start after it.
        """
        return False

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        """Run the turn and record its end, or park it (`TurnRecorder.park`). An exception is
        recorded as `handler_error`.
        """
        raise NotImplementedError

    async def dropped(self, turn: str) -> None:
        """The turn will not continue: it was ended from outside while it ran or was parked."""


# Observed messages: they do not wake the agent and start no turn.


class MessageObserver:
    """Passes messages to the backend's `observe`: one after the other within a thread, threads in
    parallel.

    `done` is called with the position of each processed message; `written` waits until that has
    reached the hub.
    """

    def __init__(
        self,
        backend: AgentBackend,
        done: Callable[[int], Awaitable[None]],
        written: Callable[[], Awaitable[None]],
    ):
        self._backend, self._done, self._written = backend, done, written
        self._locks = WeakValueDictionary[str, asyncio.Lock]()  # for as long as they are in use

    async def observe(self, message: Message, *, suspect: bool) -> None:
        """Let the backend observe the message after the earlier ones of its thread. Exceptions of
        handlers are printed, not raised. `suspect`: an earlier process may have crashed on it. No
        turn counts such crashes, so the message is acknowledged first and not observed a second
        time.
        """
        lock = self._locks.setdefault(message.thread_id, asyncio.Lock())
        async with lock:
            if suspect:
                await self._done(message.seq)
                await self._written()
            try:
                with contained():
                    await self._backend.observe(message)
            except ConnectionLost:
                return  # not acknowledged, so it will be observed again
            except Exception as exc:  # noqa: BLE001 - a handler may raise anything; it is printed
                traceback.print_exception(exc)
        if not suspect:
            await self._done(message.seq)
