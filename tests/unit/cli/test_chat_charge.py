"""A person in charge at the chat: a scripted person, the real client, the real hub."""

from __future__ import annotations

import asyncio

import pytest

from hubbub.client import Client
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.unit.cli.test_chat_conversation import (
    DEADLINE_S,
    Chat,
    chatting,
    network,
)

__all__ = ["network"]
ASKED = {"path": "a.txt"}


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


async def asks(agent: Client, turn: str) -> str:
    """The agent asks whether a tool may run; the approval's id."""
    found = await agent.call(
        "request_approval", turn=turn, call="1.c1", tool="delete_file", arguments=ASKED
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
async def test_the_turn_that_runs_here_is_stopped_with_one_word(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        start = await at_work(chat, agent)
        chat.ann.types("/stop")
        await chat.ann.sees(f"ann has stopped {start.id} (1 turn ended)")
        chat.ann.types("/stop")
        await chat.ann.sees("no turn in this thread runs")


async def test_where_several_turns_run_one_is_named(network: LocalNetwork) -> None:
    one = await network.join("calculator", turns=True)
    two = await network.join("writer", turns=True)
    async with chatting(network) as chat:
        chat.ann.types("@calculator @writer go")
        starts = [await works(one), await works(two)]
        await chat.ann.status_says("calculator is thinking")
        await chat.ann.status_says("writer is thinking")
        chat.ann.types("/stop")
        line = await chat.ann.sees("several turns in this thread run: ")
        assert all(start.id in line for start in starts)
        chat.ann.types("/stop turn writer")
        await chat.ann.sees("ann has stopped writer-m1 (1 turn ended)")


async def test_a_stop_holds_until_it_is_resumed(network: LocalNetwork) -> None:
    await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        chat.ann.types("/stop agent calculator too loud")
        await chat.ann.sees("ann has stopped calculator: too loud; /resume agent calculator lets")
        await chat.ann.status_says("1 stopped")
        chat.ann.types("/dm calculator hello?")
        await chat.ann.sees("calculator was not woken: a person has stopped")
        chat.ann.types("/stops")
        await chat.ann.sees("ann has stopped calculator: too loud")
        chat.ann.types("/resume")
        await chat.ann.sees("calculator may go on")
        await chat.ann.status_is_quiet()
        chat.ann.types("/resume")
        await chat.ann.sees("nothing is stopped")


async def test_what_another_person_stops_is_told(network: LocalNetwork) -> None:
    await network.join("calculator")
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        await bob.call("stop", scope="all", reason="fire")
        await chat.ann.sees("bob has stopped everything: fire; /resume all lets it go on")
        await chat.ann.status_says("everything is stopped")
        await bob.call("resume", scope="all")
        await chat.ann.sees("everything may go on")


@pytest.mark.behaviour("H-128")
async def test_an_approval_comes_with_what_to_type_and_is_given(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
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


async def test_an_approval_is_denied_with_a_reason(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        start = await at_work(chat, agent)
        id = await asks(agent, start.id)
        await chat.ann.sees("asks to run delete_file")
        chat.ann.types("/deny a0a0 no", f"/deny {id} not that one")
        await chat.ann.sees("no approval 'a0a0' waits")
        await chat.ann.sees(f"({id}) is denied by ann: not that one")


@pytest.mark.behaviour("H-130")
async def test_one_speaks_for_an_agent_and_hears_what_reaches_it(network: LocalNetwork) -> None:
    await network.join("calculator", turns=True)
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
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
        chat.ann.types("in my own name")
        await chat.ann.sees("; you speak there by")
        chat.ann.types("/handback")
        await chat.ann.sees("calculator speaks for itself again")
        chat.ann.types("/handback")
        await chat.ann.sees("you speak for no agent")


async def test_what_one_says_as_an_agent_is_marked_for_everybody(network: LocalNetwork) -> None:
    await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        await chat.ann.sees("── #general ──")
        chat.ann.types("/takeover calculator", "/as calculator I am here", "/open broadcast")
        await chat.ann.sees("── broadcast ──")
        chat.ann.types("/open #general")
        await chat.ann.sees("[ann as calculator]: I am here")


async def test_stories_sums_and_trees_are_told_in_the_chat(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        start = await at_work(chat, agent)
        await agent.call("send_text_message", to="ann", text="done", cause=start.id)
        await agent.call("end_turn", end=TurnEnd(id=start.id, outcome="finished"))
        await chat.ann.sees("calculator: done")
        chat.ann.types("/interaction")
        await chat.ann.sees("interaction i1  opened by ann, 1 turn")
        await chat.ann.sees("▸ calculator  finished")
        await chat.ann.sees("m2 calculator → ann  done")
        await chat.ann.sees("wakes  ")
        chat.ann.types("/why m1")
        await chat.ann.sees("interaction i1, hop 0")
        await chat.ann.sees("it answered")
        chat.ann.types("/why m1 calculator")
        await chat.ann.sees("m1 woke calculator (direct)")
        chat.ann.types("/spending calculator")
        await chat.ann.sees("together: 1 turn, 0 tokens")
        chat.ann.types("/requests", "/breaker")
        await chat.ann.sees("no requests")
        await chat.ann.sees("nothing is latched")


async def test_a_wish_for_the_turn_that_runs_goes_with_the_message(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    async with chatting(network) as chat:
        chat.ann.types("/dm calculator", "/interrupt stop that")
        await chat.ann.sees("ann [interrupt]: stop that")
        assert (await woken(agent)).message.mode == "interrupt"


async def test_who_joins_is_told_what_waits_and_what_is_stopped(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    await network.join("writer")
    bob = await network.join("bob", "human")
    await bob.call("send_text_message", to="calculator", text="dig")
    id = await asks(agent, (await works(agent)).id)
    await bob.call("stop", scope="agent", target="writer")
    await bob.call("take_over", agent="writer", minutes=1)
    async with chatting(network) as chat:
        await chat.ann.sees("calculator asks to run delete_file in @bob,@calculator")
        await chat.ann.status_says("1 to approve")
        await chat.ann.status_says("1 stopped")
        await chat.ann.status_says("bob speaks for writer")
        chat.cut()
        await chat.ann.sees("connected again")
        await chat.ann.status_says("1 to approve")
        await chat.ann.status_says("bob speaks for writer")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees("is approved by ann")
        assert not any("asks to run" in line for line in chat.ann.shown)


async def test_what_was_decided_meanwhile_is_refused_with_a_word(network: LocalNetwork) -> None:
    agent = await network.join("calculator", turns=True)
    bob = await network.join("bob", "human")
    async with chatting(network) as chat:
        start = await at_work(chat, agent)
        id = await asks(agent, start.id)
        await chat.ann.sees("asks to run delete_file")
        await bob.call("deny", id=id, reason="no")
        await chat.ann.sees(f"({id}) is denied by bob: no")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees(f"nothing to decide: delete_file of calculator ({id}) is denied by bob")
