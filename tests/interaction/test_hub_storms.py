"""Limits on unprompted answers, and the hub's notices about limits."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interaction.accounts import Worker, limited
from tests.interaction.peers import Network, Networks, Peer
from tests.interaction.stop_harness import HandClock, kinds, notices


async def join_agents(network: Network, *names: str) -> list[Peer]:
    return [await network.join(name, "agent") for name in names]


async def used(peer: Peer, message: Any) -> dict[str, Any]:
    budget = await peer.call("read_budget", interaction=f"i{message['seq']}")
    amounts: dict[str, Any] = budget["used"]
    return amounts


@pytest.mark.behaviour("H-112")
async def test_unprompted_answers_count_as_wakes_up_to_the_limit(in_memory: Networks) -> None:
    async with in_memory.start(limited(wakes=3, agents=16)) as network:
        ann = await network.join("ann")
        one, two = await join_agents(network, "one", "two")
        opened = await ann.call("post_to_channel", channel="desk", text="well?")
        post = {"channel": "desk", "text": "me", "cause": opened["id"]}
        for count in (1, 2, 3):
            await one.call("post_to_channel", **post)
            assert (await used(ann, opened))["wakes"] == count
        assert (await used(ann, opened))["agents"] == 1
        assert await notices(network, ann) == [], "nothing was held back yet"
        for agent in (one, two):
            last = await agent.call("post_to_channel", **post)
            assert last["id"], "stored and delivered"
            refused = await agent.ask("post_to_channel", **post)
            assert refused["code"] == "budget_exhausted"
            assert refused["details"] == {"interaction_id": "i1", "limit": "wakes"}
        assert kinds(await notices(network, ann)) == ["budget_wakes"]
        again = await ann.call("post_to_channel", channel="desk", text="go on then")
        await one.call("post_to_channel", **{**post, "cause": again["id"]})


async def test_an_agent_can_answer_its_waking_message_without_limit(in_memory: Networks) -> None:
    async with in_memory.start(limited(wakes=1)) as network:
        ann = await network.join("ann")
        await join_agents(network, "cy")
        worker = await Worker.woken(network, "bob", ann)
        for cause in (worker.asked["id"], worker.turn):  # the message, or the turn about it
            for _ in range(2):
                await worker.peer.say("ann", "word for word", cause=cause)
        assert (await used(ann, worker.asked))["wakes"] == 1
        sent = await worker.peer.say("cy", "and you?", cause=worker.turn)
        assert sent["not_woken"] == {"cy": "budget_wakes"}


@pytest.mark.behaviour("H-112")
async def test_a_refused_question_leaves_no_agent_waiting(in_memory: Networks) -> None:
    async with in_memory.start(limited(wakes=1)) as network:
        ann = await network.join("ann")
        one, two = await join_agents(network, "one", "two")
        opened = await ann.call("post_to_channel", channel="desk", text="well?")
        cause = opened["id"]
        await one.call("post_to_channel", channel="desk", text="me", cause=cause)
        await one.call("post_to_channel", channel="desk", text="me too", cause=cause)
        question = {"to": "two", "text": "and you?", "cause": cause, "awaits": True}
        assert (await one.ask("send_text_message", **question))["code"] == "budget_exhausted"
        assert "id" in await two.call("send_text_message", to="one", text="you?", awaits=True)


@pytest.mark.behaviour("H-2")
@pytest.mark.parametrize(("hops", "count"), [(3, 0), (2, 1), (1, 1)])
async def test_the_hop_limit_is_announced_once(in_memory: Networks, hops: int, count: int) -> None:
    async with in_memory.start(limited(hops=hops)) as network:
        ann = await network.join("ann")
        one, two = await join_agents(network, "one", "two")
        message = await ann.say("one", "go")
        for sender, to in ((one, "two"), (two, "one"))[:hops]:
            message = await sender.say(to, "on", cause=message["id"])
        assert kinds(await notices(network, ann)) == ["budget_hops"] * count


@pytest.mark.behaviour("H-5")
async def test_a_loop_of_two_agents_is_announced_once_per_period(in_memory: Networks) -> None:
    clock = HandClock()
    file = limited(loop_limit={"wakes": 1, "within": "100s"})
    async with in_memory.start(file, clock=clock) as network:
        ann = await network.join("ann")
        one, _ = await join_agents(network, "one", "two")
        asked = await ann.say("one", "greet two")

        async def reach_limit() -> None:
            for _ in range(3):
                await one.say("two", "hello", cause=asked["id"])

        await reach_limit()
        (notice,) = await notices(network, ann)
        assert notice["thread_id"] == asked["thread_id"]
        assert notice["content"]["agents"] == ["one", "two"]
        assert "mentions" not in notice
        await ann.say("one", "go on")  # resets the limit, but a notice was posted recently
        await reach_limit()
        assert await notices(network, ann) == []
        clock.wall += 101
        await reach_limit()
        assert len(await notices(network, ann)) == 1
