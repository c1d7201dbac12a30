"""The tasks of one participant. Each is a request of the hub, with the same id.

    delegate -> working -> completed    by the agent's report
                 ^ |-----> failed       by its report, its deadline, or a turn without a report
                 | |-----> canceled     when it was stopped
                 | '-----> input required   by its question
                 '---------------'      by a message with the task's id

Nothing is stored here: tasks are read from the log. A context is the direct thread between the
participant and the agent.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from a2a.types import (
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    InternalError,
    InvalidParamsError,
    ListTasksRequest,
    ListTasksResponse,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskNotCancelableError,
    TaskNotFoundError,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
    UnsupportedOperationError,
)
from a2a.types import Message as A2aMessage
from a2a.utils.errors import A2AError

from hubbub.client import Client, Incoming
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.a2a.parts import files_of, links, names, text_of
from hubbub.interop.request_clients import RequestClient
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Request, Requests
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult, ThreadPage

__all__ = ["RESTING_STATES", "TERMINAL_STATES", "TaskClient", "Update", "a2a_error"]

DEADLINE_S = 24 * 3600.0
"""Seconds an agent has to complete a task."""
CANCEL_S = 10.0
"""Seconds to wait for a stopped task to end."""
STATES = {"open": TaskState.TASK_STATE_WORKING, "result": TaskState.TASK_STATE_COMPLETED}
TERMINAL_STATES = frozenset(
    {TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED}
)
"""States a task does not leave."""
RESTING_STATES = TERMINAL_STATES | {TaskState.TASK_STATE_INPUT_REQUIRED}
"""States without further updates until the asker acts."""
MAX_HISTORY = 100
"""Messages of a thread that are searched for those about a task."""
ARTIFACT = "result"
Update: TypeAlias = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
"""An event of a task's stream."""


