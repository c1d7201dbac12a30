"""A remote agent takes turns in this network: messages that wake it are sent to it over A2A.

    message -> task    working           its status texts are recorded, its result streams
                       completed         its result is the answer
                       input required    its question is the answer, or asks back about a request;
                                         the next message continues the task
                       failed, ...       the turn fails with its text

The agent gets only the messages to answer: other threads and earlier messages stay here. Each
thread is a context at the remote agent. The task of a turn is stored at the hub, so that a
restarted process continues it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

from a2a.types import Message as A2aMessage
from a2a.types import Part, Role, SendMessageRequest, StreamResponse
from pydantic import BaseModel

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.launch import inbox_of, run_backend
from hubbub.agents.models.base import CallRequest
from hubbub.agents.runner import GRACE_S
from hubbub.client import Client
from hubbub.config.agents import AgentConfig
from hubbub.errors import ConfigError, ModelError
from hubbub.interop.a2a.peer import Peer, PeerFailed, TaskUnknown
from hubbub.interop.a2a.task_progress import TaskProgress, parts_of
from hubbub.interop.guest import GuestBackend, GuestPrompt, GuestTurn
from hubbub.interop.thread_memory import ThreadMemory
from hubbub.logs import get_logger

__all__ = ["SEND", "RemoteAgent", "run_a2a_agent"]

SEND = "send_a2a_message"
"""Name of the recorded call that sends the message."""
MEMORY_KEY = "a2a.contexts"
CANCEL_S = 10.0
"""Seconds the agent has to accept a cancellation."""
PAUSE_S, MAX_PAUSE_S = 0.5, 8.0
"""Seconds between two requests for a task: at first, and at most."""
MAX_FAILURES = 6
"""Consecutive failed requests after which the task is given up."""

log = get_logger(__name__)


class RemoteTask(BaseModel):
    """The remote context and task of a thread, as stored at the hub."""

    context: str = ""
    task: str = ""
    turn: str = ""
    """The last turn that worked on the task."""
    waits: bool = False
    """Whether the next message continues the task."""


class RemoteAgent:
    """The remote agent as a guest: see `hubbub.interop.guest`."""

    model: str | None = None
    network_tools = ()

    def __init__(self, peer: Peer, stored: ThreadMemory[RemoteTask]):
        self._peer, self._stored = peer, stored
        self._live: dict[str, str] = {}
        """The running tasks, by turn."""
        self._stopping = set[asyncio.Task[None]]()

    async def run(self, turn: GuestTurn) -> str:
        """Send the incoming messages and follow the task to its end."""
        call = CallRequest(f"{SEND}_1", SEND, json.dumps({"text": turn.prompt}))
        await turn.record_answer(calls=[call])
        progress = TaskProgress()
        try:
            await self._follow(turn, progress)
        except PeerFailed as exc:
            turn.record_result(call.id, str(exc), "failed")
            raise ModelError(f"the remote agent cannot be reached: {exc}") from exc
        plan = turn.plan
        self._live.pop(plan.id, None)
        task = progress.task if progress.is_question else ""
        stored = RemoteTask(context=progress.context, task=task, waits=progress.is_question)
        await self._stored.set(plan.thread_id, stored)
        if progress.failure:
            turn.record_result(call.id, progress.failure, "failed")
            raise ModelError(f"the remote agent gave no answer: {progress.failure}")
        text, turn.links = progress.result()
        turn.is_question = progress.is_question
        turn.record_result(call.id, text)
        return text

    async def _follow(self, turn: GuestTurn, progress: TaskProgress) -> None:
        """Follow the task until it is done or asks a question. Raises `PeerFailed`."""
        events = await self._begin(turn, progress)
        pause, failed = PAUSE_S, 0
        while not progress.is_done:
            try:
                async for event in events:
                    failed = 0
                    await self._take(turn, progress, event)
                    if progress.is_done:
                        return
            except PeerFailed:
                failed += 1
                if not progress.task or failed >= MAX_FAILURES:
                    raise
            if not progress.task:
                raise PeerFailed("its response has neither a task nor a message")
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_PAUSE_S)
            events = self._peer.follow(progress.task)

    async def _begin(
        self, turn: GuestTurn, progress: TaskProgress
    ) -> AsyncIterator[StreamResponse]:
        """Send the messages, unless an earlier process did, and return the events."""
        plan = turn.plan
        stored = await self._stored.get(plan.thread_id) or RemoteTask()
        if stored.task and stored.turn == plan.id:
            progress.task, progress.context = stored.task, stored.context
            self._live[plan.id] = stored.task
            return self._peer.follow(stored.task)
        task = stored.task if stored.waits else ""
        events = self._peer.send(_request(plan, stored.context, task))
        if not stored.context:
            return events
        try:  # the agent may no longer have the context or task; it then ignored the message
            await self._take(turn, progress, await anext(events))
        except TaskUnknown:
            return self._peer.send(_request(plan, "", ""))
        except StopAsyncIteration:
            raise PeerFailed("its response is empty") from None
        return events

    async def _take(self, turn: GuestTurn, progress: TaskProgress, event: StreamResponse) -> None:
        note, plan = progress.note, turn.plan
        progress.add(event)
        if progress.task and plan.id not in self._live:
            self._live[plan.id] = progress.task
            stored = RemoteTask(context=progress.context, task=progress.task, turn=plan.id)
            await self._stored.set(plan.thread_id, stored)
        if progress.note != note and not progress.is_done:
            turn.record_progress(progress.note)
        await turn.stream_text(progress.written)

    # Stops --------------------------------------------------------------------------------------

    def stop(self, turn: str) -> None:
        """Cancel the turn's task, in the background."""
        if (task := self._live.pop(turn, None)) is not None:
            stopping = asyncio.create_task(self._cancel(task))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    async def _cancel(self, task: str) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._peer.cancel(task)
        except (PeerFailed, TimeoutError) as exc:
            log.warning("a remote task could not be stopped", task=task, reason=str(exc))

    async def wait_stopped(self) -> None:
        """Wait until all cancellations were sent or have failed."""
        if self._stopping:
            await asyncio.wait(self._stopping)


