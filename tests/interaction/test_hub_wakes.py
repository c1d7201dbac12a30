"""Wakes, interactions and hops of a running hub."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hubbub.network.records import CursorMoved
from hubbub.network.wakes import SENTENCES, Reason
from tests.interaction.accounts import limited
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

NETWORK = config(channels={"general": {}})


async def woken(peer: Peer, count: int = 1) -> list[Any]:
    """The wakes of the next events, None where there is none."""
    return [event.get("wake") for event in await peer.take(count)]


async def reasons(peer: Peer, count: int = 1) -> list[str | None]:
    return [(wake or {}).get("reason") for wake in await woken(peer, count)]


async def crew(network: Network) -> tuple[Peer, Peer, Peer]:
    """Ann, and two agents."""
    ann = await network.join("ann")
    return ann, await network.join("calc", "agent"), await network.join("scribe", "agent")


@pytest.mark.behaviour("W-3")
async def test_a_person_who_replies_wakes_the_agent_that_spoke_last(network: Network) -> None:
    ann, calc, scribe = await crew(network)
    root = await scribe.call("post_to_channel", channel="general", text="I found something")
    await ann.call("reply", message_id=root["id"], text="what?")
    assert await reasons(scribe) == ["last_speaker"], "scribe wrote the first message"
    await calc.call("reply", message_id=root["id"], text="I think")
    await ann.call("reply", message_id=root["id"], text="go on")
    assert await reasons(calc, 3) == [None, None, "last_speaker"]
    await ann.call("reply", message_id=root["id"], text="and you, @scribe?")
    assert await woken(calc) == [None]
    assert await reasons(scribe, 3) == [None, None, "mention"]


async def explain(peer: Peer, agent: str, message: str) -> Any:
    return await peer.call("explain_wake", agent=agent, message_id=message)


@pytest.mark.behaviour("W-13")
async def test_every_wake_decision_can_be_explained(in_memory: Networks) -> None:
    file = config(channels={"general": {}}, network={"budgets": {"hops": 1}})
    async with in_memory.start(file) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        calc, scribe = await network.join("calc", "agent"), await network.join("scribe", "agent")
        explanations: dict[str, Any] = {}

        async def add(message: Any, agent: str = "calc") -> Any:
            answer = await explain(ann, agent, message["id"])
            explanations[answer["reason"]] = answer
            return message

        direct = await add(await ann.say("calc", "x"))
        await add(await ann.call("post_to_channel", channel="general", text="@calc"))
        root = await add(await ann.call("post_to_channel", channel="general", text="x"))
        await add(await ann.call("broadcast_text_message", text="x"))
        await add(await calc.call("reply", message_id=root["id"], text="x"))
        await add(await ann.call("reply", message_id=root["id"], text="x"))
        await add(await scribe.call("broadcast_text_message", text="x"))
        await add(await bob.say("ann", "x"))
        await add(await scribe.say("calc", "x", cause=root["id"]))
        assert explanations.keys() == {
            "direct", "mention", "not_mentioned", "broadcast", "own", "last_speaker",
            "broadcast_policy", "not_received", "hop_limit",
        }  # fmt: skip
        for reason, answer in explanations.items():
            assert answer["explanation"] == SENTENCES[Reason(reason)]
            woke = reason in ("direct", "mention", "broadcast", "last_speaker")
            assert answer["woken"] is woke
            assert ("wake" in answer) is woke
            assert answer.get("state") == ("pending" if woke else None)
        assert explanations["direct"]["wake"]["turn"] == f"calc-{direct['id']}"
        people = await ann.ask("explain_wake", agent="ann", message_id=direct["id"])
        assert people["code"] == "unknown_participant"
        others = await scribe.ask("explain_wake", agent="calc", message_id=direct["id"])
        assert others["code"] == "unknown_message"
        assert (await explain(calc, "calc", direct["id"]))["woken"] is True


@pytest.mark.behaviour("W-11")
async def test_a_caused_message_continues_the_interaction_one_hop_on(network: Network) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    scribe = await network.join("scribe", "agent")
    opened = await ann.say("calc", "ask scribe")
    await calc.say("scribe", "what?", cause=opened["id"])
    asked = (await scribe.event())["message"]
    assert (asked["interaction_id"], asked["hop"]) == (f"i{opened['seq']}", 1)
    assert asked["cause_id"] == opened["id"]
    await scribe.say("calc", "this", cause=f"scribe-{asked['id']}")
    answer = (await calc.take(2))[1]["message"]
    assert (answer["interaction_id"], answer["hop"]) == (f"i{opened['seq']}", 2)
    await calc.say("ann", "unasked")
    alone = (await ann.event())["message"]
    assert (alone["interaction_id"], alone["hop"]) == (f"i{alone['seq']}", 0)


async def bounce(first: Peer, second: Peer, names: tuple[str, str], message: Any) -> list[Any]:
    """Two agents answer each other, naming the cause, until the hub refuses one."""
    answers = []
    senders = [(first, names[1]), (second, names[0])]
    while message["op"] == "result":
        answers.append(message["value"])
        sender, to = senders[(len(answers) - 1) % 2]
        cause = message["value"]["id"]
        message = await sender.ask("send_text_message", to=to, text="and you?", cause=cause)
    answers.append(message)
    return answers


def is_notice(event: Any) -> bool:
    return bool(event["message"]["sender_kind"] == "system")


@pytest.mark.behaviour("W-11", "W-12")
async def test_two_agents_that_answer_each_other_stop_at_the_hop_limit(in_memory: Networks) -> None:
    async with in_memory.start(limited(hops=8)) as network:
        ann = await network.join("ann")
        calc, scribe = await network.join("calc", "agent"), await network.join("scribe", "agent")
        opening = await ann.ask("send_text_message", to=["calc", "scribe"], text="talk")
        *sent, refused = await bounce(calc, scribe, ("calc", "scribe"), opening)
        assert len(sent) == 1 + 8
        assert refused["code"] == "hop_limit"
        assert refused["details"] == {"interaction_id": "i1", "hops": 8}
        events = [e for e in await calc.sync() + await scribe.sync() if not is_notice(e)]
        events.sort(key=lambda event: event["seq"])
        assert [event["message"]["hop"] for event in events] == [0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        assert events[-2].get("wake") is not None
        assert events[-1].get("wake") is None  # the last message arrives and wakes no agent
        last = await explain(ann, "scribe" if len(sent) % 2 == 0 else "calc", sent[-1]["id"])
        assert (last["woken"], last["reason"]) == (False, "hop_limit")
        opening = await scribe.ask("send_text_message", to="calc", text="talk")
        *sent, refused = await bounce(calc, scribe, ("calc", "scribe"), opening)
        assert (len(sent), refused["details"]["hops"]) == (1 + 4, 4), "half if an agent starts"


@pytest.mark.behaviour("W-11", "W-12")
async def test_the_hop_limit_holds_across_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    file, store = config(network={"budgets": {"hops": 2}}), f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(file, store=store) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent")
        scribe = await network.join("scribe", "agent")
        opened = await ann.say(["calc", "scribe"], "talk")
        first = await calc.say("scribe", "1", cause=opened["id"])
    async with in_memory.start(file, store=store) as network:
        calc, scribe = await network.join("calc", "agent"), await network.join("scribe", "agent")
        second = await scribe.say("calc", "2", cause=first["id"])
        error = await calc.ask("send_text_message", to="scribe", text="3", cause=second["id"])
        assert error["code"] == "hop_limit"
        await calc.until(lambda: len(calc.events) >= 2)  # a notice to people may follow
        event = calc.events[1]
        assert (event["message"]["hop"], event.get("wake")) == (2, None)
        ann = await network.join("ann")
        again = await ann.say("calc", "3", cause=opened["id"])
        message = (await calc.sync())[-1]["message"]
        fresh = (f"i{again['seq']}", 0)
        assert (message["interaction_id"], message["hop"]) == fresh, "a person starts a new one"


@pytest.mark.behaviour("P-28")
async def test_a_cause_that_never_reached_the_sender_is_refused(network: Network) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    bob, spy = await network.join("bob"), await network.join("spy", "agent")
    secret = await ann.say("bob", "between us")
    for cause, code in (
        (secret["id"], "unknown_message"),
        ("m99", "unknown_message"),
        ("calc-m1", "bad_request"),
        ("spy-m99", "unknown_message"),
        ("whatever", "bad_request"),
    ):
        error = await spy.ask("send_text_message", to="calc", text="x", cause=cause)
        assert error["code"] == code, cause
    assert await calc.sync() == []
    assert await bob.texts() == ["between us"]


STAMPED = (
    *("sender", "sender_id", "sender_kind", "sent_at"),
    *("seq", "tseq", "interaction_id", "hop"),
)


@pytest.mark.behaviour("P-27")
async def test_a_client_cannot_set_fields_that_the_hub_stamps(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for forged in (*STAMPED, "id"):
        error = await ann.ask("send_text_message", to="bob", text="x", **{forged: "m1"})
        assert error["code"] == "bad_request"
        assert forged in error["message"]
    assert await bob.sync() == []


async def disconnect(network: Network, name: str, peer: Peer) -> None:
    await peer.close()
    await network.gone(name)


@pytest.mark.behaviour("W-7")
async def test_an_agent_that_was_down_is_woken_once_when_it_returns(network: Network) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent", turns=True)
    await disconnect(network, "calc", calc)
    sent = [await ann.say("calc", text) for text in "ab"]
    back = await network.join("calc", "agent", turns=True)
    assert back.ready["pending"] == []
    events = await back.take(2)
    assert [event["wake"]["turn"] for event in events] == [f"calc-{s['id']}" for s in sent]
    await back.ack(events[-1]["seq"])
    await back.sync()
    network.hub.gateway.cursors.flush()
    await network.quiet()
    await disconnect(network, "calc", back)
    again = await network.join("calc", "agent", turns=True)
    assert await again.sync() == []
    pending = again.ready["pending"]  # both, since no turn has ended
    assert [p["message"]["content"] for p in pending] == ["a", "b"]
    assert [p.get("started") for p in pending] == [None, None]
    turn = f"calc-{sent[0]['id']}"
    start = {"id": turn, "thread_id": "dm.ann.calc", "messages": [s["id"] for s in sent]}
    await again.call("begin_turn", start=start)
    await disconnect(network, "calc", again)
    third = await network.join("calc", "agent", turns=True)
    assert [p["started"] for p in third.ready["pending"]] == [turn, turn]
    await third.call("end_turn", end={"id": turn, "outcome": "cancelled"})
    await disconnect(network, "calc", third)
    last = await network.join("calc", "agent", turns=True)
    assert last.ready["pending"] == []


@pytest.mark.behaviour("W-7")
async def test_an_ack_settles_the_wake_of_a_client_without_turns(network: Network) -> None:
    ann, calc = await network.join("ann"), await network.join("calc", "agent")
    sent = await ann.say("calc", "a")
    await calc.ack((await calc.event())["seq"])
    await calc.sync()
    network.hub.gateway.cursors.flush()
    await network.quiet()
    assert (await explain(ann, "calc", sent["id"]))["state"] == "ended"
    back = await network.join("calc", "agent", turns=True)
    assert back.ready["pending"] == []


@pytest.mark.behaviour("W-2")
async def test_a_silent_message_is_delivered_and_wakes_no_agent(network: Network) -> None:
    ann, calc, scribe = await crew(network)
    sent = await ann.call("send_text_message", to="calc", text="for later", silent=True)
    assert (sent.get("queued", {}), await woken(calc)) == ({}, [None])
    why = await explain(ann, "calc", sent["id"])
    assert (why["woken"], why["reason"]) == (False, Reason.SILENT)
    under = {"message_id": sent["id"], "text": "it is 4", "content": {"sum": 4}}
    await ann.call("reply", **under)
    event = await calc.event()
    assert event["message"]["content"] == {"sum": 4}
    assert event["message"]["text_representation"] == "it is 4"
    assert event["wake"]["reason"] == "direct"
    await ann.call("post_to_channel", channel="general", text="hi @scribe", silent=True)
    assert await woken(scribe) == [None]


async def test_an_acknowledged_wake_is_stored_at_once_and_other_acknowledgements_later(
    network: Network, moody: MoodyStore
) -> None:
    ann, bot = await network.join("ann"), await network.join("bot", "agent", turns=True)
    stored = []
    for text in ("first", "second"):
        await ann.say("bot", text)
    await ann.call("post_to_channel", channel="general", text="wakes no one")
    await bot.take(3)
    for seq in (1, 2, 3):
        await bot.ack(seq)
        await bot.sync()
        await network.quiet()
        records = [record for batch in moody.batches for record in batch.records]
        moved = [each.seq for each in records if isinstance(each, CursorMoved) and each.seq]
        stored.append(moved)
    assert stored == [[1], [1, 2], [1, 2]]
    await bot.close()
    await network.gone("bot")
    await ann.say("bot", "while it is away")
    back = await network.join("bot", "agent", turns=True)
    wake = {"reason": "direct", "reply": "required", "turn": "bot-m4"}
    assert (await back.event())["wake"] == wake
