"""The common part of adapters for other frameworks, without any framework."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future

import pytest

from hubbub import Network, NoAnswer
from hubbub.adapters import guest
from hubbub.adapters.guest import GuestAgent, GuestTurn, WorkerThreads
from hubbub.agents.launch import run_python_agent
from hubbub.agents.models.base import CallRequest
from hubbub.client import Client, WebSocketTransport
from hubbub.config.agents import AgentConfig
from hubbub.errors import OperationError, UserError
from hubbub.protocol.frames import Event, Signal
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Channels
from tests.interaction.peers import soon


class Seven(GuestAgent):
    async def run(self, turn: GuestTurn) -> str:
        return "Seven."


async def answer_of(client: Client, agent: str) -> Message:
    """The next message that the agent sends to the client."""
    return await anext(
        item.message
        async for item in client.events()
        if isinstance(item, Event) and item.message.sender_id == agent
    )


@pytest.mark.behaviour("I-24")
async def test_a_guest_agent_can_join_only_with_its_own_token() -> None:
    async with Network(people=["ann"], auth="tokens") as net, soon():
        url = await net.serve(page=False)
        for token, why in ((None, "'clerk' needs a token"), ("hub_other", "does not prove")):
            with pytest.raises(OperationError, match=why):
                await Seven("clerk").served(url, token=token)
        assert net.hub is not None
        net.hub.gateway.admission.add_token("clerk", "hub_clerk")
        ann = await net.join("ann")
        serving = asyncio.create_task(Seven("clerk").served(url, token="hub_clerk"))
        async for item in ann.events():
            if isinstance(item, Signal) and item.type == "presence" and "clerk" in str(item):
                break
        await ann.call("send_text_message", to="clerk", text="how much?")
        answer = await answer_of(ann, "clerk")
        serving.cancel()
        await asyncio.wait({serving})
    assert answer.text == "Seven."


class Waiting(GuestAgent):
    """Ends like a framework that wants a call approved."""

    async def run(self, turn: GuestTurn) -> str:
        await turn.record_answer(calls=[CallRequest("c1", "refund", "{}")])
        return guest.answer_of(turn, None)


async def test_a_run_that_ends_with_an_open_call_is_reported_to_the_asker() -> None:
    async with Network(Waiting("clerk"), people=["ann"]) as net:
        with pytest.raises(NoAnswer, match="the run ended before refund ran"):
            await net.ask("clerk", "refund order 7")


async def test_serve_says_what_to_do_without_a_network_and_in_a_running_loop() -> None:
    with pytest.raises(UserError, match=r"use `await agent.served\(\)`"):
        Seven("clerk").serve()
    with pytest.raises(UserError, match=r"no network answers at ws://127.0.0.1:1 .*`hubbub up`"):
        await Seven("clerk").served("ws://127.0.0.1:1")


class Tidy(GuestAgent):
    """Creates a channel, and answers with the result."""

    async def run(self, turn: GuestTurn) -> str:
        return await turn.call("create_channel", {"name": "tidy"})


@pytest.mark.behaviour("I-24")
async def test_a_call_that_needs_approval_is_refused_with_an_error_for_the_model() -> None:
    config = AgentConfig(permission_mode="ask")
    tidy = Tidy("clerk", network_tools=["create_channel"])
    async with Network(people=["ann"]) as net, soon():
        ann = await net.join("ann")
        transport = WebSocketTransport(await net.serve(page=False))
        async with Client(transport, "clerk", "agent", turns=True) as clerk:
            serving = asyncio.create_task(run_python_agent(tidy, clerk, config))
            await ann.call("send_text_message", to="clerk", text="tidy up")
            answer = await answer_of(ann, "clerk")
            serving.cancel()
            await asyncio.wait({serving})
        assert "needs_approval" in answer.text
        assert Channels.model_validate(await ann.call("list_channels")).channels == ()


@pytest.mark.behaviour("I-24")
async def test_each_wait_of_a_worker_thread_exits_after_its_turn_was_cancelled() -> None:
    waiting, exits = asyncio.Event(), Future[list[str]]()

    async def block() -> object:
        waiting.set()
        return await asyncio.get_running_loop().create_future()

    async def work() -> None:
        async with WorkerThreads() as threads:

            def blocking() -> None:
                caught = []
                for wait in ("first", "second"):
                    try:
                        threads.wait(block())
                    except SystemExit:
                        caught.append(wait)
                exits.set_result(caught)

            await threads.run(blocking)

    async with soon():
        turn = asyncio.create_task(work())
        await waiting.wait()
        turn.cancel()
        await asyncio.wait({turn})
        assert await asyncio.wrap_future(exits) == ["first", "second"]


@pytest.mark.behaviour("I-24")
def test_a_worker_thread_that_outlives_the_event_loop_exits_at_its_next_wait() -> None:
    began, released, ended = threading.Event(), threading.Event(), Future[str]()

    async def never() -> str:
        return "never"

    async def work() -> None:
        async with WorkerThreads() as threads:

            def late() -> None:
                began.set()
                released.wait()
                try:
                    threads.wait(never())
                except SystemExit:
                    ended.set_result("exited")

            running = asyncio.create_task(threads.run(late))
            await asyncio.to_thread(began.wait)
            running.cancel()

    asyncio.run(work())
    released.set()
    assert ended.result(10) == "exited"
