"""The notice to a person whose message woke agents that all ended without a word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Self

import pytest

from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("W-14")
NETWORK = config(channels={"desk": {"members": "all"}})

TWO = ("calc", "libby")


class Room:
    """Ann, and two agents that are woken by what she says to everybody."""

    def __init__(self, ann: Peer, agents: dict[str, Peer]):
        self.ann, self.agents = ann, agents
        self.turns: dict[str, list[dict[str, Any]]] = {name: [] for name in agents}

    @classmethod
    async def of(cls, network: Network) -> Self:
        agents = {name: await network.join(name, "agent", turns=True) for name in TWO}
        return cls(await network.join("ann"), agents)

    async def broadcast(self, text: str = "hello") -> Any:
        sent = await self.ann.call("broadcast_text_message", text=text)
        for name, agent in self.agents.items():
            event = await agent.event()
            assert event["message"]["id"] == sent["id"]
            self.turns[name].append(event)
        return sent

    async def begin(self, name: str) -> str:
        """A turn of the agent, about all that has woken it."""
        events, self.turns[name] = self.turns[name], []
        turn: str = events[0]["wake"]["turn"]
        messages = [event["message"]["id"] for event in events]
        start = {"id": turn, "thread_id": "broadcast", "messages": messages}
        await self.agents[name].call("begin_turn", start=start)
        return turn

    async def end(self, name: str, turn: str, outcome: str = "finished", reason: str = "") -> None:
        end = {"id": turn, "outcome": outcome, "reason": reason}
        await self.agents[name].call("end_turn", end=end)

    async def is_silent(self, name: str) -> None:
        await self.end(name, await self.begin(name))


async def notices(ann: Peer) -> list[Any]:
    """What the hub has said to her since she last looked."""
    return [e["message"] for e in await ann.sync() if e["message"]["sender_kind"] == "system"]


async def test_a_person_is_told_once_when_all_whom_they_woke_ended_without_a_word(
    network: Network,
) -> None:
    room = await Room.of(network)
    sent = await room.broadcast()
    await room.is_silent("calc")
    await network.quiet()
    assert await notices(room.ann) == [], "one of them may still answer"
    turn = await room.begin("libby")
    for _ in range(2):  # the second says the same again
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


def was_told(ann: Peer) -> bool:
    return any(event["message"]["sender_kind"] == "system" for event in ann.events)


async def answers(agent: Peer, turn: str) -> None:
    await agent.call("broadcast_text_message", text="here", cause=turn)


async def hands_on(agent: Peer, turn: str) -> None:
    await agent.call("delegate", to="calc", task="greet her", cause=turn)


async def asks_for_approval(agent: Peer, turn: str) -> None:
    await agent.call("request_approval", turn=turn, call="1:c1", tool="wave", arguments={})


@pytest.mark.parametrize("acts", [answers, hands_on, asks_for_approval])
async def test_nobody_is_told_where_one_of_them_has_done_something(
    network: Network, acts: Callable[[Peer, str], Awaitable[None]]
) -> None:
    room = await Room.of(network)
    await room.broadcast()
    turn = await room.begin("libby")
    await acts(room.agents["libby"], turn)
    await room.end("libby", turn)
    await room.is_silent("calc")
    await network.quiet()
    assert [n for n in await notices(room.ann) if n["content"]["code"] == "silence"] == []


async def test_a_person_is_told_only_the_one_thing_that_matters(network: Network) -> None:
    room = await Room.of(network)
    await room.broadcast()
    turn = await room.begin("libby")
    await room.ann.call("stop", scope="turn", target=turn)
    await room.is_silent("calc")
    await network.quiet()
    (stopped,) = await notices(room.ann)
    assert stopped["content"]["code"] == "stopped"
    room.turns["libby"].clear()
    for agent in room.agents.values():
        await agent.sync()
    await room.broadcast("@libby hello")  # for a reply she waits
    await room.is_silent("calc")
    await room.is_silent("libby")
    await network.quiet()
    (notice,) = await notices(room.ann)
    assert notice["text_representation"] == "libby read this and decided not to answer."
    for agent in room.agents.values():
        await agent.sync()
    await room.broadcast("hello")
    await room.is_silent("calc")
    last = await room.broadcast("anybody?")
    await room.is_silent("calc")
    await room.is_silent("libby")  # it takes up both
    await network.quiet()
    (notice,) = await notices(room.ann)
    assert notice["content"]["messages"] == [last["id"]]


async def test_messages_of_agents_and_messages_that_wake_nobody_are_not_told_of(
    network: Network,
) -> None:
    room = await Room.of(network)
    await room.ann.call("post_to_channel", channel="desk", text="nobody in particular")
    sent = await room.agents["calc"].call("broadcast_text_message", text="@libby hello")
    heard, woken = await room.agents["libby"].sync()
    assert (heard.get("wake"), woken["message"]["id"]) == (None, sent["id"])
    room.turns["libby"] = [woken, heard]  # it says that it was about both
    await room.is_silent("libby")
    await network.quiet()
    assert await notices(room.ann) == []


async def test_a_hub_that_died_before_it_told_tells_after_its_start_and_never_again(
    in_memory: Networks, tmp_path: Path
) -> None:
    place = f"sqlite:{tmp_path}/hub.db"
    store = MoodyStore(place)
    async with in_memory.start(store=store) as network:
        room = await Room.of(network)
        await room.broadcast()
        await room.is_silent("calc")
        turn = await room.begin("libby")
        store.deaf = True  # the end is written, and nothing after it
        error = await room.agents["libby"].ask("end_turn", end={"id": turn, "outcome": "finished"})
        assert error["code"] == "store_unavailable"
        store.deaf = False
    for _ in range(2):
        async with in_memory.start(store=place) as network:
            ann = await network.join("ann")
            await ann.until(partial(was_told, ann))
            await network.quiet()
            page = (await ann.call("read_thread", thread="broadcast"))["messages"]
            assert [m["sender_id"] for m in page] == ["ann", "hub"]


# What was passed on ---------------------------------------------------------------------------

CLERK, BILLING = "calc", "libby"


class Relay(Room):
    """Ann has asked one agent, which has passed it on to another, and is done."""

    asked: Any = None

    @classmethod
    async def passed_on(cls, network: Network) -> Self:
        room = await cls.of(network)
        room.asked = await room.ann.call("send_text_message", to=CLERK, text="what do I owe?")
        turn = await room.woken(CLERK)
        await room.agents[CLERK].call("send_text_message", to=BILLING, text="?", cause=turn)
        await room.end(CLERK, turn)
        return room

    async def woken(self, name: str) -> str:
        """The turn that the agent begins with what has just woken it."""
        self.turns[name] = [event for event in await self.agents[name].sync() if event.get("wake")]
        return await self.begin(name)

    async def fails(self, name: str) -> str:
        turn = await self.woken(name)
        await self.end(name, turn, "model_error", "no connection")
        return turn


async def told_of_silence(room: Relay, network: Network) -> list[Any]:
    await network.quiet()
    return [n for n in await notices(room.ann) if n["content"]["code"] == "silence"]


async def test_a_person_is_told_when_nobody_answers_what_was_passed_on(network: Network) -> None:
    room = await Relay.passed_on(network)
    assert await told_of_silence(room, network) == [], "the other may still answer"
    failed = await room.fails(BILLING)
    (notice,) = await told_of_silence(room, network)
    assert notice["text_representation"] == (
        "None of the agents woken by this answered: calc and libby. "
        "libby got no answer from its model (`no connection`)."
    )
    assert notice["thread_id"] == room.asked["thread_id"]
    assert notice["content"]["messages"] == [room.asked["id"]]
    assert notice["content"]["reasons"] == {BILLING: "no connection"}
    assert notice["content"]["turns"] == {BILLING: failed}
    assert notice["mentions"] == ["ann"]


async def tells_her_itself(room: Relay) -> None:
    turn = await room.woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to="ann", text="9", cause=turn)
    await room.end(BILLING, turn)


async def asks_somebody_else(room: Relay) -> None:
    turn = await room.woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to="bob", text="?", cause=turn)
    await room.end(BILLING, turn)


async def tells_who_asked(room: Relay) -> None:
    turn = await room.woken(BILLING)
    await room.agents[BILLING].call("send_text_message", to=CLERK, text="9", cause=turn)
    await room.end(BILLING, turn)
    turn = await room.woken(CLERK)
    await room.agents[CLERK].call("send_text_message", to="ann", text="9", cause=turn)
    await room.end(CLERK, turn)


@pytest.mark.parametrize("acts", [tells_her_itself, asks_somebody_else, tells_who_asked])
async def test_nobody_is_told_where_what_was_passed_on_came_to_a_person(
    network: Network, acts: Callable[[Relay], Awaitable[None]]
) -> None:
    await network.join("bob")
    room = await Relay.passed_on(network)
    await acts(room)
    assert await told_of_silence(room, network) == []


async def test_a_person_is_told_when_a_request_made_for_them_comes_to_nothing(
    network: Network,
) -> None:
    room = await Relay.of(network)
    await room.ann.call("send_text_message", to=CLERK, text="what do I owe?")
    turn = await room.woken(CLERK)
    await room.agents[CLERK].call("delegate", to=BILLING, task="look it up", cause=turn)
    await room.end(CLERK, turn)
    await room.fails(BILLING)  # of which the hub tells who has delegated
    assert await told_of_silence(room, network) == [], "that one may still answer"
    await room.end(CLERK, await room.woken(CLERK))
    (notice,) = await told_of_silence(room, network)
    assert notice["content"]["outcomes"] == {CLERK: "finished", BILLING: "model_error"}


async def test_a_person_is_told_when_others_stop_what_was_passed_on(network: Network) -> None:
    owner = await network.join("root", owner=True)
    room = await Relay.passed_on(network)
    await owner.call("stop", scope="turn", target=await room.woken(BILLING), reason="too dear")
    (notice,) = await told_of_silence(room, network)
    assert "stopped by root: too dear" in notice["text_representation"]


@pytest.mark.parametrize("died", ["before the last turn", "before it told"])
async def test_a_hub_that_died_follows_what_was_passed_on_and_tells_once(
    in_memory: Networks, tmp_path: Path, died: str
) -> None:
    place = f"sqlite:{tmp_path}/hub.db"
    store = MoodyStore(place)
    async with in_memory.start(store=store) as network:
        room = await Relay.passed_on(network)
        if died == "before it told":
            turn = await room.woken(BILLING)
            store.deaf = True  # the end is written, and nothing after it
            await room.agents[BILLING].ask("end_turn", end={"id": turn, "outcome": "finished"})
            store.deaf = False
    for start in range(2):
        async with in_memory.start(store=place) as network:
            again = await Relay.of(network)
            if start == 0 and died == "before the last turn":
                await again.end(BILLING, await again.woken(BILLING))
            await network.quiet()
            page = (await again.ann.call("read_thread", thread=room.asked["thread_id"]))["messages"]
            assert [m["sender_id"] for m in page] == ["ann", "hub"]
