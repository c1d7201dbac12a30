"""Control of agents from the chat, with the real client and hub."""

from __future__ import annotations

import asyncio

import pytest
from syrupy.assertion import SnapshotAssertion

from hubbub.client import Client
from hubbub.protocol.frames import Event
from hubbub.protocol.turns import TurnEnd, TurnStart
from hubbub.testing.network import LocalNetwork
from tests.unit.people.chatroom import DEADLINE_S, Chat, chatting


@pytest.fixture
async def agent(network: LocalNetwork) -> Client:
    return await network.join("calculator", turns=True)


async def next_wake(agent: Client) -> Event:
    """The next message that wakes the agent."""
    async with asyncio.timeout(DEADLINE_S):
        async for item in agent.events():
            if isinstance(item, Event):
                await agent.ack(item.seq)
                if item.wake is not None:
                    return item
    raise AssertionError


async def begin_turn(agent: Client) -> TurnStart:
    """Begins a turn with the next message that wakes the agent, and signals it."""
    event = await next_wake(agent)
    assert event.wake is not None
    thread = event.message.thread_id
    start = TurnStart(id=event.wake.turn, thread_id=thread, messages=(event.message.id,))
    await agent.call("begin_turn", start=start)
    await agent.signal("activity", thread, {"state": "thinking", "turn": start.id, "step": 1})
    return start


async def request_approval(agent: Client, turn: str, call: str = "1.c1") -> str:
    """Requests an approval to run a tool, and returns its id."""
    arguments = {"path": "a.txt"}
    requested = await agent.call(
        "request_approval", turn=turn, call=call, tool="delete_file", arguments=arguments
    )
    assert isinstance(requested, dict)
    return str(requested["id"])


async def start_work(chat: Chat, agent: Client) -> TurnStart:
    """Ann asks the calculator and sees it work."""
    await chat.ann.enters("/dm calculator dig")
    start = await begin_turn(agent)
    await chat.ann.status_shows("calculator is thinking")
    return start


@pytest.mark.behaviour("H-129", "H-134")
async def test_stop_needs_a_name_only_when_several_turns_run(
    network: LocalNetwork, agent: Client, snapshot: SnapshotAssertion
) -> None:
    two = await network.join("writer", turns=True)
    async with chatting(network, patient=True) as chat:
        await start_work(chat, agent)
        await chat.ann.enters("/stop", "/stop", "/open #general", "@calculator @writer go")
        await begin_turn(agent)
        await begin_turn(two)
        await chat.ann.status_shows("calculator is thinking")
        await chat.ann.status_shows("writer is thinking")
        await chat.ann.enters("/stop", "/stop turn writer")
    assert chat.ann.transcript == snapshot


async def test_a_stop_lasts_until_resumed_and_stops_by_others_are_shown(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        await chat.ann.enters("/stop agent calculator too loud")
        await chat.ann.status_shows("1 stopped")
        await chat.ann.enters("/dm calculator hello?", "/stops", "/resume")
        await chat.ann.status_is_quiet()
        await chat.ann.enters("/resume")
        await bob.call("stop", scope="agent", target="calculator", reason="fire")
        await chat.ann.sees("bob stopped calculator")
        await chat.ann.status_shows("1 stopped")
        await bob.call("resume", scope="agent", target="calculator")
        await chat.ann.status_is_quiet()
    assert chat.ann.transcript == snapshot


@pytest.mark.behaviour("H-128", "H-133")
async def test_approvals_are_shown_with_commands_and_decided_by_ann_or_others(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        start = await start_work(chat, agent)
        ids = [await request_approval(agent, start.id)]
        await chat.ann.sees("asks to run delete_file in @calculator")
        await chat.ann.status_shows("1 to approve")
        await chat.ann.enters("/approvals", f'/approve {ids[0]} {{"path": "b.txt"}}', "/approvals")
        approval = await agent.call("read_approval", id=ids[0])
        assert isinstance(approval, dict)
        assert (approval["state"], approval["final"]) == ("approved", {"path": "b.txt"})
        await chat.ann.sees("there are no pending approvals")
        ids.append(await request_approval(agent, start.id, "1.c2"))
        await chat.ann.sees("asks to run delete_file in @calculator")
        await chat.ann.enters("/deny a0a0 no", f"/deny {ids[1]} not that one")
        ids.append(await request_approval(agent, start.id, "1.c3"))
        await chat.ann.sees("   /approve")
        await bob.call("deny", id=ids[2], reason="no")
        await chat.ann.sees("was denied by bob")
        await chat.ann.enters(f"/approve {ids[2]}")
    transcript = chat.ann.transcript
    for n, id in enumerate(ids, 1):
        transcript = transcript.replace(id, f"<a{n}>")
    assert transcript == snapshot


@pytest.mark.behaviour("H-130", "H-135")
async def test_a_takeover_lets_ann_speak_for_an_agent_and_see_its_messages(
    network: LocalNetwork, agent: Client, bob: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        await chat.ann.enters("/takeover calculator 5m", "/as calculator I am here")
        await chat.ann.status_shows("you speak for calculator")
        await bob.call("send_text_message", to="calculator", text="2+2?")
        await chat.ann.sees("to answer there: ")
        await chat.ann.enters("/open dm.bob.calculator", "/as calculator it is 4")
        await chat.ann.enters(
            "in my own name", "/agents release", "/agents release", "/open #general"
        )
    said, transcript = "<time> <m> [ann as calculator]: I am here\n", chat.ann.transcript
    assert said in transcript
    # The answer to the command can come before or after the message itself.
    assert transcript.replace(said, "", 1) == snapshot


async def test_interactions_wake_reasons_and_spending_are_shown(
    network: LocalNetwork, agent: Client, snapshot: SnapshotAssertion
) -> None:
    async with chatting(network, patient=True) as chat:
        start = await start_work(chat, agent)
        await agent.call("send_text_message", to="ann", text="done", cause=start.id)
        await agent.call("end_turn", end=TurnEnd(id=start.id, outcome="finished"))
        await chat.ann.sees("calculator: done")
        await chat.ann.enters("/interaction", "/why m1", "/why m1 calculator")
        await chat.ann.enters("/spending --agent calculator", "/requests", "/interrupt stop it")
        assert (await next_wake(agent)).message.mode == "interrupt"
    assert chat.ann.transcript == snapshot


async def test_a_person_who_joins_sees_open_approvals_stops_and_takeovers(
    network: LocalNetwork, agent: Client, bob: Client
) -> None:
    await network.join("writer")
    await bob.call("send_text_message", to="calculator", text="dig")
    id = await request_approval(agent, (await begin_turn(agent)).id)
    await bob.call("stop", scope="agent", target="writer")
    await bob.call("take_over", agent="writer", minutes=1)
    async with chatting(network) as chat:
        await chat.ann.sees("calculator asks to run delete_file in dm.bob.calculator")
        for notice in ("1 to approve", "1 stopped", "bob speaks for writer"):
            await chat.ann.status_shows(notice)
        chat.cut()
        await chat.ann.sees("reconnected")
        await chat.ann.status_shows("1 to approve")
        await chat.ann.status_shows("bob speaks for writer")
        chat.ann.types(f"/approve {id}")
        await chat.ann.sees("was approved by ann")
        assert not any("asks to run" in line for line in chat.ann.shown)
