"""The hub's A2A server, tested with the client of the A2A SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from a2a.client import Client as A2aClient
from a2a.client import ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    InvalidParamsError,
    ListTasksRequest,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskNotCancelableError,
    TaskNotFoundError,
    TaskPushNotificationConfig,
    TaskState,
    UnsupportedOperationError,
)
from a2a.types import Message as A2aMessage

from hubbub import Agent, LlmAgent, Message, Network, tool
from hubbub.config.models import A2aConfig, DailyBudgets
from hubbub.protocol.control import Approvals
from hubbub.protocol.operations import ThreadPage
from tests.interaction.agent_harness import call, finish, playing, says
from tests.interaction.peers import soon

BINDINGS = ("JSONRPC", "HTTP+JSON")


@tool(permission="write")
async def paint(colour: str) -> str:
    """Paint the fence."""
    return f"painted {colour}"


class Echo(Agent):
    """Repeats its task; `wait` never ends, `fail` fails, `paint` asks for a colour."""

    def __init__(self) -> None:
        self.waiting = asyncio.Event()

    async def on_request(self, message: Message) -> str:
        if message.text == "wait":
            self.waiting.set()
            await asyncio.get_running_loop().create_future()
        if message.text == "fail":
            raise ValueError("I cannot")
        if message.text == "paint":
            colour = await self.ask(message, "Which colour?", timeout=3600)
            return f"painted {colour.text}"
        return f"done: {message.text}"


class Door:
    """A network with an A2A server, and clients of it."""

    def __init__(self, net: Network, echo: Echo, url: str):
        self.net, self.echo, self.url = net, echo, url.replace("ws:", "http:")

    @asynccontextmanager
    async def client(
        self, binding: str = "JSONRPC", key: str = "ann", **more: Any
    ) -> AsyncIterator[A2aClient]:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(headers=headers, verify=False, timeout=None) as http:
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], **more)
            yield await ClientFactory(config).create_from_url(f"{self.url}/a2a/echo")


@asynccontextmanager
async def door(**more: Any) -> AsyncIterator[Door]:
    settings, echo = A2aConfig(agents=["echo"], push_hosts=["127.0.0.1"]), Echo()
    async with Network(echo, people=["ann", "bob"], a2a=settings, **more) as net:
        yield Door(net, echo, await net.serve(page=False))


def asks(text: str, id: str = "one", *, wait: bool = True, **more: Any) -> SendMessageRequest:
    message = A2aMessage(message_id=id, role=Role.ROLE_USER, parts=[Part(text=text)], **more)
    config = SendMessageConfiguration(return_immediately=not wait)
    return SendMessageRequest(message=message, configuration=config)


@asynccontextmanager
async def notified(
    answers: asyncio.Event | None = None,
) -> AsyncIterator[tuple[str, asyncio.Queue[bytes]]]:
    """A URL and the requests to it: the head in lower case, and the body. It answers at once, or
    once `answers` is set."""
    received: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
        received.put_nowait(head.lower() + await reader.readexactly(int(size.split(b":")[1])))
        if answers is not None:
            await answers.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", received


async def sent(client: A2aClient, asked: SendMessageRequest) -> Task:
    """Send a message. Returns the task of the first event."""
    async for event in client.send_message(asked):
        return event.task
    raise AssertionError("no event")


@pytest.mark.behaviour("I-30")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_task_is_a_request_of_the_hub_with_and_without_streaming(binding: str) -> None:
    async with door() as there, soon():
        async with there.client(binding, streaming=False) as whole:
            task = await sent(whole, asks("sum"))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert task.artifacts[0].parts[0].text == "done: sum"
            again = await sent(whole, asks("sum"))
            assert again.id == task.id, "the same message is one task"
            failed = await sent(whole, asks("fail", "two"))
            assert failed.status.state == TaskState.TASK_STATE_FAILED
            listed = await whole.list_tasks(ListTasksRequest(page_size=1))
            assert ([t.id for t in listed.tasks], listed.total_size) == ([failed.id], 2)
            rest = ListTasksRequest(page_token=listed.next_page_token, include_artifacts=True)
            assert [t.id for t in (await whole.list_tasks(rest)).tasks] == [task.id]
            with pytest.raises(UnsupportedOperationError):
                await sent(whole, asks("more", "three", task_id=task.id))
        async with there.client(binding) as streaming:
            asked = asks("stream", "four")
            events = [event.WhichOneof("payload") async for event in streaming.send_message(asked)]
            assert events[0] == "task"
            assert events[-2:] == ["artifact_update", "status_update"]
        ann = await there.net.join("ann")
        page = ThreadPage.model_validate(await ann.call("read_thread", thread="direct_echo"))
        first = page.messages[0]
        assert (first.text, first.id, first.untrusted) == ("sum", task.id, True)


@pytest.mark.behaviour("I-31")
async def test_a_task_is_cancelled_once_and_all_subscribers_see_it() -> None:
    async with door() as there, soon(), there.client() as ann, there.client(BINDINGS[1]) as rest:
        task = await sent(ann, asks("wait", wait=False))
        assert task.status.state == TaskState.TASK_STATE_WORKING
        stream = rest.subscribe(SubscribeToTaskRequest(id=task.id))
        assert (await anext(stream)).task.id == task.id
        await there.echo.waiting.wait()
        queued = await sent(ann, asks("sum", "two", wait=False))
        dropped = await ann.cancel_task(CancelTaskRequest(id=queued.id))
        assert dropped.status.state == TaskState.TASK_STATE_CANCELED
        cancelled = await ann.cancel_task(CancelTaskRequest(id=task.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
        states = [event.status_update.status.state async for event in stream]
        assert states == [TaskState.TASK_STATE_CANCELED]
        with pytest.raises(TaskNotCancelableError):
            await rest.cancel_task(CancelTaskRequest(id=task.id))
        async with there.client(key="bob") as bob:
            with pytest.raises(TaskNotFoundError):  # it belongs to ann
                await bob.get_task(GetTaskRequest(id=task.id))


@pytest.mark.behaviour("I-31")
async def test_a_task_survives_a_closed_stream_and_a_restart_of_the_hub(
    tmp_path: Path,
) -> None:
    more: dict[str, Any] = {"store": "sqlite:log.db", "folder": tmp_path}
    async with door(**more) as there, soon(), there.client() as ann:
        done = await sent(ann, asks("sum", "two", wait=False))
        async for _ in ann.send_message(asks("sum", "two")):
            pass
        task = await sent(ann, asks("wait", wait=False))
        async for _ in ann.subscribe(SubscribeToTaskRequest(id=task.id)):
            break
    async with door(**more) as there, soon(), there.client() as ann:
        stored = await ann.get_task(GetTaskRequest(id=done.id))
        assert stored.artifacts[0].parts[0].text == "done: sum"
        assert (await sent(ann, asks("sum", "two", wait=False))).id == done.id
        assert (await ann.get_task(GetTaskRequest(id=task.id))).id == task.id


@pytest.mark.behaviour("I-43")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_an_agent_asks_back_and_a_reply_continues_its_task(binding: str) -> None:
    async with door() as there, soon(), there.client(binding, streaming=False) as ann:
        asked = await sent(ann, asks("paint"))
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert asked.status.message.parts[0].text == "Which colour?"
        async with there.client(binding) as other:
            stream = other.subscribe(SubscribeToTaskRequest(id=asked.id))
            assert (await anext(stream)).task.status.state == asked.status.state
            done = await sent(ann, asks("red", "two", task_id=asked.id))
            assert done.status.state == TaskState.TASK_STATE_COMPLETED
            assert (done.id, done.artifacts[0].parts[0].text) == (asked.id, "painted red")
            events = [event async for event in stream]
            states = [e.status_update.status.state for e in events if e.HasField("status_update")]
            assert states == [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]
            again = [event async for event in other.send_message(asks("paint", "three"))]
        assert again[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        history = (await ann.get_task(GetTaskRequest(id=asked.id))).history
        assert [m.parts[0].text for m in history] == ["paint", "Which colour?", "red"]
        assert history[1].role == Role.ROLE_AGENT
        cancelled = await ann.cancel_task(CancelTaskRequest(id=again[0].task.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.behaviour("I-43")
async def test_a_model_asks_back_in_one_turn_and_reports_in_the_next(tmp_path: Path) -> None:
    question = {"request": "m1", "status": "question", "text": "Which colour?"}
    report = {"request": "m1", "status": "result", "text": "It is red."}
    answers = [says(call("report", **each), finish()) for each in (question, report)]
    async with playing(*answers) as model, soon():
        painter = LlmAgent("echo", model="m", base_url=model.base_url, retries=0)
        stored: dict[str, Any] = {"store": "sqlite:log.db", "folder": tmp_path}
        settings = A2aConfig(agents=["echo"])
        async with Network(painter, a2a=settings, **stored) as net:
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client(streaming=False) as ann:
                asked = await sent(ann, asks("paint it"))
                assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        async with Network(painter, a2a=settings, **stored) as net:  # a restarted hub
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client(streaming=False) as ann:
                task = await ann.get_task(GetTaskRequest(id=asked.id))
                assert task.status.message.parts[0].text == "Which colour?"
                done = await sent(ann, asks("red", "two", task_id=asked.id))
                assert done.artifacts[0].parts[0].text == "It is red."


@pytest.mark.behaviour("I-43")
@pytest.mark.parametrize(
    ("tool_call", "state"),
    [
        (call("finish", message="It is red."), TaskState.TASK_STATE_COMPLETED),
        (call("ask_human", question="It is red."), TaskState.TASK_STATE_INPUT_REQUIRED),
        (call("decline", reason="It is red."), TaskState.TASK_STATE_FAILED),
    ],
)
async def test_a_model_that_answers_a_task_without_a_report_reports(
    tool_call: Any, state: TaskState
) -> None:
    async with playing(says(tool_call), says(finish())) as model, soon():
        painter = LlmAgent("echo", model="m", base_url=model.base_url, retries=0)
        async with Network(painter, a2a=A2aConfig(agents=["echo"])) as net:
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client(streaming=False) as ann:
                task = await sent(ann, asks("which colour is it?"))
                answers = [part for each in task.artifacts for part in each.parts]
                (answer,) = answers or task.status.message.parts
                assert (task.status.state, answer.text.endswith("It is red.")) == (state, True)


@pytest.mark.behaviour("I-30")
async def test_a_conversation_by_the_openai_api_does_not_answer_the_question_of_a_task() -> None:
    async with door(openai=True) as there, soon(), there.client(streaming=False) as client:
        task = await sent(client, asks("paint"))
        chat = {"model": "echo", "messages": [{"role": "user", "content": "hello"}]}
        async with httpx.AsyncClient(headers={"authorization": "Bearer ann"}) as http:
            await http.post(f"{there.url}/v1/chat/completions", json=chat)
        task = await client.get_task(GetTaskRequest(id=task.id))
        assert task.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        reply = asks("blue", "two", task_id=task.id, context_id=task.context_id)
        task = await sent(client, reply)
        assert task.artifacts[0].parts[0].text == "painted blue"


@pytest.mark.behaviour("I-30")
async def test_tasks_of_a_client_end_in_order_and_one_over_budget_fails_with_the_reason() -> None:
    daily = DailyBudgets.model_validate({"network": {"wakes": 2}})
    async with door(daily=daily) as there, soon(), there.client(streaming=False) as ann:
        first = await sent(ann, asks("one", "one", wait=False))
        await sent(ann, asks("two", "two"))
        done = await ann.get_task(GetTaskRequest(id=first.id))
        assert done.status.state == TaskState.TASK_STATE_COMPLETED
        refused = await sent(ann, asks("three", "three"))
        assert refused.status.state == TaskState.TASK_STATE_FAILED
        assert "daily budget" in refused.status.message.parts[0].text


@pytest.mark.behaviour("I-31")
async def test_a_stream_shows_a_pending_approval_and_continues_after_it() -> None:
    answers = [says(call("paint", colour="red")), says(call("finish", message="It is red."))]
    async with playing(*answers) as model:
        painter = LlmAgent(
            "echo",
            model="m", base_url=model.base_url, retries=0, tools=[paint], permission_mode="ask",
        )  # fmt: skip
        async with Network(painter, a2a=A2aConfig(agents=["echo"])) as net, soon():
            owner = await net.join("olga")
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client() as ann:
                notes, results = list[str](), list[str]()
                async for event in ann.send_message(asks("paint it")):
                    notes += [part.text for part in event.status_update.status.message.parts]
                    results += [part.text for part in event.artifact_update.artifact.parts]
                    if len(notes) == 1:
                        waiting = await owner.call("list_approvals", state="pending")
                        for pending in Approvals.model_validate(waiting).approvals:
                            await owner.call("approve", id=pending.id)
        assert "asks to run paint" in notes[0]
        assert results == ["It is red."]


@pytest.mark.behaviour("I-32")
async def test_push_notifications_reach_only_allowed_hosts_and_report_completion() -> None:
    long, beyond = f"http://{'a' * 70}.org", "http://127.0.0.1:99999/"
    async with notified() as (url, received), door() as there, soon(), there.client() as ann:
        asked = asks("sum")
        config = asked.configuration.task_push_notification_config
        for wrong in ("http://localhost:1/", "http://10.0.0.1/", long, beyond, "file:///x"):
            config.CopyFrom(TaskPushNotificationConfig(url=wrong))
            with pytest.raises(InvalidParamsError):
                await sent(ann, asked)
        config.CopyFrom(TaskPushNotificationConfig(url=url, token="t0"))
        await sent(ann, asked)
        notification = b""
        while b"TASK_STATE_COMPLETED" not in notification:
            notification = await received.get()
            assert b"x-a2a-notification-token: t0" in notification


@pytest.mark.behaviour("I-33")
async def test_invalid_and_unauthorized_requests_get_the_protocols_errors() -> None:
    async with door() as there, httpx.AsyncClient(verify=False, timeout=None) as http:
        url = f"{there.url}/a2a/echo"
        auth = {"authorization": "Bearer ann", "a2a-version": "1.0"}
        auth["content-type"] = "application/json"

        async def code(body: object, **headers: str) -> int:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            answer = await http.post(url, content=content, headers={**auth, **headers})
            return int(answer.json()["error"]["code"])

        call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "m1"}}
        short = {"id": "m1", "historyLength": -1}
        large = {"messageId": "1", "role": "ROLE_USER", "parts": [{"data": 10**400}]}
        assert [
            await code(b"{"),
            await code(b"[" * 4_000),
            await code({**call, "id": "\ud800"}),
            await code({**call, "params": {"id": "m1", "x": float("nan")}}),
            await code([call]),
            await code({**call, "method": "Nothing"}),
            await code({**call, "params": {"id": 7}}),
            await code({**call, "params": short}),
            await code({**call, "method": "SendMessage", "params": {"message": large}}),
            await code(call),
            await code(call, **{"a2a-version": "0.3"}),
            await code(call, **{"content-type": "text/plain"}),
        ] == [
            *[-32700] * 4, -32600, -32601, -32602, -32602, -32602, -32001, -32009, -32005,
        ]  # fmt: skip
        answers = [
            await http.post(url, json=call),
            await http.post(url, json=call, headers={**auth, "origin": "http://evil"}),
            await http.post(url, json=call, headers={"authorization": "Bearer no one"}),
            await http.get(f"{there.url}/a2a/nobody/tasks", headers=auth),
            await http.get(f"{url}/tasks/m9", headers=auth),
            await http.post(f"{url}/message:send", content=b"x" * 5_000_000, headers=auth),
        ]
        assert [each.status_code for each in answers] == [401, 403, 401, 404, 404, 413]
        cards = [f"{there.url}/.well-known/agent-card.json", f"{url}/.well-known/agent-card.json"]
        first, second = [await http.get(card) for card in cards]
        assert first.json() == second.json()
        cached = await http.get(cards[0], headers={"if-none-match": first.headers["etag"]})
        assert (cached.status_code, "content-length" in cached.headers) == (304, False)
        del auth["a2a-version"]
        named = await http.get(f"{url}/tasks", params={"A2A-Version": "1.0"}, headers=auth)
        assert named.json()["tasks"] == []
