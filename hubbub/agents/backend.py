"""What an agent does with its turns (one model, several, or handlers), and how it observes."""

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

__all__ = ["AgentBackend", "Overhearing"]


class AgentBackend:
    """What the runner of an agent asks, and tells of what happens. One that derives from it need
    not care for what it has no use for.
    """

    async def ready(self, ready: Ready) -> None:
        """A connection stands; called before the inbox takes it in."""

    async def start(self) -> None:
        """Called once, when the agent has joined."""

    async def prepare(self) -> None:
        """Called after `start`, when turns may begin: what the first one would have to make, in
        pieces of a few milliseconds."""

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        """Whether somebody waits for just this message: then it starts no turn of its own.

        None: no. The verdict may come later; until then nothing happens with the message.
        """
        return None

    def observes(self, message: Message) -> bool:
        """Whether `observe` wants this message, which wakes nobody here."""
        return False

    async def observe(self, message: Message) -> None:
        """What wakes nobody here stands in the next prompt of a model."""

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        """Run the turn and record its end, or that it waits for a person (`TurnRecorder.park`). An
        exception is recorded as `handler_error`.
        """
        raise NotImplementedError

    async def dropped(self, turn: str) -> None:
        """A turn will not go on: it was ended by somebody else, while it ran or while it waited for
        a person.
        """


# Messages that are only overheard: they wake nobody here, and no turn comes of them.


class Overhearing:
    """Those of one thread are heard one after the other, those of several side by side.

    `done` is told the position of each that needs to be heard no more; `written` waits until the
    hub is told.
    """

    def __init__(
        self,
        backend: AgentBackend,
        done: Callable[[int], Awaitable[None]],
        written: Callable[[], Awaitable[None]],
    ):
        self._backend, self._done, self._written = backend, done, written
        self._locks = WeakValueDictionary[str, asyncio.Lock]()  # for as long as somebody has them

    async def hear(self, message: Message, *, suspect: bool) -> None:
        """Let the backend observe it, when those before it have been. Raises nothing that a handler
        raises: that is shown. `suspect`: an earlier process may have died of it. No turn counts
        how many did, so this one is told of it first, and is the last.
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
                return  # what is not acknowledged is overheard again
            except Exception as exc:  # noqa: BLE001 - a handler may raise anything; it is shown
                traceback.print_exception(exc)
        if not suspect:
            await self._done(message.seq)
