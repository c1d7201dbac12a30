"""What adapters for other frameworks share, without any of these."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from hubbub import Network
from hubbub.adapters.guest import GuestAgent, GuestTurn, WorkerThreads
from hubbub.agents.launch import run_python_agent
from hubbub.client import Client, WebSocketTransport
from hubbub.config.agents import AgentConfig
from hubbub.errors import OperationError
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.operations import Channels
from tests.interaction.peers import soon


class Seven(GuestAgent):
    async def run(self, turn: GuestTurn) -> str:
        return "Seven."


@pytest.mark.behaviour("I-24")
async def test_it_joins_by_its_own_token_and_by_no_other() -> None:
    async with Network(people=["ann"], auth="tokens") as net, soon():
        url = await net.serve(page=False)
        for token in (None, "hub_other"):
            with pytest.raises(OperationError, match="does not prove"):
                await Seven("clerk").served(url, token=token)
        assert net.hub is not None
        net.hub.gateway.admission.add_token("clerk", "hub_clerk")
        ann = await net.join("ann")
        serving = asyncio.create_task(Seven("clerk").served(url, token="hub_clerk"))
        async for item in ann.events():
            if isinstance(item, Signal) and item.type == "presence" and "clerk" in str(item):
                break
        await ann.call("send_text_message", to="clerk", text="how much?")
        answer = await anext(
            each.message
            async for each in ann.events()
            if isinstance(each, Event) and each.message.sender_id == "clerk"
        )
        serving.cancel()
        await asyncio.wait({serving})
    assert answer.text == "Seven."


class Tidy(GuestAgent):
    """Makes a channel, and answers with what came of that."""

    async def run(self, turn: GuestTurn) -> str:
        return await turn.call("create_channel", {"name": "tidy"})


@pytest.mark.behaviour("I-24")
async def test_a_call_that_needs_a_persons_word_is_refused_and_its_model_is_told_so() -> None:
    config, tidy = (
        AgentConfig(permission_mode="ask"),
        Tidy("clerk", network_tools=["create_channel"]),
    )
    async with Network(people=["ann"]) as net, soon():
        ann = await net.join("ann")
        transport = WebSocketTransport(await net.serve(page=False))
        async with Client(transport, "clerk", "agent", turns=True) as clerk:
            serving = asyncio.create_task(run_python_agent(tidy, clerk, config))
            await ann.call("send_text_message", to="clerk", text="tidy up")
            answer = await anext(
                each.message
                async for each in ann.events()
                if isinstance(each, Event) and each.message.sender_id == "clerk"
            )
            serving.cancel()
            await asyncio.wait({serving})
        assert "needs_approval" in answer.text
        assert Channels.model_validate(await ann.call("list_channels")).channels == ()


@pytest.mark.behaviour("I-24")
async def test_a_thread_of_a_framework_ends_with_what_it_tells_after_its_turn() -> None:
    told, ends = asyncio.Event(), list[str]()

    async def tell() -> str:
        told.set()
        await asyncio.get_running_loop().create_future()
        return "never"

    async def work() -> None:
        async with WorkerThreads() as threads:

            def blocking() -> None:
                try:
                    threads.wait(tell())
                except SystemExit:
                    ends.append("first")
                try:
                    threads.wait(tell())
                except SystemExit:
                    ends.append("second")
                    over.set()

            await threads.run(blocking)

    loop = asyncio.get_running_loop()
    over = _FromThread(loop)
    async with soon():
        turn = asyncio.create_task(work())
        await told.wait()
        turn.cancel()
        await asyncio.wait({turn})
        await over.wait()
    assert ends == ["first", "second"]


@pytest.mark.behaviour("I-24")
def test_a_thread_that_outlives_the_program_of_its_turn_ends_with_what_it_tells() -> None:
    began, released, ended = threading.Event(), threading.Event(), Future[str]()

    async def tell() -> str:
        return "never"

    async def work() -> None:
        async with WorkerThreads() as threads:

            def late() -> None:
                began.set()
                released.wait()
                try:
                    threads.wait(tell())
                except SystemExit:
                    ended.set_result("quietly")

            running = asyncio.create_task(threads.run(late))
            await asyncio.to_thread(began.wait)
            running.cancel()

    asyncio.run(work())
    released.set()
    assert ended.result(10) == "quietly"


class _FromThread:
    """An event that a thread sets."""

    def __init__(self, loop: asyncio.AbstractEventLoop):
        self._loop, self._event = loop, asyncio.Event()

    def set(self) -> None:
        self._loop.call_soon_threadsafe(self._event.set)

    async def wait(self) -> None:
        await self._event.wait()