@dataclass(eq=False)
class _Follower:
    """A caller that waits for updates of a task."""

    request: Request
    written: str = ""
    """The answer that the agent's model has written so far."""
    note: str = ""
    """The agent's latest message, or the approval it waits for."""
    needs_reload: bool = False
    """Whether the task's state can have changed."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def turn(self) -> str:
        """The id of the turn that works on it, unless the request was merged into another turn."""
        return f"{self.request.worker}-{self.request.reply or self.request.id}"

    def is_about(self, message: Message) -> bool:
        """Whether a message is the agent's, in the request's thread."""
        request = self.request
        return message.sender_id == request.worker and message.thread_id == request.thread_id


class TaskClient(RequestClient):
    """The client of a person who gives agents tasks."""

    def __init__(self, client: Client):
        self._me = client.participant
        self._followers: set[_Follower] = set()
        super().__init__(client)

    # Methods of A2A -----------------------------------------------------------------------------

    async def send(self, agent: str, params: SendMessageRequest) -> Task:
        """Begin a task, or send a message about one. A repeated message is sent once.

        Raises the SDK's errors.
        """
        message = params.message
        text, files = text_of(message.parts), files_of(message.parts)
        content = message.SerializeToString(deterministic=True).hex()
        cid = f"a2a:{_digest(self._me, agent, content)}"
        arguments: dict[str, object] = {"untrusted": True, "attachments": files}
        if message.task_id:
            await self.check_open(agent, message.task_id)
            request = await self._request(agent, message.task_id)
            if message.context_id not in ("", _context(request.thread_id)):
                raise InvalidParamsError("contextId: the task has another one")
            quote = {"message_id": request.question or request.id}
            arguments |= {"to": agent, "text": text, "quote": quote}
            await self._send_once("send_text_message", cid, arguments)
            self._wake(
                (f for f in self._followers if f.request.id == request.id), needs_reload=True
            )
            request = await self._request(agent, request.id)
        else:
            if message.context_id not in ("", _context(thread_ids.direct((self._me, agent)))):
                raise InvalidParamsError(
                    "contextId: leave it out, or repeat that of an earlier task of this agent"
                )
            arguments |= {"to": agent, "task": text, "deadline_s": DEADLINE_S}
            request = await self._request(
                agent, (await self._send_once("delegate", cid, arguments)).id
            )
        return await self._as_task(request, params.configuration)

    async def _send_once(self, name: str, cid: str, arguments: dict[str, object]) -> SendResult:
        return SendResult.model_validate(await self.client.call(name, cid=cid, **arguments))

    async def get(self, agent: str, params: GetTaskRequest) -> Task:
        """The current task. Raises `TaskNotFoundError`."""
        return await self._as_task(await self._request(agent, params.id), params)

    async def list(self, agent: str, params: ListTasksRequest) -> ListTasksResponse:
        """This participant's latest tasks at the agent, newest first."""
        size = params.page_size if params.HasField("page_size") else 50
        if not 1 <= size <= 100:
            raise InvalidParamsError("pageSize: 1 to 100")
        # Without `own`, an owner gets those of everyone, which can be more than the limit.
        value = await self.client.call("list_requests", own=True, state="all", limit=200)
        requests = [
            each
            for each in Requests.model_validate(value).requests
            if each.requester == self._me
            and each.worker == agent
            and params.context_id in ("", _context(each.thread_id))
            and params.status in (TaskState.TASK_STATE_UNSPECIFIED, _state(each))
        ]
        after = params.status_timestamp_after if params.HasField("status_timestamp_after") else None
        tasks = [await self._as_task(each, params) for each in requests]
        if after is not None:
            tasks = [
                t for t in tasks if t.status.timestamp.ToNanoseconds() >= after.ToNanoseconds()
            ]
        tasks.sort(key=lambda task: task.status.timestamp.ToNanoseconds(), reverse=True)
        start = 0
        if params.page_token:
            ids = [task.id for task in tasks]
            if params.page_token not in ids:
                raise InvalidParamsError("pageToken: unknown")
            start = ids.index(params.page_token)
        page, rest = tasks[start : start + size], tasks[start + size :]
        if not params.include_artifacts:
            for task in page:
                task.ClearField("artifacts")
        return ListTasksResponse(
            tasks=page,
            next_page_token=rest[0].id if rest else "",
            page_size=size,
            total_size=len(tasks),
        )

    async def cancel(self, agent: str, params: CancelTaskRequest) -> Task:
        """Stop the work on a task. Raises `TaskNotCancelableError` if it has ended."""
        request = await self._request(agent, params.id)
        if request.state != "open":
            raise TaskNotCancelableError(f"task {request.id} has ended")
        with self._following(request) as follower:
            turn, reason = follower.turn, "canceled by A2A"
            with suppress(OperationError):  # the turn has just ended
                await self.client.call("stop", scope="turn", target=turn, reason=reason)
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_S):
                    while (await self._request(agent, request.id)).state == "open":
                        await _wait_change(follower)
        task = await self.get(agent, GetTaskRequest(id=request.id))
        if task.status.state != TaskState.TASK_STATE_CANCELED:
            raise TaskNotCancelableError(f"task {request.id} ended first")
        return task

    async def check_open(self, agent: str, id: str) -> None:
        """Raises `UnsupportedOperationError` if the task has ended."""
        if (await self._request(agent, id)).state != "open":
            raise UnsupportedOperationError(f"task {id} has ended")

    async def follow(
        self,
        agent: str,
        id: str,
        pause_s: float | None = None,
        until: Set[TaskState] = TERMINAL_STATES,
    ) -> AsyncGenerator[Update | None, None]:
        """The task, then its updates until it is in one of the states `until`. Yields None whenever
        there was no update for `pause_s` seconds."""
        request = await self._request(agent, id)
        ids = {"task_id": id, "context_id": _context(request.thread_id)}
        written = note = ""
        with self._following(request) as follower:
            task = await self._reload(follower)
            yield task
            while task.status.state not in until:
                try:
                    async with asyncio.timeout(pause_s):
                        await _wait_change(follower)
                except TimeoutError:
                    yield None
                    continue
                if follower.note != note:
                    note = follower.note
                    status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
                    status.message.CopyFrom(
                        _message(Role.ROLE_AGENT, note, f"{id}-{_digest(note)}", **ids)
                    )
                    status.timestamp.GetCurrentTime()
                    yield TaskStatusUpdateEvent(status=status, **ids)
                text = follower.written
                if len(text) > len(written) and text.startswith(written):
                    chunk = Artifact(artifact_id=ARTIFACT, parts=[Part(text=text[len(written) :])])
                    yield TaskArtifactUpdateEvent(
                        task_id=id,
                        context_id=ids["context_id"],
                        artifact=chunk,
                        append=bool(written),
                    )
                    written = text
                if follower.needs_reload:
                    before, turn = task.status.state, follower.turn
                    task = await self._reload(follower)
                    if task.status.state in TERMINAL_STATES:
                        break
                    if follower.turn != turn:
                        written = follower.written = ""
                    if task.status.state != before:
                        yield TaskStatusUpdateEvent(status=task.status, **ids)
            else:
                return
        for update in _ending(task, written):
            yield update

    async def _reload(self, follower: _Follower) -> Task:
        """Read the current task."""
        follower.needs_reload = False
        follower.request = await self._request(follower.request.worker, follower.request.id)
        return await self._as_task(follower.request)

    # Requests as tasks --------------------------------------------------------------------------

    async def _request(self, agent: str, id: str) -> Request:
        try:
            value = await self.client.call("list_requests", id=id[:64] or "-", state="all")
        except OperationError as error:
            if error.code == ErrorCode.UNKNOWN_REQUEST:
                raise TaskNotFoundError(f"there is no task {id[:64]!r}") from None
            raise
        request = Requests.model_validate(value).requests[0]
        if request.requester != self._me or request.worker != agent:
            raise TaskNotFoundError(f"there is no task {id[:64]!r}")
        return request

    async def _as_task(
        self,
        request: Request,
        params: object = None,
    ) -> Task:
        """The request as a task; `params` can limit its history."""
        ids = {"task_id": request.id, "context_id": _context(request.thread_id)}
        status = TaskStatus(state=_state(request))
        artifacts = []
        latest = request.answer or request.reply or request.question
        if latest is None:
            status.timestamp.FromDatetime(request.asked_at)
        else:
            value = await self.client.call("read_message", id=latest)
            answer = Message.model_validate(value)
            status.timestamp.FromDatetime(answer.sent_at)
            if request.state == "result":
                parts = links(answer)
                if answer.text != names(parts):  # otherwise the files are the whole answer
                    parts = [Part(text=answer.text), *parts]
                artifacts.append(Artifact(artifact_id=ARTIFACT, name=ARTIFACT, parts=parts))
            elif latest != request.reply:
                status.message.CopyFrom(_message(Role.ROLE_AGENT, answer.text, answer.id, **ids))
        history = [_message(Role.ROLE_USER, request.task, request.id, **ids)]
        most = _history_length(params)
        if request.question is not None and most != 0:
            history += await self._messages_about(request, ids)
        return Task(
            id=request.id,
            context_id=ids["context_id"],
            status=status,
            artifacts=artifacts,
            history=history[-most:] if most else history if most is None else [],
        )

    async def _messages_about(self, request: Request, ids: dict[str, str]) -> Sequence[A2aMessage]:
        """The agent's questions about a task, and the asker's answers."""
        thread, related = request.thread_id, {request.id}
        value = await self.client.call("read_thread", thread=thread, limit=MAX_HISTORY)
        messages = list[A2aMessage]()
        for message in ThreadPage.model_validate(value).messages:
            mark = message.request
            subject = mark.id if mark is not None else message.quote and message.quote.message_id
            if subject in related and not (mark is not None and mark.ends):
                related.add(message.id)
                role = Role.ROLE_USER if message.sender_id == self._me else Role.ROLE_AGENT
                messages.append(_message(role, message.text, message.id, **ids))
        return messages

    # Incoming -----------------------------------------------------------------------------------

    @contextmanager
    def _following(self, request: Request) -> Iterator[_Follower]:
        follower = _Follower(request)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    def _on_lost(self, error: ConnectionLost) -> None:
        self._wake(self._followers, needs_reload=True)

    def _handle(self, item: Incoming) -> None:
        match item:
            case Event(message=message) if message.request is not None:
                mark = message.request
                self._wake(
                    (f for f in self._followers if f.request.id == mark.id), needs_reload=True
                )
            case Event(message=message) if message.sender_kind == "system":
                match message.content:
                    case {"code": "approval", "turn": str(turn)}:
                        self._note((f for f in self._followers if f.turn == turn), message)
            case Event(message=message) if message.amends is None:
                self._note((f for f in self._followers if f.is_about(message)), message)
            case Signal(type="partial", data={"turn": str(turn), "text": str(text)}) if (
                not text.startswith("…")
            ):
                followers = [f for f in self._followers if f.turn == turn]
                for follower in followers:
                    follower.written = text
                self._wake(followers)
            case Ready():  # catch up after a reconnection
                self._wake(self._followers, needs_reload=True)

    def _note(self, followers: Iterable[_Follower], message: Message) -> None:
        for follower in followers:
            follower.note = message.text
            self._wake([follower])

    def _wake(self, followers: Iterable[_Follower], *, needs_reload: bool = False) -> None:
        for follower in followers:
            follower.needs_reload |= needs_reload
            follower.changed.set()


