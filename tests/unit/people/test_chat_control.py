"""A person in charge at the chat: a scripted person, the real client, the real hub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.client import Client
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.unit.people.chatroom import DEADLINE_S, Chat, chatting, town

ASKED = {"path": "a.txt"}


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with town() as network:
        yield network


@pytest.fixture
async def agent(network: LocalNetwork) -> Client:
    return await network.join("calculator", turns=True)


@pytest.fixture
async def bob(network: LocalNetwork) -> Client:
    return await network.join("bob", "human")


async def woken(agent: Client) -> Event:
    """The next message that wakes the agent."""
    async with asyncio.timeout(DEADLINE_S):
        async for item in agent.events():
            if isinstance(item, Event):
                await agent.ack(item.seq)
                if item.wake is not None:
                    return item
    raise AssertionError


async def works(agent: Client) -> TurnStart:
    """The agent begins a turn with the next message that wakes it, and says so."""
    event = await woken(agent)
    assert event.wake is not None
    thread = event.message.thread_id
    start = TurnStart(id=event.wake.turn, thread_id=thread, messages=(event.message.id,))
    await agent.call("begin_turn", start=start)
    await agent.signal("activity", thread, {"state": "thinking", "turn": start.id, "step": 1})
    return start


async def asks(agent: Client, turn: str, call: str = "1.c1") -> str:
    """The agent asks whether a tool may run; the approval's id."""
    found = await agent.call(
        "request_approval", turn=turn, call=call, tool="delete_file", arguments=ASKED
    )
    assert isinstance(found, dict)
    return str(found["id"])


async def at_work(chat: Chat, agent: Client) -> TurnStart:
    """Ann has asked the calculator for something, and sees it work."""
    await chat.ann.plays("/dm calculator dig")
    start = await works(agent)
    await chat.ann.status_says("calculator is thinking")
    return start


@pytest.mark.behaviour("H-129", "H-134")
async def test_turns_are_stopped_with_one_word_where_one_runs_and_by_name_where_several_do(
    network: LocalNetwork, agent: Client, snapshot: SnapshotAssertion
) -> None:
    two = await network.join("writer", turns=True)
    async with chatting(network, patient=True) as chat:
        await at_work(chat, agent)
        await chat.ann.plays("/stop", "/stop", "/open #general", "@calculator @writer go")
        await works(agent)
        await works(two)
        await chat.ann.status_says("calculator is thinking")
        await chat.ann.status_says("writer is thinking")
        await chat.ann.plays("/stop", "/stop turn writer")
    assert chat.ann.transcript == snapshot


async def test_a_stop_holds_until_it_is_resumed_and_those_of_others_are_told(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        await chat.ann.plays("/stop agent calculator too loud")
        await chat.ann.status_says("1 stopped")
        await chat.ann.plays("/dm calculator hello?", "/stops", "/resume")
        await chat.ann.status_is_quiet()
        await chat.ann.plays("/resume")
        await bob.call("stop", scope="agent", target="calculator", reason="fire")
        await chat.ann.sees("bob stopped calculator")
        await chat.ann.status_says("1 stopped")
        await bob.call("resume", scope="agent", target="calculator")
        await chat.ann.status_is_quiet()
    assert chat.ann.transcript == snapshot


@pytest.mark.behaviour("H-128", "H-133")
async def test_approvals_come_with_what_to_type_and_are_given_denied_or_decided_by_others(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        start = await at_work(chat, agent)
        ids = [await asks(agent, start.id)]
        await chat.ann.sees("asks to run delete_file in @calculator")
        await chat.ann.status_says("1 to approve")
        await chat.ann.plays("/approvals", f'/approve {ids[0]} {{"path": "b.txt"}}', "/approvals")
        told = await agent.call("read_approval", id=ids[0])
        assert isinstance(told, dict)
        assert (told["state"], told["final"]) == ("approved", {"path": "b.txt"})
        await chat.ann.sees("there are no pending approvals")
        ids.append(await asks(agent, start.id, "1.c2"))
        await chat.ann.sees("asks to run delete_file in @calculator")
        await chat.ann.plays("/deny a0a0 no", f"/deny {ids[1]} not that one")
        ids.append(await asks(agent, start.id, "1.c3"))
        await chat.ann.sees("   /approve")
        await bob.call("deny", id=ids[2], reason="no")
        await chat.ann.sees("was denied by bob")
        await chat.ann.plays(f"/approve {ids[2]}")
    transcript = chat.ann.transcript
    for n, id in enumerate(ids, 1):
        transcript = transcript.replace(id, f"<a{n}>")
    assert transcript == snapshot


@pytest.mark.behaviour("H-130", "H-135")
async def test_one_speaks_for_an_agent_and_hears_what_reaches_it(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        await chat.ann.plays("/takeover calculator 5m", "/as calculator I am here")
        await chat.ann.status_says("you speak for calculator")
        await bob.call("send_text_message", to="calculator", text="2+2?")
        await chat.ann.sees("to answer there: ")
        await chat.ann.plays("/open dm.bob.calculator", "/as calculator it is 4")
        await chat.ann.plays(
            "in my own name", "/agents release", "/agents release", "/open #general"
        )
    assert chat.ann.transcript == snapshot


async def test_stories_sums_and_trees_are_told_in_the_chat(
    network: LocalNetwork, agent: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        start = await at_work(chat, agent)
        await agent.call("send_text_message", to="ann", text="done", cause=start.id)
        await agent.call("end_turn", end=TurnEnd(id=start.id, outcome="finished"))
        await chat.ann.sees("calculator: done")
        await chat.ann.plays("/interaction", "/why m1", "/why m1 calculator")
        await chat.ann.plays("/spending --agent calculator", "/requests", "/interrupt stop it")
        assert (await woken(agent)).message.mode == "interrupt"
    assert chat.ann.transcript == snapshot


async def test_who_joins_is_told_what_waits_and_what_is_stopped(
    network: LocalNetwork, agent: Client, bob: Client
) -> None:
    await network.join("writer")
    await bob.call("send_text_message", to="calculator", text="dig")
    id = await asks(agent, (await works(agent)).id)
    await bob.call("stop", scope="agent", target="writer")
    await bob.call("take_over", agent="writer", minutes=1)
    async with chatting(network) as chat:
        await chat.ann.sees("calculator asks to run delete_file in @bob,@calculator")
        for told in ("1 to approve", "1 stopped", "bob speaks for writer"):
            await chat.ann.status_says(told)
        chat.cut()
        await chat.ann.sees("reconnected")
        await chat.ann.status_says("1 to approve")
        await chat.ann.status_says("bob speaks for writer")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees("was approved by ann")
        assert not any("asks to run" in line for line in chat.ann.shown)
