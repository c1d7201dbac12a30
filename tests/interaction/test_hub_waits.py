"""Who waits for whom: a circle is refused at once, and named."""

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
    """Ask somebody and wait; the frame that the hub answers with."""
    return await peer.ask("send_text_message", to=to, text="?", awaits=True, **more)


@pytest.mark.behaviour("H-55")
async def test_who_ask_each_other_in_a_circle_are_told(network: Network) -> None:
    a, b, c, d = await agents(network, "a", "b", "c", "d")
    for peer, to in ((a, "b"), (b, "c"), (d, "a"), (d, "b")):
        assert (await ask(peer, to))["op"] == "result"
    error = await ask(c, "a")
    assert (error["code"], error["details"]["cycle"]) == ("wait_cycle", ["c", "a", "b", "c"])
    assert "c -> a -> b -> c" in error["message"]
    assert (await ask(b, "a"))["details"]["cycle"] == ["b", "a", "b"]
    assert (await ask(c, "e"))["code"] == "unknown_participant"
    assert (await c.say("a", "without waiting it may"))["id"]


@pytest.mark.behaviour("H-56")
async def test_only_an_answer_or_giving_up_ends_a_wait(network: Network) -> None:
    a, b, c = await agents(network, "a", "b", "c")
    asked = (await ask(a, "b"))["value"]["id"]
    await b.say("c", "hello")
    await c.say("a", "hello")
    await b.call("broadcast_text_message", text="@a hello")
    await b.call("stop_waiting", message=asked)
    assert (await ask(b, "a"))["code"] == "wait_cycle", "it is a who waits"
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
    assert answer["op"] == "result", "a report is an answer too"
    await b.call("stop_waiting", message=answer["value"]["id"])
    await a.sync()
    await a.call("delegate", to="b", task="count", deadline_s=0.02, awaits=True)
    await a.event()
    assert (await ask(b, "a"))["op"] == "result", "and so is the failure of a request"


@pytest.mark.behaviour("H-56")
async def test_the_end_of_its_turn_ends_the_wait(network: Network) -> None:
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
async def test_who_goes_waits_for_nobody(network: Network) -> None:
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
async def test_what_is_not_in_the_log_is_not_waited_for(
    in_memory: Networks, moody: MoodyStore
) -> None:
    async with in_memory.start(store=moody, mods=[Hush(ModConfig())]) as network:
        a, b = await agents(network, "a", "b")
        moody.failing = 1
        assert (await ask(a, "b"))["code"] == "store_unavailable"
        hushed = await a.ask("send_text_message", to="b", text="hush", awaits=True)
        assert hushed["code"] == "rejected"
        assert (await ask(a, "b", cause="m99"))["code"] == "unknown_message"
        first = await ask(a, "b", cid="c")
        await b.say("a", "here")
        again = await ask(a, "b", cid="c")
        assert (again["value"]["id"], again["duplicate"]) == (first["value"]["id"], True)
        assert not network.hub.services.requests.waits.held
        assert (await ask(b, "a"))["op"] == "result"


async def test_only_an_agents_direct_message_to_one_is_waited_for(network: Network) -> None:
    ann = await network.join("ann")
    a, *_ = await agents(network, "a", "b", "c")
    error = await a.ask("send_text_message", to=["b", "c"], text="?", awaits=True)
    assert (error["code"], "awaits" in error["message"]) == ("bad_request", True)
    error = await a.ask("broadcast_text_message", text="@b ?", awaits=True)
    assert error["code"] == "bad_request"
    assert (await ask(ann, "a"))["op"] == "result"
    assert (await ask(a, "ann"))["op"] == "result", "people wait for nobody"
