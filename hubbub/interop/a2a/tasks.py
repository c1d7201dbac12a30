"""Tasks of one participant: each is a request of the hub, and its id that request's.

    delegate -> working -> completed    by the agent's report
                 ^ |-----> failed       by its report, its deadline, or a turn without a report
                 | |-----> canceled     when it was stopped
                 | '-----> input required   by its question
                 '---------------'      by a message with the task's id

Nothing is stored here: what a task is, the log says. A context is the direct thread of the one who
asks and the agent.
"""

from __future__ import annotations

import asyncio
import hashlib
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Sequence, Set
from contextlib import asynccontextmanager, contextmanager, suppress
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

from hubbub.client import Client
from hubbub.errors import ConnectionLost, HubbubError, OperationError
from hubbub.interop.a2a.parts import files_of, links, names, text_of
from hubbub.interop.request_clients import RequestClient
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Request, Requests
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import SendResult, ThreadPage

__all__ = ["OVER", "RESTS", "TaskClient", "Update", "a2a_error"]

DEADLINE_S = 24 * 3600.0
"""Seconds that an agent has for a task."""
CANCEL_S = 10.0
"""Seconds in which a task that is stopped is over."""
STATES = {"open": TaskState.TASK_STATE_WORKING, "result": TaskState.TASK_STATE_COMPLETED}
OVER = frozenset(
    {TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED}
)
"""States that a task does not leave."""
RESTS = OVER | {TaskState.TASK_STATE_INPUT_REQUIRED}
"""States in which nothing comes by itself."""
MOST_HISTORY = 100
"""Messages of a thread that are looked through for what belongs to a task."""
ARTIFACT = "result"
Update: TypeAlias = Task | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
"""What a stream of a task is made of."""


@dataclass(eq=False)
class _Follower:
    """Somebody who waits for news of a task."""

    request: Request
    written: str = ""
    """The answer as far as the agent's model has written it."""
    note: str = ""
    """What the agent has said meanwhile, or waits for."""
    ended: bool = False
    """Whether it is to be looked at: it may be over."""
    news: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def turn(self) -> str:
        """That of the work on it, unless it was taken up into another one."""
        return f"{self.request.worker}-{self.request.reply or self.request.id}"

    def about(self, message: Message) -> bool:
        """Whether a message of the agent is part of the work on it."""
        request = self.request
        return message.sender_id == request.worker and message.thread_id == request.thread_id


