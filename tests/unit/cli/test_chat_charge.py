"""A person in charge at the chat: a scripted person, the real client, the real hub."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from hubbub.client import Client
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.unit.cli.chatroom import DEADLINE_S, Chat, chatting, town

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
    chat.ann.types("/dm calculator dig")
    start = await works(agent)
    await chat.ann.status_says("calculator is thinking")
    return start


@pytest.mark.behaviour("H-129")
async def test_turns_are_stopped_with_one_word_where_one_runs_and_by_name_where_several_do(
    network: LocalNetwork, agent: Client
) -> None:
    two = await network.join("writer", turns=True)
    async with chatting(network, patient=True) as chat:
        start = await at_work(chat, agent)
        chat.ann.types("/stop")
        await chat.ann.sees(f"ann has stopped {start.id} (1 turn ended)")
        chat.ann.types("/stop", "/open #general", "@calculator @writer go")
        await chat.ann.sees("no turn in this thread runs")
        starts = [await works(agent), await works(two)]
        await chat.ann.status_says("calculator is thinking")
        await chat.ann.status_says("writer is thinking")
        chat.ann.types("/stop")
        line = await chat.ann.sees("several turns in this thread run: ")
        assert all(start.id in line for start in starts)
        chat.ann.types("/stop turn writer")
        await chat.ann.sees(f"ann has stopped {starts[1].id} (1 turn ended)")


async def test_a_stop_holds_until_it_is_resumed_and_those_of_others_are_told(
    network: LocalNetwork, agent: Client, bob: Client
) -> None:
    async with chatting(network, patient=True) as chat:
        chat.ann.types("/stop agent calculator too loud")
        await chat.ann.sees("ann has stopped calculator: too loud; /resume agent calculator lets")
        await chat.ann.status_says("1 stopped")
        chat.ann.types("/dm calculator hello?", "/stops", "/resume")
        await chat.ann.sees("calculator was not woken: a person has stopped")
        await chat.ann.sees("ann has stopped calculator: too loud")
        await chat.ann.sees("calculator may go on")
        await chat.ann.status_is_quiet()
        chat.ann.types("/resume")
        await chat.ann.sees("nothing is stopped")
        await bob.call("stop", scope="agent", target="calculator", reason="fire")
        await chat.ann.sees("bob has stopped calculator: fire; /resume agent calculator lets it")
        await chat.ann.status_says("1 stopped")
        await bob.call("resume", scope="agent", target="calculator")
        await chat.ann.sees("calculator may go on")


@pytest.mark.behaviour("H-128")
async def test_approvals_come_with_what_to_type_and_are_given_denied_or_decided_by_others(
    network: LocalNetwork, agent: Client, bob: Client
) -> None:
    async with chatting(network) as chat:
        start = await at_work(chat, agent)
        id = await asks(agent, start.id)
        await chat.ann.sees("calculator asks to run delete_file in @calculator")
        await chat.ann.sees('   path: "a.txt"')
        await chat.ann.sees(f"   /approve {id} or /deny {id} <reason>; no word by ")
        await chat.ann.status_says("1 to approve")
        chat.ann.types("/approvals")
        await chat.ann.sees("calculator asks to run delete_file")
        chat.ann.types(f'/approve {id} {{"path": "b.txt"}}')
        line = f"delete_file of calculator ({id}) is approved by ann with other arguments"
        await chat.ann.sees(line)
        told = await agent.call("read_approval", id=id)
        assert isinstance(told, dict)
        assert (told["state"], told["final"]) == ("approved", {"path": "b.txt"})
        chat.ann.types("/approvals")
        await chat.ann.sees("nothing waits for an approval")
        assert not any("is approved" in line for line in chat.ann.shown)
        id = await asks(agent, start.id, "1.c2")
        await chat.ann.sees("asks to run delete_file")
        chat.ann.types("/deny a0a0 no", f"/deny {id} not that one")
        await chat.ann.sees("no approval 'a0a0' waits")
        await chat.ann.sees(f"({id}) is denied by ann: not that one")
        id = await asks(agent, start.id, "1.c3")
        await chat.ann.sees("asks to run delete_file")
        await bob.call("deny", id=id, reason="no")
        await chat.ann.sees(f"({id}) is denied by bob: no")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees(f"nothing to decide: delete_file of calculator ({id}) is denied by bob")


@pytest.mark.behaviour("H-130")
async def test_one_speaks_for_an_agent_and_hears_what_reaches_it(
    network: LocalNetwork, agent: Client, bob: Client
) -> None:
    async with chatting(network, patient=True) as chat:
        await chat.ann.sees("── #general ──")
        chat.ann.types("/takeover calculator 5m")
        await chat.ann.sees("you speak for calculator until ")
        await chat.ann.status_says("you speak for calculator")
        chat.ann.types("/as calculator I am here")
        await chat.ann.sees("said as calculator in #general")
        await bob.call("send_text_message", to="calculator", text="2+2?")
        await chat.ann.sees("[calculator hears @bob,@calculator] bob: 2+2?")
        await chat.ann.sees("to answer there: /open dm.bob.calculator")
        chat.ann.types("/open dm.bob.calculator", "/as calculator it is 4")
        await chat.ann.sees("bob: 2+2?")
        await chat.ann.sees("said as calculator in @bob,@calculator: it is 4")
        chat.ann.types("in my own name", "/handback", "/handback", "/open #general")
        for told in (
            "; you speak there by",
            "calculator speaks for itself again",
            "you speak for no agent",
            "[ann as calculator]: I am here",
        ):
            await chat.ann.sees(told)


async def test_stories_sums_and_trees_are_told_in_the_chat(
    network: LocalNetwork, agent: Client
) -> None:
    async with chatting(network, patient=True) as chat:
        start = await at_work(chat, agent)
        await agent.call("send_text_message", to="ann", text="done", cause=start.id)
        await agent.call("end_turn", end=TurnEnd(id=start.id, outcome="finished"))
        await chat.ann.sees("calculator: done")
        chat.ann.types("/interaction", "/why m1", "/why m1 calculator", "/spending calculator")
        chat.ann.types("/requests", "/breaker", "/interrupt stop that")
        for told in (
            "interaction i1  opened by ann, 1 turn",
            "▸ calculator  finished",
            "m2 calculator → ann  done",
            "wakes  ",
            "interaction i1, hop 0",
            "it answered",
            "m1 woke calculator (direct)",
            "together: 1 turn, 0 tokens",
            "no requests",
            "nothing is latched",
            "ann [interrupt]: stop that",
        ):
            await chat.ann.sees(told)
        assert (await woken(agent)).message.mode == "interrupt"


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
        await chat.ann.sees("connected again")
        await chat.ann.status_says("1 to approve")
        await chat.ann.status_says("bob speaks for writer")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees("is approved by ann")
        assert not any("asks to run" in line for line in chat.ann.shown)
