"""Receipts: who received and read a message, and which agents it woke."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubbub.network.services import receipts as module
from hubbub.network.wakes import SENTENCES, Reason
from tests.interaction.peers import Network, Peer, config, eventually
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("P-35")
NETWORK = config(channels={"desk": {"members": "all"}})


async def receipts(peer: Peer, message: Any) -> dict[str, Any]:
    """The answer of `read_receipts` by participant."""
    answer = await peer.call("read_receipts", id=message["id"])
    assert (answer["message_id"], answer["more"]) == (message["id"], False)
    return {each.pop("participant"): each for each in answer["receipts"]}


async def await_ack(network: Network, participant: str, seq: int) -> None:
    """Wait until the hub has processed an acknowledgement."""
    record = network.hub.kernel.state.get(participant)
    assert record is not None
    await eventually(lambda: record.cursor >= seq)


@pytest.mark.behaviour("P-12")
async def test_a_receipt_shows_delivery_reading_and_presence(network: Network) -> None:
    ann, bob, carol = [await network.join(name) for name in ("ann", "bob", "carol")]
    sent = await ann.say("bob", "hello")
    expected = {
        "kind": "human",
        "present": True,
        "delivered": False,
        "read": False,
        "woken": False,
        "reason": "not_an_agent",
        "explanation": SENTENCES[Reason.NOT_AN_AGENT],
    }
    assert await receipts(ann, sent) == {"bob": expected}
    await bob.event()
    await bob.ack(sent["seq"])
    await bob.sync()
    assert await receipts(ann, sent) == {"bob": {**expected, "delivered": True}}
    await bob.call("mark_read", thread="direct_ann", upto=1)
    done = {**expected, "delivered": True, "read": True}
    assert await receipts(ann, sent) == {"bob": done}
    await bob.close()
    await network.gone("bob")
    assert await receipts(ann, sent) == {"bob": {**done, "present": False}}
    assert (await carol.ask("read_receipts", id=sent["id"]))["code"] == "unknown_message"
    assert (await ann.ask("read_receipts", id="m99"))["code"] == "unknown_message"
    assert (await ann.ask("read_receipts", id="hello"))["code"] == "bad_request"
    operator = await network.join("operator", "service")
    assert list(await receipts(operator, sent)) == ["bob"]


@pytest.mark.behaviour("W-13")
async def test_receipts_show_which_agents_a_message_woke_and_why(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    busy = await network.join("busy", "agent", turns=True)
    for name in ("calm", "zed"):
        await network.join(name, "agent")
    await network.join("robot", "service")
    sent = await ann.call("post_to_channel", channel="desk", text="@busy and @bob, please")
    rows = await receipts(bob, sent)
    assert list(rows) == ["busy", "calm", "zed", "bob", "robot"], "agents first"
    turn = f"busy-{sent['id']}"
    assert rows["busy"] == {
        "kind": "agent",
        "present": True,
        "delivered": False,
        "woken": True,
        "reason": "mention",
        "explanation": SENTENCES[Reason.MENTION],
        "turn": turn,
        "state": "pending",
    }
    assert (rows["calm"]["woken"], rows["calm"]["reason"]) == (False, "not_mentioned")
    assert rows["bob"]["reason"] == rows["robot"]["reason"] == "not_an_agent"
    assert "read" not in rows["robot"]
    more = await ann.call("post_to_channel", channel="desk", text="@busy and this")
    assert (await receipts(ann, more))["busy"]["turn"] == f"busy-{more['id']}"
    messages = [sent["id"], more["id"]]
    start = {"id": turn, "thread_id": "channel.desk", "messages": messages}
    await busy.call("begin_turn", start=start)
    for message in (sent, more):  # the turn covers both
        receipt = (await receipts(bob, message))["busy"]
        assert (receipt["turn"], receipt["state"]) == (turn, "running")
    await busy.call("end_turn", end={"id": turn, "outcome": "finished"})
    assert (await receipts(bob, sent))["busy"]["state"] == "ended"
    await ann.until(lambda: bool(ann.events))
    notice = ann.events[-1]["message"]  # no agent answered
    rows = await receipts(ann, notice)
    assert (rows["ann"]["reason"], rows["busy"]["reason"]) == ("system", "system")


async def test_an_agent_that_only_asked_another_agent_has_not_answered_the_sender(
    network: Network,
) -> None:
    ann = await network.join("ann")
    clerk, _billing = await network.join("clerk", "agent"), await network.join("billing", "agent")
    asked = await ann.say("clerk", "What do I owe?")
    turn = f"clerk-{asked['id']}"
    start = {"id": turn, "thread_id": asked["thread_id"], "messages": [asked["id"]]}
    await clerk.call("begin_turn", start=start)
    await clerk.say("billing", "What does ann owe?", cause=turn)
    assert (await receipts(ann, asked))["clerk"]["answer"] == "elsewhere"
    await clerk.say("ann", "I am asking billing.", cause=turn)
    assert (await receipts(ann, asked))["clerk"]["answer"] == "answered"


async def test_receipts_agree_with_the_explanations_of_wakes(network: Network) -> None:
    ann, _bob = await network.join("ann"), await network.join("bob")
    for name in ("one", "two"):
        await network.join(name, "agent")
    messages = [
        await ann.say("one", "a"),
        await ann.say(["one", "bob"], "b"),
        await ann.call("broadcast_text_message", text="c"),
        await ann.call("post_to_channel", channel="desk", text="d @two"),
    ]
    compared = 0
    for message in messages:
        for name, receipt in (await receipts(ann, message)).items():
            if receipt["kind"] == "agent":
                why = await ann.call("explain_wake", agent=name, message_id=message["id"])
                for key in ("woken", "reason", "explanation"):
                    assert receipt[key] == why[key]
                assert receipt.get("turn") == why.get("wake", {}).get("turn")
                compared += 1
    assert compared == 6


@pytest.mark.behaviour("P-33")
async def test_receipts_show_nothing_delivered_to_later_members(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    sent = await ann.call("post_to_channel", channel="desk", text="early birds")
    await bob.event()
    await bob.ack(sent["seq"])
    await bob.call("mark_read", thread="channel_desk", upto=1)
    carol = await network.join("carol")
    await network.join("late", "agent")
    later = await ann.call("post_to_channel", channel="desk", text="good morning")
    await carol.event()
    await carol.ack(later["seq"])
    await await_ack(network, "carol", later["seq"])
    rows = await receipts(ann, sent)
    assert (rows["bob"]["delivered"], rows["bob"]["read"]) == (True, True)
    assert (rows["carol"]["delivered"], rows["carol"]["read"]) == (False, False)
    assert rows["carol"]["reason"] == rows["late"]["reason"] == "not_received"
    await bob.call("leave_channel", channel="desk")
    await bob.call("join_channel", channel="desk")
    rows = await receipts(ann, sent)
    assert rows["bob"]["delivered"], "leaving and rejoining keeps the delivery"
    assert not (await receipts(ann, later))["bob"]["delivered"]


async def test_receipts_of_a_large_channel_take_few_queries_and_list_agents_first(
    network: Network, moody: MoodyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = await network.join("ann")
    names = [f"p{n}" for n in range(20)]
    await asyncio.gather(*(network.join(name) for name in names))
    await network.join("zed", "agent")
    sent = await ann.call("post_to_channel", channel="desk", text="all")
    await asyncio.gather(*(network.join(f"late{n}") for n in range(20)))
    before = moody.asked
    assert len(await receipts(ann, sent)) == 41
    assert moody.asked - before <= 3
    monkeypatch.setattr(module, "MAX_RECEIPTS", 3)
    answer = await ann.call("read_receipts", id=sent["id"])
    names = [each["participant"] for each in answer["receipts"]]
    assert (names[0], len(names), answer["more"]) == ("zed", 3, True)