class _RemoteBackend(GuestBackend):
    agent: RemoteAgent

    def prompt_for(self, plan: TurnPlan) -> GuestPrompt:
        texts = (part.text or part.url for part in _parts(plan))
        return GuestPrompt("", "\n\n".join(texts), any(m.untrusted for m in plan.incoming))

    async def dropped(self, turn: str) -> None:
        self.agent.stop(turn)
        await super().dropped(turn)


async def run_a2a_agent(
    config: AgentConfig,
    name: str,
    client: Client,
    base_dir: Path,
    *,
    grace_s: float = GRACE_S,
    greet_cid: str | None = None,
) -> None:
    """Run the agent that `client` is connected as (with `turns=True`) until cancelled.

    Arguments and exceptions are those of `hubbub.agents.launch.run_agent`.
    """
    if config.a2a is None:
        raise ConfigError(f"agents.{name}: a remote agent needs `a2a: {{url: https://...}}`")
    inbox = inbox_of(config, name)
    async with Peer(config.a2a) as peer:
        agent = RemoteAgent(peer, ThreadMemory(client, MEMORY_KEY, RemoteTask))
        try:
            backend = _RemoteBackend(agent, client, inbox, config)
            await run_backend(client, inbox, backend, config, grace_s, greet_cid)
        finally:
            await agent.wait_stopped()


def _request(plan: TurnPlan, context: str, task: str) -> SendMessageRequest:
    """The messages of a turn as one message, whose id is stable so that it can be sent again."""
    message = A2aMessage(
        message_id=plan.id,
        context_id=context,
        task_id=task,
        role=Role.ROLE_USER,
        parts=_parts(plan),
    )
    return SendMessageRequest(message=message)


def _parts(plan: TurnPlan) -> list[Part]:
    return parts_of(plan.incoming, named=any(m.type != "direct" for m in plan.incoming))
