"""Runs the handlers of a Python agent, in one recorded turn for each wake."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from functools import partial
from typing import Literal

from pydantic import JsonValue

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import TurnPlan
from hubbub.agents.python.agent import Agent
from hubbub.agents.python.link import AgentLink, Scope, entered
from hubbub.agents.tools.worker_thread import run_in_thread
from hubbub.agents.turn.activity import TurnActivities, TurnActivity
from hubbub.agents.turn.recorder import TurnRecorder
from hubbub.errors import ConnectionLost, OperationError
from hubbub.logs import get_logger
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import Message
from hubbub.protocol.turns import Step

__all__ = ["HandlerBackend"]

HandlerName = Literal[
    "on_direct",
    "on_mention",
    "on_reply",
    "on_broadcast",
    "on_channel_message",
    "on_request",
]

_BY_REASON: dict[str, HandlerName] = {
    "direct": "on_direct",
    "mention": "on_mention",
    "last_speaker": "on_reply",
    "broadcast": "on_broadcast",
}
"""The handler for a wake, by the reason code from the hub."""

SHOWN_AFTER_S = 1.0
"""Seconds before the thread's participants see that the agent is busy, and between updates."""

log = get_logger(__name__)


class HandlerBackend(AgentBackend):
    """Takes turns by calling the handlers of `agent`, which already has its link."""

    def __init__(self, agent: Agent, link: AgentLink, *, timeout: float = 300.0):
        """`timeout`: maximum seconds of a turn."""
        self._agent, self._link, self._timeout = agent, link, timeout
        self._activities = TurnActivities(link.activity)
        self._thread_lock = asyncio.Lock()

    async def start(self) -> None:
        """Call `on_start`; its exceptions propagate."""
        await self._call(self._agent.on_start)

    async def ready(self, ready: Ready) -> None:
        self._link.connected(ready)
        await self._activities.repeat()

    def claims(self, message: Message) -> asyncio.Future[bool] | None:
        return self._link.claim(message)

    # Observing -----------------------------------------------------------------------------------

    def observes(self, message: Message) -> bool:
        if message.sender_kind == "system" or message.sender_id == self._link.me:
            return False
        if message.type == "direct":
            return False  # direct messages are never observed
        if message.imported:
            return False  # an old message from another system
        return self._has_handler(_observer_name(message))

    async def observe(self, message: Message) -> None:
        with entered(Scope(message.id, untrusted=message.untrusted)):
            try:
                await self._handle(_observer_name(message), message)
            except OperationError as exc:
                if exc.code != ErrorCode.HOP_LIMIT:
                    raise
                log.info("an observed message stays unanswered", reason=exc.message)

    # Turns ---------------------------------------------------------------------------------------

    async def take_turn(self, plan: TurnPlan, recorder: TurnRecorder) -> None:
        await recorder.begin()
        await recorder.flush_start()
        try:
            async with self._activities.of(plan, SHOWN_AFTER_S) as activity:
                await self._run(plan, recorder, activity)
        finally:
            self._link.release_answers_for(plan.id)

    async def _run(self, plan: TurnPlan, recorder: TurnRecorder, activity: TurnActivity) -> None:
        try:
            async with asyncio.timeout(self._timeout) as limit:
                await self._take_steps(plan, recorder, activity)
        except TimeoutError:
            if not limit.expired():
                raise  # raised by the handler itself
            await recorder.end("timeout", f"not finished after {self._timeout:g} s")
        else:
            await recorder.end("finished")

    async def _take_steps(
        self, plan: TurnPlan, recorder: TurnRecorder, activity: TurnActivity
    ) -> None:
        """One step for each message that woke the agent. If the handler of a request fails, which
        the hub reports for that request alone, the other messages are handled before this is
        raised. Another failure is raised at once, as the hub reports it unless the turn sends a
        message; if it has sent one, the other messages are handled first."""
        several, has_sent = len(plan.incoming) > 1, False
        failure: Exception | None = None
        for n, (message, reason) in enumerate(zip(plan.incoming, plan.reasons, strict=True), 1):
            await activity.show("thinking", n)
            scope = Scope(plan.id, n, several, recorder.clock, activity, message.untrusted)
            try:
                await self._step(self._handler(message, reason), message, scope, recorder)
            except (ConnectionLost, OperationError):  # can concern the whole turn
                raise
            except Exception as exc:  # handlers can raise anything
                if message.task is None and not (has_sent or scope.has_sent):
                    raise
                failure = failure or exc
            has_sent = has_sent or scope.has_sent
        if failure is not None:
            raise failure

    async def _step(
        self, name: HandlerName, message: Message, scope: Scope, recorder: TurnRecorder
    ) -> None:
        at = scope.clock.ms
        try:
            with entered(scope):
                await self._handle(name, message)
        finally:
            if scope.calls:
                took, calls = scope.clock.since(at), tuple(scope.calls)
                recorder.step(Step(n=scope.step, calls=calls, at_ms=at, duration_ms=took))

    def _handler(self, message: Message, reason: str) -> HandlerName:
        if message.task is not None and self._has_handler("on_request"):
            return "on_request"
        name = _BY_REASON.get(reason, "on_direct" if message.type == "direct" else "on_mention")
        if name == "on_reply" and not self._has_handler("on_reply"):
            return "on_mention"
        return name

    async def _handle(self, name: HandlerName, message: Message) -> None:
        """Call the handler and send its return value."""
        handler: Callable[[Message], object] = getattr(self._agent, name)
        answer = await self._call(partial(handler, message))
        if answer is None or answer == "":
            return
        if message.task is not None:
            await self._report(message.task, _json(answer, name))
        else:
            await self._agent.answer(message, _json(answer, name))

    async def _report(self, task: str, result: JsonValue) -> None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        try:
            await self._agent.report(task, text)
        except OperationError as exc:
            if exc.code != ErrorCode.REQUEST_OVER:
                raise
            log.info("the request of a result has ended", request=task, reason=exc.message)

    def _has_handler(self, name: HandlerName) -> bool:
        return getattr(type(self._agent), name) is not getattr(Agent, name)

    async def _call(self, handler: Callable[[], object]) -> object:
        """The handler's result: a coroutine is awaited, a plain function runs in a thread."""
        function = handler.func if isinstance(handler, partial) else handler
        if inspect.iscoroutinefunction(function):
            result = handler()
        else:
            async with self._thread_lock:
                result = await run_in_thread(handler)
        return await result if inspect.isawaitable(result) else result


def _observer_name(message: Message) -> HandlerName:
    return "on_broadcast" if message.type == "broadcast" else "on_channel_message"


def _json(answer: object, name: str) -> JsonValue:
    if isinstance(answer, str | bool | int | float | list | dict):
        return answer
    raise TypeError(
        f"{name} returned {type(answer).__name__}; it must return a text, other JSON or None"
    )
