"""State that a hub reads from its store after a restart: last speakers and left channels."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.config.models import NetworkFile
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


@pytest.mark.parametrize("begun", [True, False])
async def test_work_of_an_agent_that_the_config_no_longer_has_ends_at_the_start_and_askers_are_told(
    in_memory: Networks, tmp_path: Path, begun: bool
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with in_memory.start(_with_agents("boss", "worker"), store=store) as network:
        ann, _ = await network.join("ann"), await network.join("guest", "agent")
        boss, worker = [await network.join(name, "agent") for name in ("boss", "worker")]
        asked = await ann.say("worker", "are you there?")
        request = (await boss.call("delegate", to="worker", task="count"))["id"]
        await ann.say("guest", "and you?")
        if begun:
            for id in (asked["id"], request):
                start = {"id": f"worker-{id}", "thread_id": "t", "messages": [id]}
                await worker.call("begin_turn", start=start)
    heads = []
    for first in (True, False):  # after another restart it is still gone, and no one is told again
        async with in_memory.start(_with_agents("boss"), store=store) as network:
            ann, boss = await network.join("ann"), await network.join("boss", "agent")
            if first:
                notice = (await ann.take(3))[-1]["message"]  # after her own two
                result = (await boss.event())["message"]
                text = "worker no longer exists, so it does not answer."
                assert notice["text_representation"] == text
                assert result["request"] == {"id": request, "kind": "failed", "outcome": "stopped"}
                assert "it no longer exists" in result["text_representation"]
            turns = (await ann.call("list_turns", agent="worker"))["turns"]
            assert [each["outcome"] for each in turns] == ["cancelled", "cancelled"]
            people = (await ann.call("list_participants"))["participants"]
            down = {each["id"]: each["down"] for each in people if each.get("down")}
            assert down == {"worker": "no longer exists"}
            again = await boss.ask("delegate", to="worker", task="count")
            assert "worker no longer exists" in again["message"]
            await network.quiet()
            heads.append(network.hub.kernel.log.head)
            await ann.say("worker", "and now?")
            await network.quiet()
            page = await ann.call("read_thread", thread="direct_worker")
            text = "Your message stays queued until an agent of this name is added."
            assert text in page["messages"][-1]["text_representation"]
    assert heads[1] == heads[0] + 2  # after the message and its notice in between
    async with in_memory.start(_with_agents("boss", "worker"), store=store) as network:
        ann = await network.join("ann")
        assert (await ann.call("list_turns", agent="guest"))["turns"] == []
        people = (await ann.call("list_participants"))["participants"]
        assert not [each for each in people if each.get("down")]


def _with_agents(*names: str) -> NetworkFile:
    model = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    return config(agents={name: {} for name in names}, models={"default": model})
