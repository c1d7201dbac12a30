"""State that a hub reads from its store after a restart: last speakers and left channels."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interaction.peers import Networks, config
from tests.interaction.stores import MoodyStore


@pytest.mark.behaviour("W-3")
@pytest.mark.parametrize("spoke", [True, False])
async def test_the_last_speaker_of_a_thread_survives_a_restart_and_a_failed_commit(
    in_memory: Networks, tmp_path: Path, spoke: bool
) -> None:
    """The agent that replied last, or else the author of the root message."""
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with in_memory.start(store=store) as network:
        ann, calc = await network.join("ann"), await network.join("calc", "agent")
        scribe = await network.join("scribe", "agent")
        root = await scribe.call("broadcast_text_message", text="here is the report")
        first = await ann.call("reply", message_id=root["id"], text="@calc check it")
        if spoke:
            await calc.call("reply", message_id=root["id"], text="it adds up")
    moody = MoodyStore(store)
    async with in_memory.start(store=moody) as network:
        ann = await network.join("ann")
        agents = {name: await network.join(name, "agent") for name in ("calc", "scribe")}
        if spoke:
            moody.failing = 1
            lost = await agents["scribe"].ask("reply", message_id=root["id"], text="never stored")
            assert lost["code"] == "store_unavailable"
        sent = await ann.call("send_text_message", to=first["thread_id"], text="thank you")
        reasons = {}
        for name, agent in agents.items():
            events = {event["seq"]: event for event in await agent.sync()}
            reasons[name] = (events[sent["seq"]].get("wake") or {}).get("reason")
        last = "calc" if spoke else "scribe"
        assert reasons == {"calc": None, "scribe": None, last: "last_speaker"}


async def test_a_restart_does_not_add_participants_to_a_channel_that_they_left(
    in_memory: Networks, tmp_path: Path
) -> None:
    store, file = f"sqlite:{tmp_path / 'hub.db'}", config(channels={"general": {}})
    async with in_memory.start(file, store=store) as network:
        ann = await network.join("ann")
        await network.join("bob")
        await ann.call("leave_channel", channel="general")
    async with in_memory.start(file, store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        assert [c["joined"] for c in ann.ready["channels"]] == [False]
        assert [c["joined"] for c in bob.ready["channels"]] == [True]
        await network.join("carol")
        (channel,) = (await bob.call("list_channels"))["channels"]
        assert channel["members"] == ["bob", "carol"]


@pytest.mark.behaviour("P-13")
@pytest.mark.parametrize("before", [["ann", "bob"], "all"])
async def test_a_restart_removes_members_whom_the_config_no_longer_lists(
    in_memory: Networks, tmp_path: Path, before: str | list[str]
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    first, second = (
        config(humans={"ann": {}, "bob": {}}, channels={"desk": {"members": members}})
        for members in (before, ["ann"])
    )
    async with in_memory.start(first, store=store) as network:
        bob = await network.join("bob")
        await bob.call("create_channel", name="own", members=["ann"])
    async with in_memory.start(second, store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        sent = await ann.call("post_to_channel", channel="desk", text="about bob")
        assert await bob.sync() == []
        assert (await bob.ask("read_message", id=sent["id"]))["code"] == "unknown_message"
        members = {c["name"]: c["members"] for c in (await bob.call("list_channels"))["channels"]}
        assert members == {"desk": ["ann"], "own": ["ann", "bob"]}
    async with in_memory.start(second, store=store) as network:
        bob = await network.join("bob")
        assert (await bob.ask("read_thread", thread="channel_desk"))["code"] == "unknown_thread"


async def test_a_restart_applies_a_new_description_of_a_channel_and_keeps_one_not_mentioned(
    in_memory: Networks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    first, second = (
        config(channels={"desk": {"description": text}}) for text in ("Daily work", "Night shift")
    )
    async with in_memory.start(first, store=store) as network:
        await network.join("ann")
    for _ in range(2):
        async with in_memory.start(second, store=store) as network:
            ann = await network.join("ann")
            assert [c["description"] for c in ann.ready["channels"]] == ["Night shift"]
    async with in_memory.start(config(channels={"desk": {}}), store=store) as network:
        ann = await network.join("ann")
        assert [c["description"] for c in ann.ready["channels"]] == ["Night shift"]
