"""Rules and secrets, in a running network."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Reject
from hubbub.mods.loader import load_mods
from hubbub.mods.moderation import Moderation, ModerationConfig
from hubbub.protocol.messages import Draft
from hubbub.testing.mod_contract import mod_contract
from tests.interaction.hand_clock import HandClock
from tests.interaction.peers import Networks, Peer, config, soon

SETTINGS: dict[str, Any] = {"words": ["darn"], "rules": [{"rate": {"messages": 9, "per": "1m"}}]}
test_it_is_a_good_neighbour = pytest.mark.behaviour("M-240")(mod_contract(Moderation, SETTINGS))

NETWORKS = Networks(sockets=False)
AWS = "AKIA" + "Q3EGRTZ5XN7WPL2M"


def mod(*rules: dict[str, Any], **settings: Any) -> Moderation:
    return Moderation(ModerationConfig.model_validate({"rules": rules, **settings}))


async def refused(peer: Peer, text: str) -> str:
    with pytest.raises(OperationError) as caught:
        await peer.call("broadcast_text_message", text=text)
    assert caught.value.code == "rejected"
    return caught.value.message


def on_disk(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in folder.glob("x.db*"))


@pytest.mark.behaviour("M-242")
async def test_a_secret_never_enters_the_log_and_its_sender_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    async with NETWORKS.start(store=f"sqlite:{path}", mods=[mod()]) as network:
        ann, bob = await network.join("ann"), await network.join("bob", "agent")
        sent = await ann.call("send_text_message", to="bob", text=f"use {AWS} please", cid="c1")
        [note] = sent["notes"]
        assert "aws key" in note
        assert AWS not in note
        event = await bob.event()
        assert event["message"]["content"] == "use [redacted: aws key] please"
        assert "notes" not in event["message"]
        plain = await bob.call("send_text_message", to="ann", text="thanks")
        assert "notes" not in plain
        await network.quiet()
    written = on_disk(tmp_path)
    assert b"[redacted: aws key]" in written
    assert AWS.encode() not in written


@pytest.mark.behaviour("M-242")
async def test_edits_are_judged_like_messages() -> None:
    mods = [mod({"words": ["darn"]}), *load_mods(["edits"])]
    async with NETWORKS.start(mods=mods) as network:
        ann = await network.join("ann")
        id = (await ann.call("broadcast_text_message", text="fine"))["id"]
        with pytest.raises(OperationError, match="a word that is not allowed"):
            await ann.call("edit_message", message_id=id, text="darn")
        await ann.call("edit_message", message_id=id, text=f"key {AWS}")
        read = await ann.call("read_message", id=id)
        assert read["content"] == "key [redacted: aws key]"


@pytest.mark.behaviour("M-244")
async def test_a_pattern_without_end_holds_nobody_up() -> None:
    mods = [mod({"regex": r"((a+)+)+$", "senders": ["human"]}, regex_time=0.02)]
    async with NETWORKS.start(mods=mods) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        async with soon():
            for _ in range(5):
                assert "could not be checked" in await refused(ann, "a" * 60_000 + "!")
            await bot.call("broadcast_text_message", text="a" * 60_000 + "!")
            await ann.call("broadcast_text_message", text="fine")
        assert not network.hub.mods.failures


@pytest.mark.behaviour("M-246")
async def test_who_speaks_too_often_waits() -> None:
    clock = HandClock()
    file = config(humans={"olga": {"roles": ["owner"]}, "ann": {}}, network={"auth": "open"})
    rule = {"rate": {"messages": 2, "per": "10s"}}
    async with NETWORKS.start(file, mods=[mod(rule)], clock=clock) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await ann.call("broadcast_text_message", text="1", cid="c1")
        clock.wall += 4
        await ann.call("broadcast_text_message", text="2")
        for _ in range(3):
            assert "again in 6.0 s" in await refused(ann, "3")
        again = await ann.ask("broadcast_text_message", text="1", cid="c1")
        assert again["duplicate"], "what was said once is answered as it was then"
        await bob.call("broadcast_text_message", text="1")
        clock.wall += 6
        await ann.call("broadcast_text_message", text="3")
        assert "again in 4.0 s" in await refused(ann, "4")


@pytest.mark.behaviour("M-246")
async def test_what_another_rule_refuses_does_not_count() -> None:
    rules: list[dict[str, Any]] = [
        {"rate": {"messages": 1, "per": "1h"}},
        {"words": ["darn"]},
    ]
    async with NETWORKS.start(mods=[mod(*rules)]) as network:
        ann = await network.join("ann")
        for _ in range(3):
            assert "a word" in await refused(ann, "darn")
        await ann.call("broadcast_text_message", text="fine")
        own = network.hub.mods.pipeline.mods[0]
        network.hub.mods.configure(own, own.config)
        assert "at most 1 messages in 3600 s" in await refused(ann, "more")


@pytest.mark.behaviour("M-245")
async def test_owners_can_be_exempt() -> None:
    file = config(
        network={"auth": "tokens"},
        humans={"olga": {"roles": ["owner"]}, "ann": {}},
    )
    async with NETWORKS.start(
        file, mods=[mod({"words": ["darn"], "exempt_owners": True})]
    ) as network:
        host = network.hub.mods.pipeline.mods[0].host
        assert host.owns("olga")
        assert not host.owns("ann")
        assert not host.owns("nobody")
    async with NETWORKS.start(mods=[mod({"words": ["darn"], "exempt_owners": True})]) as network:
        ann, bot = await network.join("ann"), await network.join("bot", "agent")
        await ann.call("broadcast_text_message", text="darn")
        assert "a word" in await refused(bot, "darn")


@pytest.mark.behaviour("M-245")
async def test_rules_hold_in_the_threads_that_they_name_and_under_them() -> None:
    file = config(channels={"desk": {"members": ["ann"]}, "bar": {"members": ["ann"]}})
    async with NETWORKS.start(
        file, mods=[mod({"words": ["darn"], "threads": ["channel_desk"]})]
    ) as net:
        ann = await net.join("ann")
        await ann.call("post_to_channel", channel="bar", text="darn")
        top = await ann.call("post_to_channel", channel="desk", text="fine")
        with pytest.raises(OperationError, match="a word"):
            await ann.call("reply", message_id=top["id"], text="darn")


@pytest.mark.behaviour("M-245")
async def test_a_reminder_is_judged_as_what_its_owner_says() -> None:
    async with NETWORKS.start(mods=[mod({"words": ["darn"], "senders": ["agent"]})]) as network:
        await network.join("ann")
        await network.join("bot", "agent")
        own = network.hub.mods.pipeline.mods[0]
        draft = Draft("hub", "system", "broadcast", "broadcast", "darn")
        assert own.on_message(draft) is PASS
        assert own.on_message(replace(draft, timer_of="ann")) is PASS
        assert isinstance(own.on_message(replace(draft, timer_of="bot")), Reject)
