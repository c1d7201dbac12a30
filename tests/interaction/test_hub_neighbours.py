"""No input of one participant harms another."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hubbub.mods.api import PASS, Mod, ModConfig, Replace, Verdict
from hubbub.network.log import Change
from hubbub.network.records import Record
from hubbub.protocol.messages import Draft
from tests.interaction.peers import Network, Networks, eventually
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("B-8")


async def test_a_message_never_reaches_a_thread_with_a_similar_name(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    eve = await network.join("eve")
    _error, code = await (await network.attach()).refused(participant="direct_bob")
    assert code == 4500
    await ann.call("create_channel", name="desk", members=["bob"])
    copy = await eve.ask("create_channel", name="channel_desk", members=["ann"])
    assert copy["code"] == "bad_request"
    await ann.say("direct_bob", "for bob alone")
    await ann.call("post_to_channel", channel="channel_desk", text="for the desk")
    assert await bob.texts() == ["for bob alone", "for the desk"]
    assert await eve.texts() == []


async def test_a_record_with_numbers_no_store_can_hold_fails_alone(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    eve = await network.join("eve", "agent", turns=True)
    wake = await ann.say("eve", "hi")
    turn = f"eve-{wake['id']}"
    start = {"id": turn, "thread_id": "dm.ann.eve", "messages": [wake["id"]]}
    await eve.call("begin_turn", start=start)
    steps = [{"n": 2**70}, {"n": 1, "tokens_in": 10**400}, {"n": 1, "tokens_out": -1}]
    refs = [await eve.post("record_step", turn=turn, step=step) for step in steps]
    sent = [await ann.say("bob", text) for text in "abc"]
    assert [message["tseq"] for message in sent] == [1, 2, 3]
    assert [(await eve.answer(ref))["code"] for ref in refs] == ["bad_request"] * 3
    assert await bob.texts() == ["a", "b", "c"]


async def test_an_oversized_card_is_refused_on_identify(network: Network) -> None:
    large = {"description": "x" * 10_000}
    error, code = await (await network.attach()).refused(participant="eve", card=large)
    assert (error["code"], code) == ("too_large", 4501)
    ann = await network.join("ann", card={"description": "x" * 4000})
    assert [p["id"] for p in ann.ready["participants"]] == ["ann"]


class GarblingMod(Mod):
    """A mod that replaces some contents with a lone surrogate or an object that is not JSON."""

    name = "garbling"

    def on_message(self, draft: Draft) -> Verdict:
        odd: dict[Any, Any] = {"surrogate": "\ud800", "object": object()}
        content = odd.get(draft.content) if isinstance(draft.content, str) else None
        return PASS if content is None else Replace(draft.replace(content=content))


@pytest.mark.parametrize("odd", ["surrogate", "object"])
async def test_an_unwritable_message_fails_alone_in_its_batch(
    in_memory: Networks, moody: MoodyStore, odd: str
) -> None:
    garbling = GarblingMod(ModConfig(on_failure="reject"))
    async with in_memory.start(store=moody, mods=[garbling]) as network:
        ann, bob, eve = [await network.join(name) for name in ("ann", "bob", "eve")]
        moody.gate.clear()
        first = await eve.post("send_text_message", to="bob", text="holds up the commit")
        await moody.until_waiting()
        refs = [await ann.post("send_text_message", to="bob", text=f"{n}") for n in range(5)]
        bad = await eve.post("send_text_message", to="bob", text=odd)
        refs += [await ann.post("send_text_message", to="bob", text=f"{n}") for n in range(5, 9)]
        channel = await ann.post("create_channel", name="desk")
        await eventually(lambda: network.hub.kernel.log.waiting == 13)  # including three notices
        moody.gate.set()
        assert (await eve.answer(first))["op"] == "result"
        refused = await eve.answer(bad)
        assert (refused["code"], refused["details"]) == ("rejected", {"mod": "garbling"})
        positions = [(await ann.answer(ref))["value"]["tseq"] for ref in refs]
        assert positions == list(range(1, 10))
        assert (await ann.answer(channel))["op"] == "result"
        assert len([text for text in await bob.texts() if isinstance(text, str)]) == 10


async def test_a_change_that_raises_does_not_fail_its_batch(
    network: Network, moody: MoodyStore
) -> None:
    def broken(head: int) -> list[Record]:
        raise ValueError("there are no such records")

    log = network.hub.kernel.log
    answer: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    moody.gate.clear()
    async with asyncio.TaskGroup() as group:
        group.create_task(log.write())
        await moody.until_waiting()
        good = group.create_task(log.write())
        log.change(Change(broken, answer.set_result))
        await eventually(lambda: log.waiting == 2)
        moody.gate.set()
        await good
    assert str(await answer) == "there are no such records"
