"""Agents elsewhere as agents of a network: at a door of ours, and peers that misbehave."""

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
from hubbub.protocol.control import Requests
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import Turns
from tests.interaction.peers import soon

Answers = Callable[[str, Mapping[str, Any]], Any]


class Clerk(Agent):
    """At the other end: answers, waits until it may go on, or fails."""

    def __init__(self) -> None:
        self.asked, self.may_end, self.stopped = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def on_request(self, message: Message) -> str:
        if message.text == "wait":
            self.asked.set()
            try:
                await self.may_end.wait()
            except asyncio.CancelledError:
                self.stopped.set()
                raise
        if message.text == "fail":
            raise ValueError("I cannot")
        if message.text == "paint":
            return f"painted {(await self.ask(message, 'Which colour?', timeout=3600)).text}"
        return f"done: {message.text}"


class Here:
    """A network with an agent that is elsewhere, and a person."""

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

    async def said(self, text: str, *, to: str = "far") -> None:
        await self.ann.call("send_text_message", to=to, text=text)

    async def kind(self) -> tuple[str, str]:
        """What the next message to the person means for a request, and its text."""
        answer = await self.answer()
        return (answer.request.kind if answer.request is not None else ""), answer.text

    async def answer(self) -> Message:
        """What is said to the person next."""
        async for item in self.ann.events():
            if isinstance(item, Event):
                await self.ann.ack(item.seq)
                if item.message.sender_id != "ann":
                    return item.message
        raise AssertionError("the network goes on")


@asynccontextmanager
async def here(url: str, **more: Any) -> AsyncIterator[Here]:
    section = {"kind": "a2a", "a2a": {"url": url, "token": "partner"}, **more}
    config = AgentConfig.model_validate(section)
    async with Network(people=["ann", "bob"], name="here") as net:
        ann = await net.join("ann")
        yield Here(net, ann, await net.serve(page=False), config)


@asynccontextmanager
async def elsewhere(clerk: Clerk) -> AsyncIterator[tuple[Network, str]]:
    settings = A2aConfig(agents=["clerk"])
    clerk.name = "clerk"
    async with Network(clerk, people=["partner"], a2a=settings, name="elsewhere") as net:
        url = (await net.serve(page=False)).replace("ws:", "http:")
        yield net, f"{url.rstrip('/')}/a2a/clerk"


async def requests(net: Network) -> Requests:
    partner = await net.join("partner")
    return Requests.model_validate(await partner.call("list_requests", state="all"))


@pytest.mark.behaviour("I-40")
async def test_an_agent_elsewhere_answers_and_what_it_says_is_marked_as_from_outside() -> None:
    async with soon(), elsewhere(Clerk()) as (far, url), here(url) as net, net.process():
        await net.said("sum")
        answer = await net.answer()
        assert (answer.sender_id, answer.text, answer.untrusted) == ("far", "done: sum", True)
        await net.said("more")
        assert (await net.answer()).text == "done: more"
        there = (await requests(far)).requests
        assert [each.task for each in there] == ["more", "sum"]
        assert len({each.thread_id for each in there}) == 1  # one context
        turns = Turns.model_validate(await net.ann.call("list_turns", agent="far")).turns
        assert (turns[1].outcome, turns[1].calls) == (
            "finished",
            2,
        )  # what was sent, and the answer


@pytest.mark.behaviour("I-40")
async def test_it_is_sent_what_it_is_to_answer_and_no_other_thread() -> None:
    heard = list[str]()

    def answers(method: str, params: Mapping[str, Any]) -> Any:
        heard.append(json.dumps(params))
        return {"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": [{"text": "yes"}]}}

    async with soon(), peer(answers) as url, here(url) as net, net.process():
        await net.ann.call("send_text_message", to="bob", text="a secret of ann")
        await net.ann.call("broadcast_text_message", text="nobody elsewhere needs this")
        await net.said("only this")
        while (await net.answer()).text != "yes":
            pass
        assert "only this" in heard[-1]
        assert not any("secret" in each for each in heard)


@pytest.mark.behaviour("I-40")
async def test_a_process_that_is_started_anew_goes_on_with_the_task() -> None:
    clerk = Clerk()
    async with soon(), elsewhere(clerk) as (far, url), here(url) as net:
        async with net.process() as agent:
            await net.said("wait")
            await clerk.asked.wait()
            await _remembered(agent)
        async with net.process():
            clerk.may_end.set()
            assert (await net.answer()).text == "done: wait"
        assert len((await requests(far)).requests) == 1
        assert not clerk.stopped.is_set()


@pytest.mark.behaviour("I-40")
async def test_a_stop_stops_the_task_elsewhere() -> None:
    clerk = Clerk()
    async with soon(), elsewhere(clerk) as (_, url), here(url) as net, net.process() as agent:
        await net.said("wait")
        await clerk.asked.wait()
        await _remembered(agent)
        await net.ann.call("stop", scope="agent", target="far", reason="enough")
        await clerk.stopped.wait()


@pytest.mark.behaviour("I-40")
async def test_a_turn_that_runs_out_of_time_stops_the_task_elsewhere() -> None:
    clerk = Clerk()
    far = elsewhere(clerk)
    async with soon(), far as (_, url), here(url, turn_timeout=1) as net, net.process():
        await net.said("wait")
        await clerk.stopped.wait()
        await net.answer()  # the hub's word that there will be none
        turns = Turns.model_validate(await net.ann.call("list_turns", agent="far")).turns
        assert turns[0].outcome == "timeout"


