"""A2A on the hub's port, with the SDK's own client at the other end."""

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
    """Repeats what it is asked for; `wait` never ends, `fail` fails, `paint` needs a colour."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()

    async def on_request(self, message: Message) -> str:
        if message.text == "wait":
            self.waits.set()
            await asyncio.get_running_loop().create_future()
        if message.text == "fail":
            raise ValueError("I cannot")
        if message.text == "paint":
            colour = await self.ask(message, "Which colour?", timeout=3600)
            return f"painted {colour.text}"
        return f"done: {message.text}"


class Door:
    """A network whose door is open, and who asks there."""

    def __init__(self, net: Network, echo: Echo, url: str):
        self.net, self.echo, self.url = net, echo, url.replace("ws:", "http:")

    @asynccontextmanager
    async def client(
        self, binding: str = "JSONRPC", key: str = "ann", **more: Any
    ) -> AsyncIterator[A2aClient]:
        headers = {"authorization": f"Bearer {key}"}
        async with httpx.AsyncClient(headers=headers, verify=False, timeout=None) as http:
            config = ClientConfig(httpx_client=http, supported_protocol_bindings=[binding], **more)
            made = await ClientFactory(config).create_from_url(f"{self.url}/a2a/echo")
            yield made


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
    """An address, and the requests that come to it: head in small letters and body. They are
    answered at once, or as soon as it `answers`."""
    heard: asyncio.Queue[bytes] = asyncio.Queue()

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
        heard.put_nowait(head.lower() + await reader.readexactly(int(size.split(b":")[1])))
        if answers is not None:
            await answers.wait()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", heard


async def sent(client: A2aClient, asked: SendMessageRequest) -> Task:
    """The task, without what becomes of it."""
    async for event in client.send_message(asked):
        return event.task
    raise AssertionError("there is always a first event")


@pytest.mark.behaviour("I-30")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_a_task_is_a_request_of_the_hub_whole_or_as_a_stream(binding: str) -> None:
    async with door() as there, soon():
        async with there.client(binding, streaming=False) as whole:
            task = await sent(whole, asks("sum"))
            assert task.status.state == TaskState.TASK_STATE_COMPLETED
            assert task.artifacts[0].parts[0].text == "done: sum"
            again = await sent(whole, asks("sum"))
            assert again.id == task.id  # the same message is one task
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
async def test_a_task_is_cancelled_once_and_followed_by_several() -> None:
    async with door() as there, soon(), there.client() as ann, there.client(BINDINGS[1]) as rest:
        task = await sent(ann, asks("wait", wait=False))
        assert task.status.state == TaskState.TASK_STATE_WORKING

        follows = rest.subscribe(SubscribeToTaskRequest(id=task.id))
        assert (await anext(follows)).task.id == task.id
        await there.echo.waits.wait()
        queued = await sent(ann, asks("sum", "two", wait=False))
        dropped = await ann.cancel_task(CancelTaskRequest(id=queued.id))
        assert dropped.status.state == TaskState.TASK_STATE_CANCELED
        cancelled = await ann.cancel_task(CancelTaskRequest(id=task.id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED
        ends = [event.status_update.status.state async for event in follows]
        assert ends == [TaskState.TASK_STATE_CANCELED]
        with pytest.raises(TaskNotCancelableError):
            await rest.cancel_task(CancelTaskRequest(id=task.id))
        async with there.client(key="bob") as bob:
            with pytest.raises(TaskNotFoundError):  # it is ann's
                await bob.get_task(GetTaskRequest(id=task.id))


@pytest.mark.behaviour("I-31")
async def test_who_leaves_a_stream_ends_no_task_and_a_hub_that_comes_back_knows_it(
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
        found = await ann.get_task(GetTaskRequest(id=done.id))
        assert found.artifacts[0].parts[0].text == "done: sum"
        assert (await sent(ann, asks("sum", "two", wait=False))).id == done.id
        assert (await ann.get_task(GetTaskRequest(id=task.id))).id == task.id


@pytest.mark.behaviour("I-43")
@pytest.mark.parametrize("binding", BINDINGS)
async def test_an_agent_asks_back_and_a_message_with_the_task_goes_on_with_it(binding: str) -> None:
    async with door() as there, soon(), there.client(binding, streaming=False) as ann:
        asked = await sent(ann, asks("paint"))
        assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        assert asked.status.message.parts[0].text == "Which colour?"
        async with there.client(binding) as other:
            follows = other.subscribe(SubscribeToTaskRequest(id=asked.id))
            assert (await anext(follows)).task.status.state == asked.status.state
            done = await sent(ann, asks("red", "two", task_id=asked.id))
            assert done.status.state == TaskState.TASK_STATE_COMPLETED
            assert (done.id, done.artifacts[0].parts[0].text) == (asked.id, "painted red")
            events = [event async for event in follows]
            states = [e.status_update.status.state for e in events if e.HasField("status_update")]
            assert states == [TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_COMPLETED]
            again = [event async for event in other.send_message(asks("paint", "three"))]
        assert again[-1].status_update.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        id = again[0].task.id
        known = await ann.get_task(GetTaskRequest(id=asked.id))
        said = [(Role.Name(m.role), m.parts[0].text) for m in known.history]
        assert [text for _, text in said] == ["paint", "Which colour?", "red"]
        assert said[1][0] == "ROLE_AGENT"
        cancelled = await ann.cancel_task(CancelTaskRequest(id=id))
        assert cancelled.status.state == TaskState.TASK_STATE_CANCELED


@pytest.mark.behaviour("I-43")
async def test_a_model_asks_back_in_one_turn_and_reports_in_the_next(tmp_path: Path) -> None:
    question = {"request": "m1", "status": "question", "text": "Which colour?"}
    report = {"request": "m1", "status": "result", "text": "It is red."}
    answers = [says(call("report", **each), finish()) for each in (question, report)]
    async with playing(*answers) as model, soon():
        painter = LlmAgent("echo", model="m", base_url=model.base_url, retries=0)
        kept: dict[str, Any] = {"store": "sqlite:log.db", "folder": tmp_path}
        settings = A2aConfig(agents=["echo"])
        async with Network(painter, a2a=settings, **kept) as net:
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client(streaming=False) as ann:
                asked = await sent(ann, asks("paint it"))
                assert asked.status.state == TaskState.TASK_STATE_INPUT_REQUIRED
        async with Network(painter, a2a=settings, **kept) as net:  # the hub came back meanwhile
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client(streaming=False) as ann:
                task = await ann.get_task(GetTaskRequest(id=asked.id))
                assert task.status.message.parts[0].text == "Which colour?"
                done = await sent(ann, asks("red", "two", task_id=asked.id))
                assert done.artifacts[0].parts[0].text == "It is red."


@pytest.mark.behaviour("I-30")
async def test_tasks_of_one_asker_end_in_order_and_one_beyond_a_budget_fails_with_the_reason() -> (
    None
):
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
async def test_a_stream_says_that_a_task_waits_for_an_approval_and_goes_on_after_it() -> None:
    answers = [says(call("paint", colour="red")), says(call("finish", message="It is red."))]
    async with playing(*answers) as model:
        painter = LlmAgent(
            "echo",
            model="m", base_url=model.base_url, retries=0, tools=[paint], permission_mode="ask",
        )  # fmt: skip
        async with (
            Network(painter, a2a=A2aConfig(agents=["echo"])) as net,
            soon(),
        ):
            owner = await net.join("olga")
            there = Door(net, Echo(), await net.serve(page=False))
            async with there.client() as ann:
                notes: list[str] = []
                async for event in ann.send_message(asks("paint it")):
                    notes += [part.text for part in event.status_update.status.message.parts]
                    if len(notes) == 1:
                        waiting = await owner.call("list_approvals", state="pending")
                        for pending in Approvals.model_validate(waiting).approvals:
                            await owner.call("approve", id=pending.id)
        assert "asks to run paint" in notes[0]
        assert notes[1] == "It is red."


@pytest.mark.behaviour("I-32")
async def test_notifications_go_to_allowed_addresses_only_and_tell_the_end() -> None:
    async with notified() as (url, heard), door() as there, soon(), there.client() as ann:
        asked = asks("sum")
        config = TaskPushNotificationConfig(url=url, token="t0")
        for wrong in (
            "http://localhost:1/",
            "http://10.0.0.1/",
            f"http://{'a' * 70}.org",
            "file:///x",
        ):
            config_ = TaskPushNotificationConfig(url=wrong)
            asked.configuration.task_push_notification_config.CopyFrom(config_)
            with pytest.raises(InvalidParamsError):
                await sent(ann, asked)
        asked.configuration.task_push_notification_config.CopyFrom(config)
        await sent(ann, asked)
        told = b""
        while b"TASK_STATE_COMPLETED" not in told:
            told = await heard.get()
            assert b"x-a2a-notification-token: t0" in told


@pytest.mark.behaviour("I-33")
async def test_garbage_and_strangers_are_refused_in_the_form_of_the_protocol() -> None:
    async with door() as there, httpx.AsyncClient(verify=False, timeout=None) as http:
        url = f"{there.url}/a2a/echo"
        proof = {
            "authorization": "Bearer ann",
            "a2a-version": "1.0",
            "content-type": "application/json",
        }

        async def code(body: object, **headers: str) -> int:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            answer = await http.post(url, content=content, headers={**proof, **headers})
            return int(answer.json()["error"]["code"])

        call = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "m1"}}
        assert [
            await code(b"{"),
            await code(b"[" * 100_000),
            await code([call]),
            await code({**call, "method": "Nothing"}),
            await code({**call, "params": {"id": 7}}),
            await code(call),
            await code(call, **{"a2a-version": "0.3"}),
            await code(call, **{"content-type": "text/plain"}),
        ] == [-32700, -32700, -32600, -32601, -32602, -32001, -32009, -32005]
        statuses = [
            (await http.post(url, json=call)).status_code,
            (
                await http.post(url, json=call, headers={**proof, "origin": "http://evil"})
            ).status_code,
            (
                await http.post(url, json=call, headers={"authorization": "Bearer no one"})
            ).status_code,
            (await http.get(f"{there.url}/a2a/nobody/tasks", headers=proof)).status_code,
            (await http.get(f"{url}/tasks/m9", headers=proof)).status_code,
            (
                await http.post(f"{url}/message:send", content=b"x" * 5_000_000, headers=proof)
            ).status_code,
        ]
        assert statuses == [401, 403, 401, 404, 404, 413]
        cards = [f"{there.url}/.well-known/agent-card.json", f"{url}/.well-known/agent-card.json"]
        first, second = [await http.get(card) for card in cards]
        assert first.json() == second.json()
        known = await http.get(cards[0], headers={"if-none-match": first.headers["etag"]})
        assert known.status_code == 304
