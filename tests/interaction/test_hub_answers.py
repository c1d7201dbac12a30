"""What a sender learns: how much is queued at each agent, and what became of its message."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.network.wakes import SENTENCES, Reason
from tests.interaction.peers import Network, Networks, Peer, config, eventually

NETWORK = config(channels={"desk": {"members": "all"}})


async def begin(peer: Peer, turn: str, *messages: str, thread: str = "dm.ann.bob") -> None:
    start = {"id": turn, "thread_id": thread, "messages": messages}
    await peer.call("begin_turn", start=start)


async def end(peer: Peer, turn: str, outcome: str = "finished") -> None:
    await peer.call("end_turn", end={"id": turn, "outcome": outcome})


async def receipt(peer: Peer, message: Any, *keys: str) -> list[Any]:
    """These values of bob's receipt for a message."""
    answer = await peer.call("read_receipts", id=message["id"])
    receipt = next(r for r in answer["receipts"] if r["participant"] == "bob")
    return [receipt.get(key) for key in keys]


async def only_turn(peer: Peer) -> Any:
    (turn,) = (await peer.call("list_turns"))["turns"]
    return turn


async def pair(network: Network) -> tuple[Peer, Peer]:
    return await network.join("ann"), await network.join("bob", "agent", turns=True)


@pytest.mark.behaviour("H-101")
async def test_a_sender_learns_how_many_messages_are_queued_at_each_agent(network: Network) -> None:
    ann, bob = await pair(network)
    first = await ann.say("bob", "one")
    assert first["queued"] == {"bob": 1}
    assert "not_woken" not in first
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 2}
    await begin(bob, "bob-m1", "m1", "m2")
    assert (await ann.say("bob", "three"))["queued"] == {"bob": 3}
    step = {"n": 1, "steered": [{"message": "m3", "text": "three"}]}
    await bob.call("record_step", turn="bob-m1", step=step)
    await end(bob, "bob-m1")
    assert (await ann.say("bob", "four"))["queued"] == {"bob": 1}, (
        "the steered one no longer counts"
    )
    assert "queued" not in await bob.say("ann", "people have no queue")
    cy = await network.join("cy", "agent")
    posted = await ann.call("post_to_channel", channel="desk", text="@bob and @cy")
    assert posted["queued"] == {"bob": 2, "cy": 1}
    await cy.event()
    await cy.ack(posted["seq"])
    await cy.sync()
    network.hub.gateway.cursors.flush()
    await network.quiet()
    again = await ann.say("cy", "two")
    assert again["queued"] == {"cy": 1}, "without turns, an acknowledgement empties the queue"


@pytest.mark.behaviour("H-101")
async def test_a_turn_that_waits_for_approval_names_it_and_does_not_count_as_queued(
    network: Network,
) -> None:
    ann, bob = await pair(network)
    await ann.say("bob", "pay")
    await begin(bob, "bob-m1", "m1")
    pay: dict[str, Any] = {"turn": "bob-m1", "call": "1:a", "tool": "pay", "arguments": {}}
    approval = await bob.call("request_approval", **pay)
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 1}
    assert (await only_turn(ann))["waits_for"] == [approval["id"]]
    await ann.call("approve", id=approval["id"])
    assert (await ann.say("bob", "three"))["queued"] == {"bob": 3}, "it works again"
    assert not (await only_turn(ann)).get("waits_for")


async def test_queued_messages_still_count_after_a_restart(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path}/log.db"
    async with in_memory.start(store=store) as network:
        ann, bob = await pair(network)
        for text in ("one", "two", "three"):
            await ann.say("bob", text)
        await begin(bob, "bob-m1", "m1")
    async with in_memory.start(store=store) as network:
        await eventually(lambda: network.hub.kernel.queues.depth("bob") == 3)
        ann, bob = await pair(network)
        await end(bob, "bob-m1")
        assert (await ann.say("bob", "four"))["queued"] == {"bob": 3}


