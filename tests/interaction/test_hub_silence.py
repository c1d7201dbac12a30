"""The notice to a person whose message woke agents, none of which answered."""

from __future__ import annotations

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stop_harness import begin, let_in
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("W-14")
NETWORK = config(channels={"desk": {"members": "all"}})

AGENTS = ("calc", "libby")


class Room:
    """Ann, and two agents that her broadcasts wake."""

    def __init__(self, ann: Peer, agents: dict[str, Peer]):
        self.ann, self.agents = ann, agents
        self.turns: dict[str, list[dict[str, Any]]] = {name: [] for name in agents}

    @classmethod
    async def of(cls, network: Network) -> Self:
        agents = {name: await network.join(name, "agent", turns=True) for name in AGENTS}
        return cls(await network.join("ann"), agents)

    async def broadcast(self, text: str = "hello") -> Any:
        sent = await self.ann.call("broadcast_text_message", text=text)
        for name, agent in self.agents.items():
            event = await agent.event()
            assert event["message"]["id"] == sent["id"]
            self.turns[name].append(event)
        return sent

    async def begin(self, name: str) -> str:
        """Begin a turn of the agent that covers all its wakes."""
        events, self.turns[name] = self.turns[name], []
        turn: str = events[0]["wake"]["turn"]
        messages = [event["message"]["id"] for event in events]
        start = {"id": turn, "thread_id": "broadcast", "messages": messages}
        await self.agents[name].call("begin_turn", start=start)
        return turn

    async def end(self, name: str, turn: str, outcome: str = "finished", reason: str = "") -> None:
        end = {"id": turn, "outcome": outcome, "reason": reason}
        await self.agents[name].call("end_turn", end=end)

    async def finish_silently(self, name: str) -> None:
        await self.end(name, await self.begin(name))


async def notices(ann: Peer) -> list[Any]:
    """The hub's messages to her since the last call."""
    return [e["message"] for e in await ann.sync() if e["message"]["sender_kind"] == "system"]


async def test_a_person_is_notified_once_when_no_woken_agent_answers(network: Network) -> None:
    room = await Room.of(network)
    sent = await room.broadcast()
    await room.finish_silently("calc")
    await network.quiet()
    assert await notices(room.ann) == [], "one of them may still answer"
    turn = await room.begin("libby")
    for _ in range(2):  # a repeated end changes nothing
        await room.end("libby", turn, "model_error", "no connection")
    await network.quiet()
    (notice,) = await notices(room.ann)
    assert notice["text_representation"] == (
        "None of the agents woken by this answered: calc and libby. "
        "libby got no answer from its model (`no connection`). "
        "Mention an agent to get an answer, or the reason there is none."
    )
    assert notice["thread_id"] == "broadcast"
    assert notice["mentions"] == ["ann"]
    assert notice["content"]["code"] == "silence"
    assert notice["content"]["agents"] == ["calc", "libby"]
    assert notice["content"]["messages"] == [sent["id"]]
    for agent in room.agents.values():
        assert [event.get("wake") for event in await agent.sync()] == [None]


@pytest.mark.parametrize("outcome", ["model_error", "handler_error"])
async def test_only_owners_read_the_error_text_of_a_failed_turn(
    in_memory: Networks, outcome: str
) -> None:
    humans = {"ann": {"roles": ["owner"]}, "bob": {}}
    file = config(network={"auth": "tokens"}, humans=humans, agents={"calc": {"kind": "python"}})
    error = "http://10.0.0.5/v1 cannot be reached"
    async with in_memory.start(file) as network:
        ann, bob = [await let_in(network, name) for name in ("ann", "bob")]
        calc = await let_in(network, "calc", "agent", turns=True)
        for person in (ann, bob):
            for name, argument in (("send_text_message", "text"), ("delegate", "task")):
                await person.call(name, to="calc", **{argument: "2+2?"})
                turn = await begin(calc)
                await calc.call("end_turn", end={"id": turn, "outcome": outcome, "reason": error})
                await network.quiet()
                (notice, *_) = await notices(person)
                assert (error in str(notice)) == (person is ann)
                assert "()" not in notice["text_representation"]
                await calc.sync()
        record = await ann.call("read_turn", id=turn)
        assert record["end"]["reason"] == error


def has_notice(ann: Peer) -> bool:
    return any(event["message"]["sender_kind"] == "system" for event in ann.events)


async def post_answer(agent: Peer, turn: str) -> None:
    await agent.call("broadcast_text_message", text="here", cause=turn)


async def delegate_greeting(agent: Peer, turn: str) -> None:
    await agent.call("delegate", to="calc", task="greet her", cause=turn)


async def request_approval(agent: Peer, turn: str) -> None:
    await agent.call("request_approval", turn=turn, call="1:c1", tool="wave", arguments={})


