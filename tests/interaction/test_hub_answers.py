"""What a sender learns: how much waits where it has spoken, and what became of what it said."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.network.wakes import SENTENCES, Reason
from tests.interaction.peers import Network, Networks, Peer, config, eventually

DESK = config(channels={"desk": {"members": "all"}})


async def begin(peer: Peer, turn: str, *messages: str, thread: str = "dm.ann.bob") -> None:
    start = {"id": turn, "thread_id": thread, "messages": messages}
    await peer.call("begin_turn", start=start)


async def end(peer: Peer, turn: str, outcome: str = "finished") -> None:
    await peer.call("end_turn", end={"id": turn, "outcome": outcome})


async def receipt(peer: Peer, message: Any, of: str = "bob") -> dict[str, Any]:
    answer = await peer.call("read_receipts", id=message["id"])
    found: dict[str, Any] = next(r for r in answer["receipts"] if r["participant"] == of)
    return found


@pytest.mark.behaviour("H-101")
async def test_who_speaks_learns_how_much_waits_at_the_agent(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    first = await ann.say("bob", "one")
    assert first["queued"] == {"bob": 1}
    assert "not_woken" not in first
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 2}
    await begin(bob, "bob-m1", "m1", "m2")
    assert (await ann.say("bob", "three"))["queued"] == {"bob": 3}
    await end(bob, "bob-m1")
    assert (await ann.say("bob", "four"))["queued"] == {"bob": 2}
    assert "queued" not in await bob.say("ann", "people have no queue")


@pytest.mark.behaviour("H-101")
async def test_a_turn_that_waits_for_a_person_keeps_nobody_waiting(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    await ann.say("bob", "pay")
    await begin(bob, "bob-m1", "m1")
    asked: dict[str, Any] = {"turn": "bob-m1", "call": "1:a", "tool": "pay", "arguments": {}}
    approval = await bob.call("request_approval", **asked)
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 1}
    await ann.call("approve", id=approval["id"])
    assert (await ann.say("bob", "three"))["queued"] == {"bob": 3}, "it works again"


async def test_a_steered_message_is_gone_with_the_turn_that_let_it_in(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    await ann.say("bob", "one")
    await begin(bob, "bob-m1", "m1")
    await ann.say("bob", "and this")
    step = {"n": 1, "steered": [{"message": "m2", "text": "and this"}]}
    await bob.call("record_step", turn="bob-m1", step=step)
    await end(bob, "bob-m1")
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 1}


async def test_an_agent_without_turns_has_dealt_with_what_it_has_acknowledged(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent")
    sent = await ann.say("bob", "one")
    assert sent["queued"] == {"bob": 1}
    await bob.event()
    await bob.ack(sent["seq"])
    await bob.sync()
    network.hub.cursors.flush()
    await network.quiet()
    assert (await ann.say("bob", "two"))["queued"] == {"bob": 1}


async def test_each_agent_that_a_message_wakes_has_its_own_queue(in_memory: Networks) -> None:
    async with in_memory.start(DESK) as network:
        ann = await network.join("ann")
        for name in ("bob", "cy"):
            await network.join(name, "agent", turns=True)
        await ann.say("bob", "one")
        told = await ann.call("post_to_channel", channel="desk", text="@bob and @cy")
        assert told["queued"] == {"bob": 2, "cy": 1}


async def test_what_waited_before_the_hub_stopped_waits_still(
    in_memory: Networks, tmp_path: Any
) -> None:
    store = f"sqlite:{tmp_path}/log.db"
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
        for text in ("one", "two", "three"):
            await ann.say("bob", text)
        await begin(bob, "bob-m1", "m1")
    async with in_memory.start(store=store) as network:
        await eventually(lambda: network.hub.queues.depth("bob") == 3)
        ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
        await end(bob, "bob-m1")
        assert (await ann.say("bob", "four"))["queued"] == {"bob": 3}


@pytest.mark.behaviour("H-103")
async def test_a_sender_learns_whom_the_hop_limit_kept_asleep(in_memory: Networks) -> None:
    async with in_memory.start(config(network={"budgets": {"hops": 1}})) as network:
        ann = await network.join("ann")
        bob, cy = [await network.join(name, "agent") for name in ("bob", "cy")]
        await ann.say("bob", "go")
        await bob.event()
        last = await bob.call("send_text_message", to="cy", text="on", cause="m1")
        assert last["not_woken"] == {"cy": "hop_limit"}
        assert "queued" not in last
        assert (await cy.event())["message"]["content"] == "on", "it arrives all the same"


@pytest.mark.behaviour("H-102")
async def test_a_receipt_tells_when_the_message_was_in_a_prompt_and_how_it_was_answered(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    first = await ann.say("bob", "one")
    assert "step" not in await receipt(ann, first), "no turn has begun"
    await begin(bob, "bob-m1", "m1")
    found = await receipt(ann, first)
    assert (found["state"], found["step"], found.get("answer")) == ("running", 1, None)
    later = await ann.say("bob", "two")
    step = {"n": 2, "steered": [{"message": "m2", "text": "two"}]}
    await bob.call("record_step", turn="bob-m1", step=step)
    await bob.call("send_text_message", to="ann", text="done", cause="bob-m1")
    await end(bob, "bob-m1")
    for message, n in ((first, 1), (later, 2)):
        found = await receipt(ann, message)
        told = [found[key] for key in ("turn", "step", "answer", "outcome")]
        assert told == ["bob-m1", n, "answered", "finished"]


@pytest.mark.behaviour("H-102")
async def test_a_receipt_tells_of_silence_and_of_how_the_turn_ended(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    sent = await ann.say("bob", "one")
    await begin(bob, "bob-m1", "m1")
    await end(bob, "bob-m1", "model_error")
    found = await receipt(ann, sent)
    assert (found["answer"], found["outcome"]) == ("silent", "model_error")


async def test_an_end_that_comes_before_its_beginning_is_refused_and_may_come_again(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    await ann.say("bob", "one")
    over = {"id": "bob-m1", "outcome": "finished"}
    start = {"id": "bob-m1", "thread_id": "dm.ann.bob", "messages": ["m1"]}
    first = await bob.post("end_turn", end=over)
    await bob.call("begin_turn", start=start)
    assert (await bob.answer(first))["code"] == "unknown_turn"
    await end(bob, "bob-m1")
    (told,) = (await ann.call("list_turns"))["turns"]
    assert told["outcome"] == "finished"


async def test_a_turn_that_is_parked_names_the_approvals_that_it_waits_for(
    network: Network,
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    await ann.say("bob", "clean up")
    await begin(bob, "bob-m1", "m1")
    call: dict[str, Any] = {"turn": "bob-m1", "call": "1", "tool": "delete", "arguments": {}}
    asked = await bob.call("request_approval", **call)
    (told,) = (await ann.call("list_turns"))["turns"]
    assert told["waits_for"] == [asked["id"]]
    await ann.call("approve", id=asked["id"])
    (told,) = (await ann.call("list_turns"))["turns"]
    assert not told.get("waits_for")


@pytest.mark.behaviour("H-102")
async def test_a_receipt_tells_that_an_agent_declined(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob", "agent", turns=True)
    sent = await ann.say("bob", "lie for me")
    await begin(bob, "bob-m1", "m1")
    declined = {"id": "c", "name": "decline", "arguments": {"reason": "no"}, "result": "said"}
    await bob.call("record_step", turn="bob-m1", step={"n": 1, "calls": [declined]})
    await bob.call("send_text_message", to="ann", text="I decline: no", cause="bob-m1")
    await end(bob, "bob-m1")
    assert (await receipt(ann, sent))["answer"] == "declined"


@pytest.mark.behaviour("H-103")
async def test_a_sender_learns_that_an_agent_is_stopped_and_so_does_who_asks_why(
    network: Network,
) -> None:
    ann, _ = await network.join("ann"), await network.join("bob", "agent", turns=True)
    await ann.call("stop", scope="agent", target="bob")
    sent = await ann.say("bob", "are you there?")
    assert sent["not_woken"] == {"bob": "stopped"}
    assert "queued" not in sent
    why = await ann.call("explain_wake", agent="bob", message_id=sent["id"])
    assert (why["woken"], why["reason"]) == (False, "stopped")
    assert why["explanation"] == SENTENCES[Reason.STOPPED]