class TaskClient(RequestClient):
    """A participant who asks agents by tasks."""

    def __init__(self, client: Client):
        self._me = client.participant
        self._followers: set[_Follower] = set()
        self._lost = False
        super().__init__(client)

    @property
    def lost(self) -> bool:
        return self._lost

    @asynccontextmanager
    async def staying(self) -> AsyncIterator[None]:
        listening = asyncio.create_task(self._listen())
        try:
            yield
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    # What is asked ------------------------------------------------------------------------------

    async def send(self, agent: str, asked: SendMessageRequest) -> Task:
        """Ask for something, or say more about what was asked. The same message is sent once.

        Raises the SDK's errors.
        """
        message = asked.message
        text, files = text_of(message.parts), files_of(message.parts)
        same = message.SerializeToString(deterministic=True).hex()
        cid = f"a2a:{_digest(self._me, agent, same)}"
        arguments: dict[str, object] = {"outside": True, "attachments": files}
        if message.task_id:
            await self.check_open(agent, message.task_id)
            request = await self._request(agent, message.task_id)
            if message.context_id not in ("", _context(request.thread_id)):
                raise InvalidParamsError("contextId: it is not that of the task")
            about = {"message_id": request.question or request.id}
            arguments |= {"to": agent, "text": text, "quote": about}
            await self._once("send_text_message", cid, arguments)
            self._wake((f for f in self._followers if f.request.id == request.id), ended=True)
            request = await self._request(agent, request.id)
        else:
            if message.context_id not in ("", self._context_with(agent)):
                raise InvalidParamsError(
                    "contextId: leave it out, or repeat that of an earlier task of this agent"
                )
            arguments |= {"to": agent, "task": text, "deadline_s": DEADLINE_S}
            request = await self._request(agent, (await self._once("delegate", cid, arguments)).id)
        return await self._as_task(request, asked.configuration)

    async def _once(self, name: str, cid: str, arguments: dict[str, object]) -> SendResult:
        return SendResult.model_validate(await self.client.call(name, cid=cid, **arguments))

    async def get(self, agent: str, asked: GetTaskRequest) -> Task:
        """A task as it is now. Raises `TaskNotFoundError`."""
        return await self._as_task(await self._request(agent, asked.id), asked)

    async def list(self, agent: str, asked: ListTasksRequest) -> ListTasksResponse:
        """The latest tasks of this participant at the agent, newest first."""
        size = asked.page_size if asked.HasField("page_size") else 50
        if not 1 <= size <= 100:
            raise InvalidParamsError("pageSize: 1 to 100")
        if asked.HasField("history_length") and asked.history_length < 0:
            raise InvalidParamsError("historyLength: 0 or more")
        value = await self.client.call("list_requests", state="all", limit=200)
        requests = [
            each
            for each in Requests.model_validate(value).requests
            if each.requester == self._me
            and each.worker == agent
            and asked.context_id in ("", _context(each.thread_id))
            and asked.status in (TaskState.TASK_STATE_UNSPECIFIED, _state(each))
        ]
        after = asked.status_timestamp_after if asked.HasField("status_timestamp_after") else None
        tasks = [await self._as_task(each, asked) for each in requests]
        if after is not None:
            tasks = [
                t for t in tasks if t.status.timestamp.ToNanoseconds() >= after.ToNanoseconds()
            ]
        tasks.sort(key=lambda task: task.status.timestamp.ToNanoseconds(), reverse=True)
        begin = 0
        if asked.page_token:
            ids = [task.id for task in tasks]
            if asked.page_token not in ids:
                raise InvalidParamsError("pageToken: no page begins there")
            begin = ids.index(asked.page_token)
        page, rest = tasks[begin : begin + size], tasks[begin + size :]
        if not asked.include_artifacts:
            for task in page:
                task.ClearField("artifacts")
        return ListTasksResponse(
            tasks=page,
            next_page_token=rest[0].id if rest else "",
            page_size=size,
            total_size=len(tasks),
        )

    async def cancel(self, agent: str, asked: CancelTaskRequest) -> Task:
        """Stop the work on a task. Raises `TaskNotCancelableError` when it is over."""
        request = await self._request(agent, asked.id)
        if request.state != "open":
            raise TaskNotCancelableError(f"task {request.id} is over")
        with self._following(request) as follower:
            turn, reason = follower.turn, "canceled by A2A"
            with suppress(OperationError):  # it has ended meanwhile
                await self.client.call("stop", scope="turn", target=turn, reason=reason)
            with suppress(TimeoutError):
                async with asyncio.timeout(CANCEL_S):
                    while (await self._request(agent, request.id)).state == "open":
                        await _news(follower)
        task = await self.get(agent, GetTaskRequest(id=request.id))
        if task.status.state != TaskState.TASK_STATE_CANCELED:
            raise TaskNotCancelableError(f"task {request.id} has ended before")
        return task

    async def check_open(self, agent: str, id: str) -> None:
        """Raises `UnsupportedOperationError` if the task is over."""
        if (await self._request(agent, id)).state != "open":
            raise UnsupportedOperationError(f"task {id} is over")

    async def follow(
        self,
        agent: str,
        id: str,
        pause_s: float | None = None,
        until: Set[TaskState] = OVER,
    ) -> AsyncGenerator[Update | None, None]:
        """A task, and what becomes of it until it is in one of these states; None each time that
        nothing did for `pause_s` seconds."""
        request = await self._request(agent, id)
        place = {"task_id": id, "context_id": _context(request.thread_id)}
        written = note = ""
        with self._following(request) as follower:
            task = await self._looked(follower)
            yield task
            while task.status.state not in until:
                try:
                    async with asyncio.timeout(pause_s):
                        await _news(follower)
                except TimeoutError:
                    yield None
                    continue
                if follower.note != note:
                    note = follower.note
                    status = TaskStatus(state=TaskState.TASK_STATE_WORKING)
                    status.message.CopyFrom(
                        _message(Role.ROLE_AGENT, note, f"{id}-{_digest(note)}", **place)
                    )
                    status.timestamp.GetCurrentTime()
                    yield TaskStatusUpdateEvent(status=status, **place)
                fresh = follower.written
                if len(fresh) > len(written) and fresh.startswith(written):
                    chunk = Artifact(artifact_id=ARTIFACT, parts=[Part(text=fresh[len(written) :])])
                    yield TaskArtifactUpdateEvent(
                        task_id=id,
                        context_id=place["context_id"],
                        artifact=chunk,
                        append=bool(written),
                    )
                    written = fresh
                if follower.ended:
                    before, turn = task.status.state, follower.turn
                    task = await self._looked(follower)
                    if task.status.state in OVER:
                        break
                    if follower.turn != turn:
                        written = follower.written = ""
                    if task.status.state != before:
                        yield TaskStatusUpdateEvent(status=task.status, **place)
            else:
                return
        for update in _ending(task, written):
            yield update

    async def _looked(self, follower: _Follower) -> Task:
        """The task as it is by now."""
        follower.ended = False
        follower.request = await self._request(follower.request.worker, follower.request.id)
        return await self._as_task(follower.request)

    # What it is ---------------------------------------------------------------------------------

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
        asked: object = None,
    ) -> Task:
        """The request as a task; `asked` may bound its history."""
        place = {"task_id": request.id, "context_id": _context(request.thread_id)}
        status = TaskStatus(state=_state(request))
        artifacts = []
        said = request.answer or request.reply or request.question
        if said is None:
            status.timestamp.FromDatetime(request.asked_at)
        else:
            value = await self.client.call("read_message", id=said)
            answer = Message.model_validate(value)
            status.timestamp.FromDatetime(answer.sent_at)
            if request.state == "result":
                parts = links(answer)
                if answer.text != names(parts):  # else they are all there is to say
                    parts = [Part(text=answer.text), *parts]
                artifacts.append(Artifact(artifact_id=ARTIFACT, name=ARTIFACT, parts=parts))
            elif said != request.reply:
                status.message.CopyFrom(_message(Role.ROLE_AGENT, answer.text, answer.id, **place))
        history = [_message(Role.ROLE_USER, request.task, request.id, **place)]
        most = _history_length(asked)
        if request.question is not None and most != 0:
            history += await self._said_about(request, place)
        return Task(
            id=request.id,
            context_id=place["context_id"],
            status=status,
            artifacts=artifacts,
            history=history[-most:] if most else history if most is None else [],
        )

    async def _said_about(self, request: Request, place: dict[str, str]) -> Sequence[A2aMessage]:
        """The questions about a task, and what its asker has said since."""
        thread, known = request.thread_id, {request.id}
        value = await self.client.call("read_thread", thread=thread, limit=MOST_HISTORY)
        found = list[A2aMessage]()
        for message in ThreadPage.model_validate(value).messages:
            mark = message.request
            about = mark.id if mark is not None else message.quote and message.quote.message_id
            if about in known and not (mark is not None and mark.ends):
                known.add(message.id)
                role = Role.ROLE_USER if message.sender_id == self._me else Role.ROLE_AGENT
                found.append(_message(role, message.text, message.id, **place))
        return found

    def _context_with(self, agent: str) -> str:
        return _context(thread_ids.direct((self._me, agent)))

    # What arrives -------------------------------------------------------------------------------

    @contextmanager
    def _following(self, request: Request) -> Iterator[_Follower]:
        follower = _Follower(request)
        self._followers.add(follower)
        try:
            yield follower
        finally:
            self._followers.discard(follower)

    async def _listen(self) -> None:
        try:
            async for item in self.client.events():
                self._take(item)
                if isinstance(item, Event):
                    await self.heard(item.seq)
        except ConnectionLost:
            self._lost = True
            self._wake(self._followers, ended=True)

    def _take(self, item: object) -> None:
        match item:
            case Event(message=message) if message.request is not None:
                mark = message.request
                ended = [f for f in self._followers if f.request.id == mark.id]
                self._wake(ended, ended=True)
            case Event(message=message) if message.sender_kind == "system":
                match message.content:
                    case {"code": "approval", "turn": str(turn)}:
                        self._note((f for f in self._followers if f.turn == turn), message)
            case Event(message=message) if message.amends is None:
                self._note((f for f in self._followers if f.about(message)), message)
            case Signal(type="partial", data={"turn": str(turn), "text": str(text)}) if (
                not text.startswith("…")
            ):
                followers = [f for f in self._followers if f.turn == turn]
                for follower in followers:
                    follower.written = text
                self._wake(followers)
            case Ready():  # what was said while there was no connection
                self._wake(self._followers, ended=True)

    def _note(self, followers: Iterable[_Follower], message: Message) -> None:
        for follower in followers:
            follower.note = message.text
            self._wake([follower])

    def _wake(self, followers: Iterable[_Follower], *, ended: bool = False) -> None:
        for follower in followers:
            follower.ended |= ended
            follower.news.set()


