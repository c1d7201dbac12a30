"""An agent elsewhere takes turns here: what wakes it is sent to it by A2A.

    message -> task    working           what it says of it is in the record, its text is streamed
                       completed         its result is the answer
                       input required    its question is the answer, or asks back in a request, and
                                         what is said next goes on
                       failed, ...       the turn fails with its words

It is sent the messages that it is to answer and nothing else: other threads, and what was said
before, stay here. A thread is a context of its own there. Which task belongs to a turn the agent
remembers at the hub, so that a process that is started anew goes on with it.
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
"""What the message to the agent is recorded as."""
MEMORY_KEY = "a2a.contexts"
CANCEL_S = 10.0
"""Seconds in which the agent takes a stop."""
PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0
"""Between two looks at a task: the first, and at most."""
FAILURES = 6
"""Looks in a row that fail before the task is given up."""

log = get_logger(__name__)


class RemoteTask(BaseModel):
    """What is remembered of a thread."""

    context: str = ""
    task: str = ""
    turn: str = ""
    """The one that the task was begun or gone on with in."""
    waits: bool = False
    """Whether the task goes on with the next message."""


class RemoteAgent:
    """The agent as a guest of the network: see `hubbub.interop.guest`."""

    model: str | None = None
    network_tools = ()

    def __init__(self, peer: Peer, known: ThreadMemory[RemoteTask]):
        self._peer, self._known = peer, known
        self._live: dict[str, str] = {}
        """The tasks under way, by turn."""
        self._stopping = set[asyncio.Task[None]]()

    async def run(self, turn: GuestTurn) -> str:
        """Send what has come, and see what becomes of it."""
        call = CallRequest(f"{SEND}_1", SEND, json.dumps({"text": turn.prompt}))
        await turn.answered(calls=[call])
        errand = TaskProgress()
        try:
            await self._follow(turn, errand)
        except PeerFailed as exc:
            turn.called(call.id, str(exc), "failed")
            raise ModelError(f"the agent elsewhere cannot be asked: {exc}") from exc
        plan = turn.plan
        self._live.pop(plan.id, None)
        task = errand.task if errand.waits else ""
        await self._remember(
            plan, RemoteTask(context=errand.context, task=task, waits=errand.waits)
        )
        if errand.failure:
            turn.called(call.id, errand.failure, "failed")
            raise ModelError(f"the agent elsewhere gives no answer: {errand.failure}")
        text, turn.links = errand.result()
        turn.asks_back = errand.waits
        turn.called(call.id, text)
        return text

    async def _follow(self, turn: GuestTurn, errand: TaskProgress) -> None:
        """Until nothing more comes by itself. Raises `PeerFailed`."""
        events = await self._begun(turn, errand)
        pause, failed = PAUSE_S, 0
        while not errand.over:
            try:
                async for event in events:
                    failed = 0
                    await self._take(turn, errand, event)
                    if errand.over:
                        return
            except PeerFailed:
                failed += 1
                if not errand.task or failed >= FAILURES:
                    raise
            if not errand.task:
                raise PeerFailed("its answer has neither a task nor a message")
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE_S)
            events = self._peer.follow(errand.task)

    async def _begun(self, turn: GuestTurn, errand: TaskProgress) -> AsyncIterator[StreamResponse]:
        """The first events. What an earlier process has sent is not sent again."""
        plan = turn.plan
        known = await self._known.of(plan.thread_id) or RemoteTask()
        if known.task and known.turn == plan.id:
            errand.task, errand.context = known.task, known.context
            self._live[plan.id] = known.task
            return self._peer.follow(known.task)
        task = known.task if known.waits else ""
        events = self._peer.send(_asked(plan, known.context, task))
        if not known.context:
            return events
        try:  # it may have forgotten what it has said, and then nothing has come of the message
            await self._take(turn, errand, await anext(events))
        except TaskUnknown:
            return self._peer.send(_asked(plan, "", ""))
        except StopAsyncIteration:
            raise PeerFailed("its answer is empty") from None
        return events

    async def _take(self, turn: GuestTurn, errand: TaskProgress, event: StreamResponse) -> None:
        note, plan = errand.note, turn.plan
        errand.take(event)
        if errand.task and plan.id not in self._live:
            self._live[plan.id] = errand.task
            known = RemoteTask(context=errand.context, task=errand.task, turn=plan.id)
            await self._remember(plan, known)
        if errand.note != note and not errand.over:
            turn.progress(errand.note)
        await turn.writing(errand.written)

    async def _remember(self, plan: TurnPlan, known: RemoteTask) -> None:
        await self._known.keep(plan.thread_id, known)

    # Stops --------------------------------------------------------------------------------------

    def stop(self, turn: str) -> None:
        """The agent is told that nobody waits for its work on the turn any more."""
        if (task := self._live.pop(turn, None)) is not None:
            stopping = asyncio.create_task(self._cancel(task))
            self._stopping.add(stopping)
            stopping.add_done_callback(self._stopping.discard)

    async def _cancel(self, task: str) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await self._peer.cancel(task)
        except (PeerFailed, TimeoutError) as exc:
            log.warning("a task elsewhere could not be stopped", task=task, reason=str(exc))

    async def settled(self) -> None:
        """All stops are told, or have failed."""
        if self._stopping:
            await asyncio.wait(self._stopping)


class _RemoteBackend(GuestBackend):
    agent: RemoteAgent

    def told(self, plan: TurnPlan) -> GuestPrompt:
        texts = (part.text or part.url for part in _parts(plan))
        return GuestPrompt("", "\n\n".join(texts), any(m.outside for m in plan.incoming))

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

    The arguments, and what is raised, are those of `hubbub.agents.launch.run_agent`.
    """
    if config.a2a is None:
        raise ConfigError(f"agents.{name}: an agent elsewhere needs `a2a: {{url: https://...}}`")
    inbox = inbox_of(config, name)
    async with Peer(config.a2a) as peer:
        agent = RemoteAgent(peer, ThreadMemory(client, MEMORY_KEY, RemoteTask))
        try:
            backend = _RemoteBackend(agent, client, inbox, config)
            await run_backend(client, inbox, backend, config, grace_s, greet_cid)
        finally:
            await agent.settled()


def _asked(plan: TurnPlan, context: str, task: str) -> SendMessageRequest:
    """The messages of a turn as one. Sent again it is the same, by its id."""
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
