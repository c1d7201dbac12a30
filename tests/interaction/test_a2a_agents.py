"""Remote A2A agents as agents of a network: behind our own A2A server, and misbehaving ones."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from hubbub import Agent, Message, Network
from hubbub.client import Client, WebSocketTransport
from hubbub.config.agents import AgentConfig
from hubbub.config.models import A2aConfig
from hubbub.errors import OperationError
from hubbub.interop.a2a.remote import MEMORY_KEY, run_a2a_agent
from hubbub.protocol.control import Request, Requests
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Turns, TurnSummary
from tests.interaction.peers import soon

Answers = Callable[[str, Mapping[str, Any]], Any]


class Clerk(Agent):
    """The remote agent: answers, waits until the test releases it, asks back or fails."""

    def __init__(self) -> None:
        self.asked, self.release, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def on_request(self, message: Message) -> str:
        if message.text == "wait":
            self.asked.set()
            try:
                await self.release.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
        if message.text == "fail":
            raise ValueError("I cannot")
        if message.text == "paint":
            return f"painted {(await self.ask(message, 'Which colour?', timeout=3600)).text}"
        return f"done: {message.text}"


class LocalSide:
    """A network with a person and the remote agent."""

    def __init__(self, net: Network, ann: Client, url: str, config: AgentConfig):
        self.net, self.ann, self._url, self._config = net, ann, url, config

    @asynccontextmanager
    async def process(self) -> AsyncIterator[Client]:
        """The agent's process."""
        transport = WebSocketTransport(self._url)
        async with Client(transport, "far", "agent", turns=True) as client:
            running = asyncio.create_task(
                run_a2a_agent(self._config, "far", client, Path(), grace_s=0.0)
            )
            try:
                yield client
            finally:
                running.cancel()
                with suppress(asyncio.CancelledError):
                    await running

    async def say(self, text: str) -> None:
        await self.ann.call("send_text_message", to="far", text=text)

    async def answer(self) -> Message:
        """The next message to the person."""
        async for item in self.ann.events():
            if isinstance(item, Event):
                await self.ann.ack(item.seq)
                if item.message.sender_id != "ann":
                    return item.message
        raise AssertionError("the network keeps running")

    async def report(self) -> tuple[str, str]:
        """The request kind and the text of the next message to the person."""
        answer = await self.answer()
        return (answer.request.kind if answer.request is not None else ""), answer.text

    async def turns(self) -> tuple[TurnSummary, ...]:
        """The turns of the remote agent, newest first."""
        return Turns.model_validate(await self.ann.call("list_turns", agent="far")).turns

    async def remembered(self, agent: Client) -> None:
        """Wait until the agent has stored the id of its task."""
        committed = asyncio.Event()
        self.net.hub.listen(lambda entries: None, lambda records: committed.set())
        while True:
            committed.clear()
            with suppress(OperationError):
                await agent.call("recall", key=MEMORY_KEY)
                return
            await committed.wait()


@asynccontextmanager
async def local(url: str, **more: Any) -> AsyncIterator[LocalSide]:
    section = {"kind": "a2a", "a2a": {"url": url, "token": "partner"}, **more}
    config = AgentConfig.model_validate(section)
    async with Network(people=["ann", "bob"], name="local") as net:
        ann = await net.join("ann")
        yield LocalSide(net, ann, await net.serve(page=False), config)


@asynccontextmanager
async def remote(clerk: Clerk) -> AsyncIterator[tuple[Network, str]]:
    settings = A2aConfig(agents=["clerk"])
    clerk.name = "clerk"
    async with Network(clerk, people=["partner"], a2a=settings, name="remote") as net:
        url = (await net.serve(page=False)).replace("ws:", "http:")
        yield net, f"{url.rstrip('/')}/a2a/clerk"


async def requests(net: Network) -> tuple[Request, ...]:
    partner = await net.join("partner")
    return Requests.model_validate(await partner.call("list_requests", state="all")).requests