@pytest.mark.behaviour("I-40")
async def test_a_question_of_it_is_the_answer_and_what_is_said_next_goes_on_with_the_task() -> None:
    heard = list[Mapping[str, Any]]()

    def answers(method: str, params: Mapping[str, Any]) -> Any:
        heard.append(params["message"])
        said = {"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "Which city?"}]}
        status: dict[str, Any] = {"state": "TASK_STATE_INPUT_REQUIRED", "message": said}
        task: dict[str, Any] = {"id": "t1", "contextId": "c1", "status": status}
        if len(heard) == 2:
            task["status"] = {"state": "TASK_STATE_COMPLETED"}
            link: Any = {"url": "https://files.example.org/a.pdf", "filename": "a.pdf"}
            parts: list[Any] = [{"text": "Rain."}, link]
            task["artifacts"] = [{"artifactId": "r", "parts": parts}]
        return {"task": task}

    async with soon(), peer(answers) as url, here(url) as net, net.process():
        await net.said("weather?")
        assert (await net.answer()).text == "Which city?"
        await net.said("Rome")
        answer = await net.answer()
        assert (answer.text, answer.attachments[0].uri) == (
            "Rain.",
            "https://files.example.org/a.pdf",
        )
        assert (heard[1]["taskId"], heard[1]["contextId"]) == ("t1", "c1")


@pytest.mark.behaviour("I-43")
async def test_a_question_of_it_keeps_a_request_of_this_network_open_until_the_reply() -> None:
    async with soon(), elsewhere(Clerk()) as (far, url), here(url) as net, net.process():
        await net.ann.call("delegate", to="far", task="paint")
        assert await net.kind() == ("question", "Which colour?")
        await net.said("red")
        assert await net.kind() == ("result", "painted red")
        there = (await requests(far)).requests
        assert [each.state for each in there] == ["result"]


def failing(method: str, params: Mapping[str, Any]) -> Any:
    said = {"messageId": "q", "role": "ROLE_AGENT", "parts": [{"text": "I cannot read that."}]}
    status = {"state": "TASK_STATE_FAILED", "message": said}
    return {"task": {"id": "t1", "contextId": "c1", "status": status}}


def flooding(method: str, params: Mapping[str, Any]) -> Any:
    parts = [{"text": "x" * (9 * 1024 * 1024)}]
    return {"message": {"messageId": "a", "role": "ROLE_AGENT", "parts": parts}}


@pytest.mark.behaviour("I-40")
@pytest.mark.parametrize(
    ("answers", "how", "words"),
    [
        (failing, {}, "I cannot read that."),
        (flooding, {}, "more than 8388608 bytes"),
        (lambda *_: b"no json", {}, ""),
        (lambda *_: ["neither"], {}, ""),
        (lambda *_: {}, {}, ""),
        (failing, {"redirect": "http://127.0.0.1:1/"}, "which is not followed"),
        (failing, {"asked_at": "http://localhost:1/"}, "a2a.hosts"),
    ],
    ids=["fails", "floods", "garbage", "a list", "nothing", "redirects", "elsewhere"],
)
async def test_what_goes_wrong_elsewhere_has_one_clear_outcome(
    answers: Answers, how: dict[str, str], words: str
) -> None:
    async with soon(), peer(answers, **how) as url, here(url) as net, net.process():
        await net.said("do it")
        await net.answer()  # the hub's word that there will be none
        turns = Turns.model_validate(await net.ann.call("list_turns", agent="far")).turns
        assert (turns[0].outcome, words in turns[0].reason) == ("model_error", True), turns[0]


async def _remembered(agent: Client) -> None:
    """The agent has noted which task is that of its turn."""
    while True:
        with suppress(OperationError):
            await agent.call("recall", key=MEMORY_KEY)
            return


@asynccontextmanager
async def peer(answers: Answers, *, redirect: str = "", asked_at: str = "") -> AsyncIterator[str]:
    """An agent elsewhere that answers each message as `answers` says: bytes are its whole body."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                lines = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
                body = await reader.readexactly(int(lines.get("content-length", "0")))
                first = "200 OK"
                if head[0].startswith("GET"):
                    told = json.dumps(card).encode()
                elif redirect:
                    told, first = b"", f"307 Temporary Redirect\r\nLocation: {redirect}"
                else:
                    asked = json.loads(body)
                    result = answers(asked["method"], asked["params"])
                    told = (
                        result
                        if isinstance(result, bytes)
                        else json.dumps(
                            {"jsonrpc": "2.0", "id": asked["id"], "result": result}
                        ).encode()
                    )
                more = f"Content-Type: application/json\r\nContent-Length: {len(told)}"
                writer.write(f"HTTP/1.1 {first}\r\n{more}\r\n\r\n".encode() + told)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    place = {"url": asked_at or f"{url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
    card = {
        "name": "far",
        "description": "An agent elsewhere.",
        "version": "1",
        "supportedInterfaces": [place],
        "capabilities": {},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [],
    }
    async with server:
        yield url
