"""Runs the handlers of a Python agent: one recorded turn for each wake."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Literal

from pydantic import JsonValue

from hubbub.agents.agent import Agent
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.journal import Journal
from hubbub.agents.link import Link
from hubbub.agents.scope import Scope, entered
from hubbub.agents.tools.threads import run_in_thread
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step

__all__ = ["HandlerBrain"]

HandlerName = Literal["on_direct", "on_mention", "on_reply", "on_broadcast", "on_channel_message"]

_BY_REASON: dict[str, HandlerName] = {
    "direct": "on_direct",
    "mention": "on_mention",
    "last_speaker": "on_reply",
    "broadcast": "on_broadcast",
}
"""The handler for a wake, by the reason code that the hub gives."""

SHOWN_AFTER_S = 1.0
"""Seconds after which the others in the thread are shown that the agent is at work."""

log = get_logger(__name__)


class HandlerBrain:
    """Takes turns by calling the handlers of `agent`, which is linked already."""

    def __init__(self, agent: Agent, link: Link, *, timeout: float = 300.0):
        """`timeout`: seconds that a turn may take."""
        self._agent, self._link, self._timeout = agent, link, timeout
        self._plain = asyncio.Lock()
        self._first = True

    async def start(self) -> None:
        """Call `on_start`; what it raises is raised."""
        await self._call(self._agent.on_start)

    def ready(self, ready: Ready) -> None:
        if self._first or not ready.resumed:  # later, turns that have begun are our own
            self._first = False
            self._link.take_up({p.started for p in ready.pending if p.started is not None})

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        return self._link.claim(message)

    # Overhearing --------------------------------------------------------------------------------

    def observes(self, message: Message) -> bool:
        if message.sender_kind == "system" or message.sender_id == self._link.me:
            return False
        if message.type == "direct":
            return False  # nobody overhears those; this one was the last of its interaction
        return self._defines(_overhears(message))

    async def observe(self, message: Message) -> None:
        with entered(Scope(message.id)):
            try:
                await self._handle(_overhears(message), message)
            except OperationError as exc:
                if exc.code != ErrorCode.HOP_LIMIT:
                    raise
                log.info("an overheard message stays unanswered", reason=exc.message)

    # Turns --------------------------------------------------------------------------------------

    async def take_turn(self, plan: TurnPlan, journal: Journal) -> None:
        await journal.begin()
        try:
            async with self._shown(plan.thread_id), asyncio.timeout(self._timeout) as limit:
                for n, (message, reason) in enumerate(
                    zip(plan.incoming, plan.reasons, strict=True)
                ):
                    scope = Scope(plan.id, n + 1, len(plan.incoming) > 1)
                    await self._step(self._handler(message, reason), message, scope, journal)
        except TimeoutError:
            if not limit.expired():
                raise  # the handler's own
            await journal.end("timeout", f"not finished after {self._timeout:g} s")
            return
        finally:
            self._link.turn_over(plan.id)
        await journal.end("finished")

    @contextlib.asynccontextmanager
    async def _shown(self, thread_id: str) -> AsyncIterator[None]:
        """What takes long inside gives a sign of life."""

        async def show() -> None:
            await asyncio.sleep(SHOWN_AFTER_S)
            await self._link.signal(thread_id, "thinking")

        showing = asyncio.create_task(show())
        try:
            yield
        finally:
            if not showing.cancel():  # it has been shown
                await self._link.signal(thread_id, "idle")

    async def _step(
        self, name: HandlerName, message: Message, scope: Scope, journal: Journal
    ) -> None:
        try:
            with entered(scope):
                await self._handle(name, message)
        finally:
            if scope.calls:
                journal.step(Step(n=scope.step, calls=tuple(scope.calls)))

    def _handler(self, message: Message, reason: str) -> HandlerName:
        name = _BY_REASON.get(reason, "on_direct" if message.type == "direct" else "on_mention")
        if name == "on_reply" and not self._defines("on_reply"):
            return "on_mention"
        return name

    async def _handle(self, name: HandlerName, message: Message) -> None:
        """Call the handler, and send what it returns."""
        handler: Callable[[Message], object] = getattr(self._agent, name)
        answer = await self._call(partial(handler, message))
        if answer is not None and answer != "":
            await self._agent.answer(message, _json(answer, name))

    def _defines(self, name: HandlerName) -> bool:
        return getattr(type(self._agent), name) is not getattr(Agent, name)

    async def _call(self, handler: Callable[[], object]) -> object:
        """The handler's result: of a coroutine here, of a plain function in a thread."""
        function = handler.func if isinstance(handler, partial) else handler
        if inspect.iscoroutinefunction(function):
            result = handler()
        else:
            async with self._plain:
                result = await run_in_thread(handler)
        return await result if inspect.isawaitable(result) else result


def _overhears(message: Message) -> HandlerName:
    return "on_broadcast" if message.type == "broadcast" else "on_channel_message"


def _json(answer: object, name: str) -> JsonValue:
    if isinstance(answer, str | bool | int | float | list | dict):
        return answer
    raise TypeError(f"{name} returned {type(answer).__name__}; a text, other JSON or None is sent")