@pytest.mark.parametrize("acts", [post_answer, delegate_greeting, request_approval])
async def test_no_notice_is_posted_if_one_of_the_agents_acted(
    network: Network, acts: Callable[[Peer, str], Awaitable[None]]
) -> None:
    room = await Room.of(network)
    await room.broadcast()
    turn = await room.begin("libby")
    await acts(room.agents["libby"], turn)
    await room.end("libby", turn)
    await room.finish_silently("calc")
    await network.quiet()
    assert [n for n in await notices(room.ann) if n["content"]["code"] == "silence"] == []


async def test_a_person_receives_only_the_most_specific_notice(network: Network) -> None:
    room = await Room.of(network)
    await room.broadcast()
    turn = await room.begin("libby")
    await room.ann.call("stop", scope="turn", target=turn)
    await room.finish_silently("calc")
    await network.quiet()
    (stopped,) = await notices(room.ann)
    assert stopped["content"]["code"] == "stopped"
    room.turns["libby"].clear()
    for agent in room.agents.values():
        await agent.sync()
    await room.broadcast("@libby hello")  # which requires a reply
    await room.finish_silently("calc")
    await room.finish_silently("libby")
    await network.quiet()
    (notice,) = await notices(room.ann)
    assert notice["text_representation"] == "libby read this and decided not to answer."
    for agent in room.agents.values():
        await agent.sync()
    await room.broadcast("hello")
    await room.finish_silently("calc")
    last = await room.broadcast("anybody?")
    await room.finish_silently("calc")
    await room.finish_silently("libby")  # one turn for both messages
    await network.quiet()
    (notice,) = await notices(room.ann)
    assert notice["content"]["messages"] == [last["id"]]


async def test_messages_of_agents_or_without_wakes_cause_no_notice(network: Network) -> None:
    room = await Room.of(network)
    await room.ann.call("post_to_channel", channel="desk", text="nobody in particular")
    sent = await room.agents["calc"].call("broadcast_text_message", text="@libby hello")
    observed, woken = await room.agents["libby"].sync()
    assert (observed.get("wake"), woken["message"]["id"]) == (None, sent["id"])
    room.turns["libby"] = [woken, observed]  # the turn names both
    await room.finish_silently("libby")
    await network.quiet()
    assert await notices(room.ann) == []


async def test_a_notice_lost_in_a_crash_is_posted_once_after_the_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    path = f"sqlite:{tmp_path}/hub.db"
    store = MoodyStore(path)
    async with in_memory.start(store=store) as network:
        room = await Room.of(network)
        await room.broadcast()
        await room.finish_silently("calc")
        turn = await room.begin("libby")
        store.deaf = True  # the end of the turn is the last thing written
        error = await room.agents["libby"].ask("end_turn", end={"id": turn, "outcome": "finished"})
        assert error["code"] == "store_unavailable"
        store.deaf = False
    for _ in range(2):
        async with in_memory.start(store=path) as network:
            ann = await network.join("ann")
            await ann.until(partial(has_notice, ann))
            await network.quiet()
            page = (await ann.call("read_thread", thread="broadcast"))["messages"]
            assert [m["sender_id"] for m in page] == ["ann", "hub"]


# Forwarded questions --------------------------------------------------------------------------

CLERK, BILLING = "calc", "libby"


class Relay(Room):
    """Ann asked one agent, which forwarded her question to another and finished."""

    question: Any = None

    @classmethod
    async def forwarded(cls, network: Network) -> Self:
        room = await cls.of(network)
        room.question = await room.ann.call("send_text_message", to=CLERK, text="what do I owe?")
        turn = await room.begin_woken(CLERK)
        await room.agents[CLERK].call("send_text_message", to=BILLING, text="?", cause=turn)
        await room.end(CLERK, turn)
        return room

    async def begin_woken(self, name: str) -> str:
        """Begin a turn for the agent's latest wakes."""
        self.turns[name] = [event for event in await self.agents[name].sync() if event.get("wake")]
        return await self.begin(name)

    async def fail(self, name: str) -> str:
        turn = await self.begin_woken(name)
        await self.end(name, turn, "model_error", "no connection")
        return turn


async def silence_notices(room: Relay, network: Network) -> list[Any]:
    await network.quiet()
    return [n for n in await notices(room.ann) if n["content"]["code"] == "silence"]


async def test_a_person_is_notified_when_a_forwarded_question_fails(network: Network) -> None:
    room = await Relay.forwarded(network)
    assert await silence_notices(room, network) == [], "the other agent may still answer"
    failed = await room.fail(BILLING)
    (notice,) = await silence_notices(room, network)
    assert notice["text_representation"] == (
        "None of the agents woken by this answered: calc and libby. "
        "libby got no answer from its model (`no connection`)."
    )
    assert notice["thread_id"] == room.question["thread_id"]
    assert notice["content"]["messages"] == [room.question["id"]]
    assert notice["content"]["reasons"] == {BILLING: "no connection"}
    assert notice["content"]["turns"] == {BILLING: failed}
    assert notice["mentions"] == ["ann"]