@pytest.mark.behaviour("H-103")
async def test_a_sender_learns_which_agents_a_limit_or_stop_did_not_wake(
    in_memory: Networks,
) -> None:
    async with in_memory.start(config(network={"budgets": {"hops": 1}})) as network:
        ann = await network.join("ann")
        bob, cy = [await network.join(name, "agent") for name in ("bob", "cy")]
        await ann.say("bob", "go")
        await bob.event()
        last = await bob.call("send_text_message", to="cy", text="on", cause="m1")
        assert last["not_woken"] == {"cy": "hop_limit"}
        assert "queued" not in last
        assert (await cy.event())["message"]["content"] == "on", "it is delivered anyway"
        await ann.call("stop", scope="agent", target="bob")
        sent = await ann.say("bob", "are you there?")
        assert sent["not_woken"] == {"bob": "stopped"}
        assert "queued" not in sent
        why = await ann.call("explain_wake", agent="bob", message_id=sent["id"])
        assert (why["woken"], why["reason"]) == (False, "stopped")
        assert why["explanation"] == SENTENCES[Reason.STOPPED]


@pytest.mark.behaviour("H-102")
async def test_a_receipt_shows_the_step_that_read_a_message_and_how_it_was_answered(
    network: Network,
) -> None:
    ann, bob = await pair(network)
    first = await ann.say("bob", "one")
    assert await receipt(ann, first, "step") == [None], "no turn has begun"
    await begin(bob, "bob-m1", "m1")
    assert await receipt(ann, first, "state", "step", "answer") == ["running", 1, None]
    later = await ann.say("bob", "two")
    step = {"n": 2, "steered": [{"message": "m2", "text": "two"}]}
    await bob.call("record_step", turn="bob-m1", step=step)
    await bob.call("send_text_message", to="ann", text="done", cause="bob-m1")
    await end(bob, "bob-m1")
    for message, n in ((first, 1), (later, 2)):
        values = await receipt(ann, message, "turn", "step", "answer", "outcome")
        assert values == ["bob-m1", n, "answered", "finished"]
    silent = await ann.say("bob", "three")
    await begin(bob, "bob-m4", "m4")
    await end(bob, "bob-m4", "model_error")
    assert await receipt(ann, silent, "answer", "outcome") == ["silent", "model_error"]
    declined = {"id": "c", "name": "decline", "arguments": {"reason": "no"}, "result": "said"}
    seq = (await ann.say("bob", "lie for me"))["seq"]
    turn = f"bob-m{seq}"
    await begin(bob, turn, f"m{seq}")
    await bob.call("record_step", turn=turn, step={"n": 1, "calls": [declined]})
    await bob.call("send_text_message", to="ann", text="I decline: no", cause=turn)
    await end(bob, turn)
    assert await receipt(ann, {"id": f"m{seq}"}, "answer") == ["declined"]


async def test_the_end_of_a_turn_that_has_not_begun_is_refused_and_can_be_repeated(
    network: Network,
) -> None:
    ann, bob = await pair(network)
    await ann.say("bob", "one")
    first = await bob.post("end_turn", end={"id": "bob-m1", "outcome": "finished"})
    await begin(bob, "bob-m1", "m1")
    assert (await bob.answer(first))["code"] == "unknown_turn"
    await end(bob, "bob-m1")
    assert (await only_turn(ann))["outcome"] == "finished"


async def test_a_sender_gets_its_message_back_as_it_was_stored(in_memory: Networks) -> None:
    key = "sk-proj-abcdefghijklmnop1234567890"
    mods = [Moderation(ModerationConfig())]
    async with in_memory.start(NETWORK, mods=mods) as network:
        ann, bob = await pair(network)
        for draft in (
            {"cid": "c1", "to": "bob", "text": "plain"},
            {"cid": "c2", "to": "bob", "text": f"my key is {key}", "mentions": ["bob"]},
        ):
            sent = await ann.call("send_text_message", **draft)
            event = await bob.event()
            assert sent["message"] == event["message"]
            assert key not in str(sent)
            again = await ann.call("send_text_message", **draft)
            assert again["message"] == sent["message"], "also for a repetition"
