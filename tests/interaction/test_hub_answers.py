"""What a sender learns: how much waits where it has spoken, and what became of what it said."""

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
    """What the receipt of bob tells under these keys."""
    answer = await peer.call("read_receipts", id=message["id"])
    found = next(r for r in answer["receipts"] if r["participant"] == "bob")
    return [found.get(key) for key in keys]


async def pair(network: Network) -> tuple[Peer, Peer]:
    return await network.join("ann"), await network.join("bob", "agent", turns=True)


@pytest.mark.behaviour("H-101")
async def test_who_speaks_learns_how_much_waits_at_each_agent(network: Network) -> None:
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
    assert (await ann.say("bob", "four"))["queued"] == {"bob": 1}, "what was let in is gone too"
    assert "queued" not in await bob.say("ann", "people have no queue")
    cy = await network.join("cy", "agent")
    told = await ann.call("post_to_channel", channel="desk", text="@bob and @cy")
    assert told["queued"] == {"bob": 2, "cy": 1}
    await cy.event()
    await cy.ack(told["seq"])
    await cy.sync()
    network.hub.gateway.cursors.flush()
    await network.quiet()
    again = await ann.say("cy", "two")
    assert again["queued"] == {"cy": 1}, "without turns, what is acknowledged is dealt with"


@pytest.mark.behaviour("H-101")
async def test_a_turn_that_waits_for_a_person_names_the_approval_and_keeps_nobody_waiting(
    network: Network,
) -> None:
    ann, bob = await pair(network)
    await ann.say("bob", "pay")
    await begin(bob, "bob-m1", "m1")
    asked: dict[str, Any] = {"turn": "bob-m1", "call": "1:a", "tool": "pay", "arguments": {}}
    approval = await bob.call("request_approval", **asked)
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 1}
    (told,) = (await ann.call("list_turns"))["turns"]
    assert told["waits_for"] == [approval["id"]]
    await ann.call("approve", id=approval["id"])
    assert (await ann.say("bob", "three"))["queued"] == {"bob": 3}, "it works again"
    (told,) = (await ann.call("list_turns"))["turns"]
    assert not told.get("waits_for")


async def test_what_waited_before_the_hub_stopped_waits_still(
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
async def test_a_sender_learns_whom_a_limit_or_a_stop_kept_asleep(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"budgets": {"hops": 1}})) as network:
        ann = await network.join("ann")
        bob, cy = [await network.join(name, "agent") for name in ("bob", "cy")]
        await ann.say("bob", "go")
        await bob.event()
        last = await bob.call("send_text_message", to="cy", text="on", cause="m1")
        assert last["not_woken"] == {"cy": "hop_limit"}
        assert "queued" not in last
        assert (await cy.event())["message"]["content"] == "on", "it arrives all the same"
        await ann.call("stop", scope="agent", target="bob")
        sent = await ann.say("bob", "are you there?")
        assert sent["not_woken"] == {"bob": "stopped"}
        assert "queued" not in sent
        why = await ann.call("explain_wake", agent="bob", message_id=sent["id"])
        assert (why["woken"], why["reason"]) == (False, "stopped")
        assert why["explanation"] == SENTENCES[Reason.STOPPED]


@pytest.mark.behaviour("H-102")
async def test_a_receipt_tells_when_a_message_was_in_a_prompt_and_how_it_was_answered(
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
        told = await receipt(ann, message, "turn", "step", "answer", "outcome")
        assert told == ["bob-m1", n, "answered", "finished"]
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


async def test_an_end_that_comes_before_its_beginning_is_refused_and_may_come_again(
    network: Network,
) -> None:
    ann, bob = await pair(network)
    await ann.say("bob", "one")
    first = await bob.post("end_turn", end={"id": "bob-m1", "outcome": "finished"})
    await begin(bob, "bob-m1", "m1")
    assert (await bob.answer(first))["code"] == "unknown_turn"
    await end(bob, "bob-m1")
    (told,) = (await ann.call("list_turns"))["turns"]
    assert told["outcome"] == "finished"


async def test_who_speaks_is_answered_with_the_message_as_the_log_has_it(
    in_memory: Networks,
) -> None:
    key = "sk-proj-abcdefghijklmnop1234567890"
    mods = [Moderation(ModerationConfig())]
    async with in_memory.start(NETWORK, mods=mods) as network:
        ann, bob = await pair(network)
        for said in (
            {"to": "bob", "text": "plain"},
            {"to": "bob", "text": f"my key is {key}", "mentions": ["bob"]},
        ):
            sent = await ann.call("send_text_message", cid=f"c{said['text'][:2]}", **said)
            event = await bob.event()
            assert sent["message"] == event["message"]
            assert key not in str(sent)
            again = await ann.call("send_text_message", cid=f"c{said['text'][:2]}", **said)
            assert again["message"] == sent["message"], "and so is who repeats it"