def _ending(task: Task, written: str) -> Iterator[Update]:
    """What a stream ends with, after so much of the result."""
    place = {"task_id": task.id, "context_id": task.context_id}
    for artifact in task.artifacts:
        whole = artifact.parts[0].text
        append = bool(written) and whole.startswith(written)
        if append:
            artifact.parts[0].text = whole[len(written) :]
        event = TaskArtifactUpdateEvent(artifact=artifact, append=append, last_chunk=True)
        event.task_id, event.context_id = task.id, task.context_id
        yield event
    yield TaskStatusUpdateEvent(status=task.status, **place)


async def _news(follower: _Follower) -> None:
    await follower.news.wait()
    follower.news.clear()


def _state(request: Request) -> TaskState:
    if request.state == "open" and request.question is not None and request.reply is None:
        return TaskState.TASK_STATE_INPUT_REQUIRED
    if request.state == "failed" and request.outcome in ("stopped", "taken_over"):
        return TaskState.TASK_STATE_CANCELED
    return STATES.get(request.state, TaskState.TASK_STATE_FAILED)


def _history_length(asked: object) -> int | None:
    if asked is None or not hasattr(asked, "HasField") or not asked.HasField("history_length"):
        return None
    return int(getattr(asked, "history_length", 0))


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
    """What the hub refuses, as an error of the SDK."""
    if isinstance(error, OperationError) and not error.temporary:
        return InvalidParamsError(error.message)
    return InternalError(f"try again: {error}")
