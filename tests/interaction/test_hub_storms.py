"""What is bounded besides wakes: answers to what was merely overheard, and what the hub says about
limits that nobody waits for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.interaction.accounts import Worker, limited
from tests.interaction.peers import Network, Networks, Peer
from tests.interaction.stop_harness import HandClock, notices


async def crowd(network: Network, *names: str) -> list[Peer]:
    return [await network.join(name, "agent") for name in names]


async def used(peer: Peer, message: Any) -> dict[str, Any]:
    budget = await peer.call("read_budget", interaction=f"i{message['seq']}")
    found: dict[str, Any] = budget["used"]
    return found


@pytest.mark.behaviour("H-112")
async def test_each_word_to_what_was_overheard_counts_as_a_wake_and_past_the_limit_is_one_more(
    in_memory: Networks,
) -> None:
    async with in_memory.start(limited(wakes=3, agents=16)) as network:
        ann = await network.join("ann")
        one, two = await crowd(network, "one", "two")
        opened = await ann.call("post_to_channel", channel="desk", text="well?")
        said = {"channel": "desk", "text": "me", "cause": opened["id"]}
        for count in (1, 2, 3):
            await one.call("post_to_channel", **said)
            assert (await used(ann, opened))["wakes"] == count
        assert (await used(ann, opened))["agents"] == 1
        assert await notices(network, ann) == [], "at the limit nothing was kept from anybody yet"
        for crier in (one, two):
            last = await crier.call("post_to_channel", **said)
            assert last["id"], "it is kept and delivered"
            refused = await crier.ask("post_to_channel", **said)
            assert refused["code"] == "budget_exhausted"
            assert refused["details"] == {"interaction_id": "i1", "limit": "wakes"}
        (told,) = await notices(network, ann)
        assert told["content"]["code"] == "budget_wakes"
        again = await ann.call("post_to_channel", channel="desk", text="go on then")
        await one.call("post_to_channel", **{**said, "cause": again["id"]})


async def test_who_was_woken_by_a_message_may_answer_it_as_often_as_it_likes(
    in_memory: Networks,
) -> None:
    async with in_memory.start(limited(wakes=1)) as network:
        ann = await network.join("ann")
        await crowd(network, "cy")
        worker = await Worker.woken(network, "bob", ann)
        for cause in (worker.asked["id"], worker.turn):  # the message, or the turn about it
            for _ in range(2):
                await worker.peer.say("ann", "word for word", cause=cause)
        assert (await used(ann, worker.asked))["wakes"] == 1
        kept = await worker.peer.say("cy", "and you?", cause=worker.turn)
        assert kept["not_woken"] == {"cy": "budget_wakes"}


@pytest.mark.behaviour("H-112")
async def test_a_refused_question_leaves_nobody_waiting(in_memory: Networks) -> None:
    async with in_memory.start(limited(wakes=1)) as network:
        ann = await network.join("ann")
        one, two = await crowd(network, "one", "two")
        opened = await ann.call("post_to_channel", channel="desk", text="well?")
        cause = opened["id"]
        await one.call("post_to_channel", channel="desk", text="me", cause=cause)
        await one.call("post_to_channel", channel="desk", text="me too", cause=cause)
        question = {"to": "two", "text": "and you?", "cause": cause, "awaits": True}
        assert (await one.ask("send_text_message", **question))["code"] == "budget_exhausted"
        assert "id" in await two.call("send_text_message", to="one", text="you?", awaits=True)


@pytest.mark.behaviour("H-2")
@pytest.mark.parametrize(("hops", "told"), [(3, 0), (2, 1), (1, 1)])
async def test_the_hop_limit_is_told_once(in_memory: Networks, hops: int, told: int) -> None:
    async with in_memory.start(limited(hops=hops)) as network:
        ann = await network.join("ann")
        one, two = await crowd(network, "one", "two")
        message = await ann.say("one", "go")
        for speaker, to in ((one, "two"), (two, "one"))[:hops]:
            message = await speaker.say(to, "on", cause=message["id"])
        found = [notice["content"]["code"] for notice in await notices(network, ann)]
        assert found == ["budget_hops"] * told


@pytest.mark.behaviour("H-5")
async def test_a_pair_without_breath_is_told_of_once_in_its_time(in_memory: Networks) -> None:
    clock = HandClock()
    file = limited(loop_limit={"wakes": 1, "within": "100s"})
    async with in_memory.start(file, clock=clock) as network:
        ann = await network.join("ann")
        one, _ = await crowd(network, "one", "two")
        asked = await ann.say("one", "greet two")

        async def volley() -> None:
            for _ in range(3):
                await one.say("two", "hello", cause=asked["id"])

        await volley()
        (told,) = await notices(network, ann)
        assert told["thread_id"] == asked["thread_id"]
        assert told["content"]["agents"] == ["one", "two"]
        assert "mentions" not in told
        await ann.say("one", "go on")  # they have breath again, but were told of lately
        await volley()
        assert await notices(network, ann) == []
        clock.wall += 101
        await volley()
        assert len(await notices(network, ann)) == 1