async def test_a_forwarded_question_is_followed_although_earlier_messages_are_damaged(
    in_memory: Networks, tmp_path: Path
) -> None:
    url = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(NETWORK, store=url) as network:
        ann, _bob = await network.join("ann"), await network.join("bob")
        for number in range(1, 6):
            await ann.say("bob", f"number {number}")
    with closing(sqlite3.connect(tmp_path / "hub.db", isolation_level=None)) as db:
        for damaged in (1, 3, 4):
            changed = f"replace(body, 'number {damaged}', 'number 9')"
            db.execute(f"UPDATE message SET body = {changed}")
    async with in_memory.start(NETWORK, store=url) as network:
        room = await Relay.forwarded(network)
        await room.fail(BILLING)
        (notice,) = await silence_notices(room, network)
        assert notice["content"]["messages"] == [room.question["id"]]


async def answer_the_person(room: Relay) -> None:
    turn = await room.begin_woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to="ann", text="9", cause=turn)
    await room.end(BILLING, turn)


async def ask_another_person(room: Relay) -> None:
    turn = await room.begin_woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to="bob", text="?", cause=turn)
    await room.end(BILLING, turn)


async def answer_through_the_clerk(room: Relay) -> None:
    turn = await room.begin_woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to=CLERK, text="9", cause=turn)
    await room.end(BILLING, turn)
    turn = await room.begin_woken(CLERK)
    await room.agents[CLERK].call("send_text_message", to="ann", text="9", cause=turn)
    await room.end(CLERK, turn)


@pytest.mark.parametrize("acts", [answer_the_person, ask_another_person, answer_through_the_clerk])
async def test_no_notice_is_posted_if_a_forwarded_question_reached_a_person(
    network: Network, acts: Callable[[Relay], Awaitable[None]]
) -> None:
    await network.join("bob")
    room = await Relay.forwarded(network)
    await acts(room)
    assert await silence_notices(room, network) == []


async def test_a_person_is_notified_when_a_request_made_for_them_fails(network: Network) -> None:
    room = await Relay.of(network)
    await room.ann.call("send_text_message", to=CLERK, text="what do I owe?")
    turn = await room.begin_woken(CLERK)
    await room.agents[CLERK].call("delegate", to=BILLING, task="look it up", cause=turn)
    await room.end(CLERK, turn)
    await room.fail(BILLING)  # the failure wakes the clerk
    assert await silence_notices(room, network) == [], "the clerk may still answer"
    await room.end(CLERK, await room.begin_woken(CLERK))
    (notice,) = await silence_notices(room, network)
    assert notice["content"]["outcomes"] == {CLERK: "finished", BILLING: "model_error"}


async def test_a_person_is_notified_when_a_forwarded_question_is_stopped(network: Network) -> None:
    owner = await network.join("root", owner=True)
    room = await Relay.forwarded(network)
    turn = await room.begin_woken(BILLING)
    await owner.call("stop", scope="turn", target=turn, reason="too dear")
    (notice,) = await silence_notices(room, network)
    assert "stopped by root: too dear" in notice["text_representation"]


async def test_the_notice_about_a_forwarded_question_says_why_its_agent_was_not_woken_again(
    network: Network,
) -> None:
    owner = await network.join("root", owner=True)
    room = await Relay.forwarded(network)
    await owner.call("take_over", agent=CLERK)
    turn = await room.begin_woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to=CLERK, text="9", cause=turn)
    await room.end(BILLING, turn)
    (notice,) = await silence_notices(room, network)
    assert notice["text_representation"] == (
        "None of the agents woken by this answered: calc and libby. "
        "A later message did not wake calc: a person has taken over the agent."
    )


@pytest.mark.parametrize("crash", ["before the last turn", "before the notice"])
async def test_a_forwarded_question_is_followed_across_a_crash_and_notified_once(
    in_memory: Networks, tmp_path: Path, crash: str
) -> None:
    path = f"sqlite:{tmp_path}/hub.db"
    store = MoodyStore(path)
    async with in_memory.start(store=store) as network:
        room = await Relay.forwarded(network)
        if crash == "before the notice":
            turn = await room.begin_woken(BILLING)
            store.deaf = True  # the end of the turn is the last thing written
            await room.agents[BILLING].ask("end_turn", end={"id": turn, "outcome": "finished"})
            store.deaf = False
    for start in range(2):
        async with in_memory.start(store=path) as network:
            again = await Relay.of(network)
            if start == 0 and crash == "before the last turn":
                await again.end(BILLING, await again.begin_woken(BILLING))
            await network.quiet()
            thread = room.question["thread_id"]
            page = (await again.ann.call("read_thread", thread=thread))["messages"]
            assert [m["sender_id"] for m in page] == ["ann", "hub"]