def reply(text: str) -> dict[str, Any]:
    """A message of the remote agent."""
    return {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": text}]}


def data(value: float) -> dict[str, Any]:
    """A message of the remote agent that is not text."""
    return {**reply(""), "parts": [{"data": value}]}


@pytest.mark.behaviour("I-40")
async def test_the_answers_of_a_remote_agent_are_marked_untrusted() -> None:
    async with soon(), remote(Clerk()) as (far, url), local(url) as net, net.process():
        await net.say("sum")
        answer = await net.answer()
        assert (answer.sender_id, answer.text, answer.untrusted) == ("far", "done: sum", True)
        await net.say("more")
        assert (await net.answer()).text == "done: more"
        received = await requests(far)
        assert [each.task for each in received] == ["more", "sum"]
        assert len({each.thread_id for each in received}) == 1, "one context"
        first = (await net.turns())[1]
        assert (first.outcome, first.calls) == ("finished", 2), "the task and the answer"


@pytest.mark.behaviour("I-40")
async def test_a_remote_agent_receives_no_messages_of_other_threads() -> None:
    received = list[str]()

    def answers(method: str, params: Mapping[str, Any]) -> Any:
        received.append(json.dumps(params))
        return {"message": reply("yes")}

    async with soon(), peer(answers) as url, local(url) as net, net.process():
        await net.ann.call("send_text_message", to="bob", text="a secret of ann")
        await net.ann.call("broadcast_text_message", text="not for the remote agent")
        await net.say("only this")
        while (await net.answer()).text != "yes":
            pass
        assert "only this" in received[-1]
        assert not any("secret" in each for each in received)


@pytest.mark.behaviour("I-40")
async def test_a_restarted_process_resumes_the_remote_task() -> None:
    clerk = Clerk()
    async with soon(), remote(clerk) as (far, url), local(url) as net:
        async with net.process() as agent:
            await net.say("wait")
            await clerk.asked.wait()
            await net.remembered(agent)
        async with net.process():
            clerk.release.set()
            assert (await net.answer()).text == "done: wait"
        assert len(await requests(far)) == 1
        assert not clerk.stopped.is_set()


@pytest.mark.behaviour("I-40")
async def test_a_stop_cancels_the_remote_task() -> None:
    clerk = Clerk()
    async with soon(), remote(clerk) as (_, url), local(url) as net, net.process() as agent:
        await net.say("wait")
        await clerk.asked.wait()
        await net.remembered(agent)
        await net.ann.call("stop", scope="agent", target="far", reason="enough")
        await clerk.stopped.wait()


@pytest.mark.behaviour("I-40")
async def test_a_turn_timeout_cancels_the_remote_task() -> None:
    clerk = Clerk()
    far = remote(clerk)
    async with soon(), far as (_, url), local(url, turn_timeout=1) as net, net.process():
        await net.say("wait")
        await clerk.stopped.wait()
        await net.answer()  # the hub's notice
        assert (await net.turns())[0].outcome == "timeout"


@pytest.mark.behaviour("I-40")
async def test_a_question_of_a_remote_agent_is_forwarded_and_the_reply_continues_its_task() -> None:
    received, link = list[Mapping[str, Any]](), "https://files.example.org/a.pdf"

    def answers(method: str, params: Mapping[str, Any]) -> Any:
        received.append(params["message"])
        if len(received) == 1:
            return task("TASK_STATE_INPUT_REQUIRED", message=reply("Which city?"))
        parts = [{"text": "Rain."}, {"url": link, "filename": "a.pdf"}]
        done = task("TASK_STATE_COMPLETED")
        done["task"]["artifacts"] = [{"artifactId": "r", "parts": parts}]
        return done

    async with soon(), peer(answers) as url, local(url) as net, net.process():
        await net.say("weather?")
        assert (await net.answer()).text == "Which city?"
        await net.say("Rome")
        answer = await net.answer()
        assert (answer.text, answer.attachments[0].uri) == ("Rain.", link)
        assert (received[1]["taskId"], received[1]["contextId"]) == ("t1", "c1")


@pytest.mark.behaviour("I-43")
async def test_a_question_of_a_remote_agent_keeps_the_local_request_open_until_the_reply() -> None:
    async with soon(), remote(Clerk()) as (far, url), local(url) as net, net.process():
        await net.ann.call("delegate", to="far", task="paint")
        assert await net.report() == ("question", "Which colour?")
        await net.say("red")
        assert await net.report() == ("result", "painted red")
        assert [each.state for each in await requests(far)] == ["result"]


def failing(method: str, params: Mapping[str, Any]) -> Any:
    return task("TASK_STATE_FAILED", message=reply("I cannot read that."))


def flooding(method: str, params: Mapping[str, Any]) -> Any:
    return {"message": reply("x" * (9 * 1024 * 1024))}


@pytest.mark.behaviour("I-40")
@pytest.mark.parametrize(
    ("answers", "location", "reason"),
    [
        (failing, {}, "I cannot read that."),
        (flooding, {}, "more than 8388608 bytes"),
        (lambda *_: b"no json", {}, ""),
        (lambda *_: ["neither"], {}, ""),
        (lambda *_: {}, {}, ""),
        (lambda *_: {"message": data(float("nan"))}, {}, "not JSON"),
        (lambda *_: {"message": data(10**400)}, {}, "too large"),
        (failing, {"redirect": "http://127.0.0.1:1/"}, "which is not followed"),
        (failing, {"interface": "http://localhost:1/"}, "a2a.hosts"),
        (failing, {"refusal": "401 Unauthorized"}, "401 Unauthorized"),
    ],
    ids=[
        "fails",
        "floods",
        "garbage",
        "a list",
        "nothing",
        "not a number",
        "a large number",
        "redirects",
        "another host",
        "refuses the token",
    ],
)
async def test_a_failing_remote_agent_ends_the_turn_with_model_error(
    answers: Answers, location: dict[str, str], reason: str
) -> None:
    async with soon(), peer(answers, **location) as url, local(url) as net, net.process():
        await net.say("do it")
        await net.answer()  # the hub's notice
        turn = (await net.turns())[0]
        assert (turn.outcome, reason in turn.reason) == ("model_error", True), turn
        assert "For more information" not in turn.reason


def task(state: str, **more: Any) -> dict[str, Any]:
    return {"task": {"id": "t1", "contextId": "c1", "status": {"state": state, **more}}}


@asynccontextmanager
async def peer(
    answers: Answers, *, redirect: str = "", interface: str = "", refusal: str = ""
) -> AsyncIterator[str]:
    """A remote agent that answers with the result of `answers`; bytes are the whole body."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                lines = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(lines.get("content-length", "0")))
                first = refusal or "200 OK"
                if head[0].startswith("GET"):
                    content = json.dumps(card).encode()
                elif redirect:
                    content, first = b"", f"307 Temporary Redirect\r\nLocation: {redirect}"
                else:
                    content = answered(json.loads(body))
                more = f"Content-Type: application/json\r\nContent-Length: {len(content)}"
                writer.write(f"HTTP/1.1 {first}\r\n{more}\r\n\r\n".encode() + content)
                await writer.drain()
        writer.close()

    def answered(request: Mapping[str, Any]) -> bytes:
        result = answers(request["method"], request["params"])
        if isinstance(result, bytes):
            return result
        return json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}).encode()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    endpoint = {"url": interface or f"{url}/", "protocolBinding": "JSONRPC"}
    card = {
        "name": "far",
        "description": "A remote agent.",
        "version": "1",
        "supportedInterfaces": [{**endpoint, "protocolVersion": "1.0"}],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }
    async with server:
        yield url