def _ending(task: Task, written: str) -> Iterator[Update]:
    """The last events of a stream, after the part of the result already `written`."""
    ids = {"task_id": task.id, "context_id": task.context_id}
    for artifact in task.artifacts:
        whole = artifact.parts[0].text
        append = bool(written) and whole.startswith(written)
        if append:
            artifact.parts[0].text = whole[len(written) :]
        event = TaskArtifactUpdateEvent(artifact=artifact, append=append, last_chunk=True)
        event.task_id, event.context_id = task.id, task.context_id
        yield event
    yield TaskStatusUpdateEvent(status=task.status, **ids)


async def _wait_change(follower: _Follower) -> None:
    await follower.changed.wait()
    follower.changed.clear()


def _state(request: Request) -> TaskState:
    if request.state == "open" and request.question is not None and request.reply is None:
        return TaskState.TASK_STATE_INPUT_REQUIRED
    if request.state == "failed" and request.outcome in ("stopped", "taken_over"):
        return TaskState.TASK_STATE_CANCELED
    return STATES.get(request.state, TaskState.TASK_STATE_FAILED)


def _history_length(params: object) -> int | None:
    if params is None or not hasattr(params, "HasField") or not params.HasField("history_length"):
        return None
    return int(getattr(params, "history_length", 0))


def _context(thread_id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"hubbub:{thread_id}"))


def _message(role: Role, text: str, id: str, task_id: str, context_id: str) -> A2aMessage:
    return A2aMessage(
        message_id=id,
        task_id=task_id,
        context_id=context_id,
        role=role,
        parts=[Part(text=text)],
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def a2a_error(error: HubbubError) -> A2AError:
    """The SDK's error for an error of the hub."""
    if isinstance(error, OperationError) and not error.temporary:
        return InvalidParamsError(error.message)
    return InternalError(f"try again: {error}")
