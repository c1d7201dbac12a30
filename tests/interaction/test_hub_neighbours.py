"""Nothing that one participant sends hurts the others."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hubbub.mods.api import PASS, Mod, ModConfig, Replace, Verdict
from hubbub.protocol.messages import Draft
from tests.interaction.peers import Network, Networks, eventually
from tests.interaction.stores import MoodyStore

pytestmark = pytest.mark.behaviour("B-8")


async def test_who_writes_to_a_thread_reaches_no_namesake(network: Network) -> None:
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


@pytest.mark.parametrize(
    "step", [{"n": 2**70}, {"n": 1, "tokens_in": 10**400}, {"n": 1, "tokens_out": -1}]
)
async def test_a_record_that_no_store_can_keep_is_refused_alone(
    network: Network, step: dict[str, int]
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    eve = await network.join("eve", "agent", turns=True)
    wake = await ann.say("eve", "hi")
    turn = f"eve-{wake['id']}"
    start = {"id": turn, "thread_id": "dm.ann.eve", "messages": [wake["id"]]}
    await eve.call("begin_turn", start=start)
    refs = [await eve.post("record_step", turn=turn, step=step) for _ in range(5)]
    sent = [await ann.say("bob", text) for text in "abc"]
    assert [message["tseq"] for message in sent] == [1, 2, 3]
    assert [(await eve.answer(ref))["code"] for ref in refs] == ["bad_request"] * 5
    assert await bob.texts() == ["a", "b", "c"]


async def test_a_card_is_small_because_everybody_is_told_it(network: Network) -> None:
    large = {"description": "x" * 10_000}
    error, code = await (await network.attach()).refused(participant="eve", card=large)
    assert (error["code"], code) == ("too_large", 4501)
    ann = await network.join("ann", card={"description": "x" * 4000})
    assert [p["id"] for p in ann.ready["participants"]] == ["ann"]


class Garbling(Mod):
    """A mod that makes of some messages what no store can keep, or what is no JSON at all."""

    name = "garbling"

    def on_message(self, draft: Draft) -> Verdict:
        if draft.content == "surrogate":
            return Replace(replace(draft, content="\ud800"))
        if draft.content == "object":
            return Replace(replace(draft, content=object()))  # type: ignore[arg-type]  # its defect
        return PASS


@pytest.mark.parametrize("odd", ["surrogate", "object"])
async def test_a_message_that_cannot_be_written_takes_no_others_with_it(
    in_memory: Networks, odd: str
) -> None:
    store, garbling = MoodyStore(), Garbling(ModConfig(on_failure="reject"))
    async with in_memory.start(store=store, mods=[garbling]) as network:
        ann, bob, eve = [await network.join(name) for name in ("ann", "bob", "eve")]
        store.gate.clear()
        first = await eve.post("send_text_message", to="bob", text="holds up the commit")
        await eventually(store.waiting.is_set)
        refs = [await ann.post("send_text_message", to="bob", text=f"{n}") for n in range(5)]
        bad = await eve.post("send_text_message", to="bob", text=odd)
        refs += [await ann.post("send_text_message", to="bob", text=f"{n}") for n in range(5, 9)]
        channel = await ann.post("create_channel", name="desk")
        await eventually(lambda: network.hub.log.waiting == 13)  # three of them notices
        store.gate.set()
        assert (await eve.answer(first))["op"] == "result"
        refused = await eve.answer(bad)
        assert (refused["code"], refused["details"]) == ("rejected", {"mod": "garbling"})
        places = [(await ann.answer(ref))["value"]["tseq"] for ref in refs]
        assert places == list(range(1, 10))
        assert (await ann.answer(channel))["op"] == "result"
        said = [text for text in await bob.texts() if isinstance(text, str)]
        assert len(said) == 10
