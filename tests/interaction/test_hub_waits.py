"""Agents that wait for each other's answers; cycles of waits are refused."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.mods.api import Mod, ModConfig, Pass, Reject, Verdict
from hubbub.protocol.messages import Draft
from tests.interaction.peers import Frame, Network, Networks, Peer, eventually
from tests.interaction.stores import MoodyStore


async def agents(network: Network, *names: str) -> list[Peer]:
    return [await network.join(name, "agent", turns=True) for name in names]


async def ask(peer: Peer, to: str, **more: Any) -> Frame:
    """Send a question that awaits an answer; the hub's answer frame."""
    return await peer.ask("send_text_message", to=to, text="?", awaits=True, **more)


@pytest.mark.behaviour("H-55")
async def test_a_question_that_closes_a_cycle_of_waits_is_refused(network: Network) -> None:
    a, b, c, d = await agents(network, "a", "b", "c", "d")
    for peer, to in ((a, "b"), (b, "c"), (d, "a"), (d, "b")):
        assert (await ask(peer, to))["op"] == "result"
    error = await ask(c, "a")
    assert (error["code"], error["details"]["cycle"]) == ("wait_cycle", ["c", "a", "b", "c"])
    assert "c -> a -> b -> c" in error["message"]
    assert (await ask(b, "a"))["details"]["cycle"] == ["b", "a", "b"]
    assert (await ask(c, "e"))["code"] == "unknown_participant"
    assert (await c.say("a", "not a question"))["id"]


@pytest.mark.behaviour("H-56")
async def test_only_an_answer_or_stop_waiting_ends_a_wait(network: Network) -> None:
    a, b, c = await agents(network, "a", "b", "c")
    asked = (await ask(a, "b"))["value"]["id"]
    await b.say("c", "hello")
    await c.say("a", "hello")
    await b.call("broadcast_text_message", text="@a hello")
    await b.call("stop_waiting", message=asked)
    assert (await ask(b, "a"))["code"] == "wait_cycle", "only the waiting agent can stop its wait"
    for _ in range(2):
        await a.call("stop_waiting", message=asked)
    answer = await ask(b, "a")
    assert answer["op"] == "result"
    await a.say("b", "here")
    assert (await ask(a, "b"))["op"] == "result"
    await b.say("a", "here")
    sent = await a.call("delegate", to="b", task="count", awaits=True)
    assert (await ask(b, "a"))["code"] == "wait_cycle"
    await b.call("report", request=sent["id"], status="result", text="1")
    answer = await ask(b, "a")
    assert answer["op"] == "result", "a report is an answer"
    await b.call("stop_waiting", message=answer["value"]["id"])
    await a.sync()
    await a.call("delegate", to="b", task="count", deadline_s=0.02, awaits=True)
    await a.event()
    assert (await ask(b, "a"))["op"] == "result", "a failed request is an answer"


@pytest.mark.behaviour("H-56")
async def test_a_wait_ends_with_its_turn(network: Network) -> None:
    ann = await network.join("ann")
    a, b = await agents(network, "a", "b")
    for stopped in (False, True):
        sent = await ann.say("a", "go")
        turn = (await a.event())["wake"]["turn"]
        start = {"id": turn, "thread_id": "dm.a.ann", "messages": [sent["id"]]}
        await a.call("begin_turn", start=start)
        await ask(a, "b", cause=turn)
        assert (await ask(b, "a"))["code"] == "wait_cycle"
        if stopped:
            await ann.call("stop", scope="turn", target=turn)
        else:
            await a.call("end_turn", end={"id": turn, "outcome": "timeout"})
        answer = await ask(b, "a")
        assert answer["op"] == "result"
        await b.call("stop_waiting", message=answer["value"]["id"])
        await a.sync()


@pytest.mark.behaviour("H-56")
async def test_a_wait_ends_when_its_agent_disconnects(network: Network) -> None:
    a, b = await agents(network, "a", "b")
    await ask(a, "b")
    await a.close()
    await network.gone("a")
    await eventually(lambda: not network.hub.services.requests.waits.held)
    assert (await ask(b, "a"))["op"] == "result"


class Hush(Mod):
    name = "hush"

    def on_message(self, draft: Draft) -> Verdict:
        return Reject("hush") if draft.content == "hush" else Pass()


@pytest.mark.behaviour("H-56")
async def test_a_question_that_is_not_logged_starts_no_wait(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(store=moody, mods=[Hush(ModConfig())]) as network:
        a, b = await agents(network, "a", "b")
        moody.failing = 1
        assert (await ask(a, "b"))["code"] == "store_unavailable"
        rejected = await a.ask("send_text_message", to="b", text="hush", awaits=True)
        assert rejected["code"] == "rejected"
        assert (await ask(a, "b", cause="m99"))["code"] == "unknown_message"
        first = await ask(a, "b", cid="c")
        await b.say("a", "here")
        again = await ask(a, "b", cid="c")
        assert (again["value"]["id"], again["duplicate"]) == (first["value"]["id"], True)
        assert not network.hub.services.requests.waits.held
        assert (await ask(b, "a"))["op"] == "result"


async def test_only_an_agents_direct_message_to_one_agent_starts_a_wait(network: Network) -> None:
    ann = await network.join("ann")
    a, *_ = await agents(network, "a", "b", "c")
    error = await a.ask("send_text_message", to=["b", "c"], text="?", awaits=True)
    assert (error["code"], "awaits" in error["message"]) == ("bad_request", True)
    error = await a.ask("broadcast_text_message", text="@b ?", awaits=True)
    assert error["code"] == "bad_request"
    assert (await ask(ann, "a"))["op"] == "result"
    assert (await ask(a, "ann"))["op"] == "result", "a question to a person starts no wait"
