"""Joining, resuming, and being turned away."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hubbub.client import snapshot
from hubbub.config.loader import load
from hubbub.config.models import HumanConfig, NetworkConfig
from hubbub.mods.loader import load_mods
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.frames import VERSION, Hello, Ready
from tests.interaction.peers import Network, Networks, config

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.mark.behaviour("P-1", "B-1")
async def test_hello_comes_first_and_tells_version_epoch_and_limits(in_memory: Networks) -> None:
    file = config(network={"name": "newsroom", "limits": {"burst": 7, "text": "1KiB"}})
    async with in_memory.start(file) as network:
        hello = Hello.model_validate((await network.attach()).hello)
        assert hello.versions == (VERSION,)
        assert hello.network == "newsroom"
        assert hello.epoch == network.hub.state.epoch
        assert (hello.limits.burst, hello.limits.text_bytes) == (7, 1024)
        assert (hello.limits.frame_bytes, hello.limits.unacknowledged) == (256 * 1024, 256)


@pytest.mark.behaviour("P-2")
async def test_ready_tells_who_is_there_and_what_can_be_asked(in_memory: Networks) -> None:
    file = config(
        agents={"calc": {"kind": "python", "class": "x.py:X", "card": {"skills": ["sums"]}}},
        channels={"general": {"description": "Everything"}},
    )
    async with in_memory.start(file) as network:
        ann = await network.join("ann", card={"description": "Ann", "home": "x"})
        ready = Ready.model_validate(ann.ready)
        assert (ready.participant, ready.kind, ready.resumed) == ("ann", "human", False)
        people = {p.id: p for p in ready.participants}
        assert people["calc"].card.skills == ("sums",)
        assert people["calc"].present is False
        assert people["ann"].card.model_extra == {"home": "x"}
        assert [(c.name, c.joined, c.members) for c in ready.channels] == [
            ("general", True, ("ann", "calc"))
        ]


@pytest.mark.behaviour("P-3")
async def test_operations_are_told_with_a_hash_and_described_once(network: Network) -> None:
    agent = await network.join("calc", "agent")
    told = {info["name"]: info for info in agent.ready["operations"]}
    allowed = {op.name: op for op in CORE_OPERATIONS if op.permission != "admin"}
    assert told.keys() == allowed.keys()
    described = (await agent.call("describe_operations"))["operations"]
    for whole in described:
        operation = allowed[whole["name"]]
        assert whole["description"] == operation.description
        assert whole["input_schema"] == operation.input.model_json_schema()
        assert whole["output_schema"]["type"] == "object"
        brief = {key: whole[key] for key in whole if not key.endswith("_schema")}
        assert told.pop(whole["name"]) == brief
    assert told == {}
    some = await agent.call("describe_operations", names=["reply", "add_token", "reply"])
    assert [each["name"] for each in some["operations"]] == ["reply"]


@pytest.mark.behaviour("P-3")
@pytest.mark.parametrize("others", [0, 1000])
async def test_ready_is_small_for_a_newcomer_of_the_quickstart(
    in_memory: Networks, others: int
) -> None:
    file = load(QUICKSTART).file
    names = [f"participant-{n}" for n in range(others)]
    file = file.model_copy(update={"humans": {name: HumanConfig() for name in names}})
    network = {"auth": "open", "store": "sqlite::memory:", "limits": {"burst": 10_000}}
    file = file.model_copy(update={"network": NetworkConfig.model_validate(network)})
    async with in_memory.start(file, mods=load_mods(file.mods)) as running:
        eve = await running.join("eve", "agent")
        assert len(json.dumps(eve.ready, separators=(",", ":"))) <= 20 * 1024
        page = await eve.call("list_participants", limit=1000)
        last = page["participants"][-1]["id"]
        rest = await eve.call("list_participants", after=last) if page["more"] else page
        assert not rest["more"]
        whole = {each["id"] for each in (*page["participants"], *rest["participants"])}
        assert whole == {*names, *file.agents, "eve"}
        error = await eve.ask("list_participants", after="nobody")
        assert error["code"] == "unknown_participant"
        assert eve.ready["left_out"] == (["participants", "channels"] if others else [])


@pytest.mark.behaviour("P-3")
async def test_a_client_asks_for_what_ready_left_out(in_memory: Networks) -> None:
    names = [f"participant-{n}" for n in range(1200)]
    file = config(humans={name: {} for name in names}, channels={"general": {}})
    async with in_memory.start(file) as network:
        snapshot.forget()
        calls = network.hub.metrics.calls
        bot = await network.local.join("bot")
        assert {each.id for each in bot.ready.participants} == {*names, "bot"}
        assert [len(channel.members) for channel in bot.ready.channels] == [1201]
        assert all(each.input_schema for each in bot.ready.operations)
        assert network.hub.metrics.calls - calls == 4  # two pages, the channels, the schemas
        calls = network.hub.metrics.calls
        again = await network.local.join("again")
        assert again.ready.operations == bot.ready.operations
        assert network.hub.metrics.calls - calls == 3


async def test_an_owner_is_told_of_the_admin_operations(network: Network) -> None:
    ann = await network.join("ann")
    assert "add_token" in {info["name"] for info in ann.ready["operations"]}


@pytest.mark.behaviour("P-7")
async def test_an_unknown_version_is_closed_with_4502(network: Network) -> None:
    peer = await network.attach()
    error, code = await peer.refused(version="hubbub.v2")
    assert (error["code"], code) == ("unsupported_version", 4502)
    assert "hubbub.v1" in error["message"]


@pytest.mark.behaviour("P-8")
@pytest.mark.parametrize("frame", [{"op": "ack", "seq": 0}, {"op": "signal", "type": "typing"}])
async def test_nothing_is_answered_before_identify(network: Network, frame: object) -> None:
    peer = await network.attach()
    assert isinstance(frame, dict)
    await peer.send(**frame)
    assert (await peer.expect("error"))["code"] == "not_identified"
    assert (await peer.ask("list_participants"))["code"] == "not_identified"
    await peer.identify("ann")
    assert (await peer.ask("list_participants"))["op"] == "result"


@pytest.mark.behaviour("P-8")
async def test_identifying_twice_is_an_error_and_changes_nothing(network: Network) -> None:
    ann = await network.join("ann")
    await ann.send(op="identify", version=VERSION, participant="bob", kind="human")
    assert (await ann.expect("error"))["code"] == "already_identified"
    assert (await ann.call("list_channels"))["channels"] == []
    assert "bob" not in {p["id"] for p in (await ann.call("list_participants"))["participants"]}


async def test_a_second_identify_while_the_first_is_checked_is_an_error(network: Network) -> None:
    peer = await network.attach()
    for name in ("ann", "bob"):
        await peer.send(op="identify", version=VERSION, participant=name, kind="human")
    frames = [await peer.receive(), await peer.receive()]
    assert {frame["op"] for frame in frames} == {"error", "ready"}
    ready = next(frame for frame in frames if frame["op"] == "ready")
    assert ready["participant"] == "ann"


@pytest.mark.behaviour("D-3")
@pytest.mark.parametrize(
    "name",
    ["hub", "broadcast", "all", "everyone", "here", "t5", "direct_bob", "channel_x", "mod_x"],
)
async def test_reserved_names_are_nobodys(network: Network, name: str) -> None:
    error, code = await (await network.attach()).refused(participant=name)
    assert (error["code"], code) == ("auth_failed", 4500)
    assert "reserved" in error["message"]


@pytest.mark.behaviour("D-3")
@pytest.mark.parametrize("kind", ["human", "agent"])
async def test_only_a_service_is_the_operator(network: Network, kind: str) -> None:
    _error, code = await (await network.attach()).refused(participant="operator", kind=kind)
    assert code == 4500
    operator = await network.join("operator", "service")
    assert (await operator.call("network_status"))["head"] == 0
    listed = (await operator.call("list_participants"))["participants"]
    assert listed == []


async def test_a_participant_keeps_its_kind(network: Network) -> None:
    await network.join("ann", "human")
    error, code = await (await network.attach()).refused(participant="ann", kind="agent")
    assert (error["code"], code) == ("auth_failed", 4500)
    assert "known as human" in error["message"]


@pytest.mark.behaviour("P-4")
async def test_a_resumed_stream_goes_on_after_the_cursor(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for text in "abcd":
        await ann.say("bob", text)
    first = await bob.event()
    await bob.close()
    back = await network.join("bob", cursor={"epoch": bob.hello["epoch"], "seq": first["seq"]})
    assert back.ready["resumed"] is True
    assert back.ready["cursor"] == first["seq"]
    assert await back.take_texts(3) == ["b", "c", "d"]


@pytest.mark.behaviour("P-5")
@pytest.mark.parametrize("wrong", ["epoch", "beyond"])
async def test_a_cursor_of_another_log_is_a_fresh_start_and_nothing_is_lost(
    network: Network, wrong: str
) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for text in "abc":
        await ann.say("bob", text)
    first = await bob.event()
    await bob.ack(first["seq"])
    await bob.sync()
    await bob.close()
    cursor = {"epoch": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "seq": 1}
    if wrong == "beyond":
        cursor = {"epoch": bob.hello["epoch"], "seq": 999}
    back = await network.join("bob", cursor=cursor)
    assert back.ready["resumed"] is False
    assert back.ready["cursor"] == first["seq"]  # what the hub knows to be safe
    assert [m["content"] for m in back.ready["threads"][0]["messages"]] == ["a"]
    assert await back.take_texts(2) == ["b", "c"]


@pytest.mark.behaviour("P-6")
async def test_without_a_cursor_the_hubs_own_counts(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for text in "abc":
        await ann.say("bob", text)
    second = [await bob.event(), await bob.event()][1]
    await bob.ack(second["seq"])
    await bob.sync()
    await bob.close()
    back = await network.join("bob")
    assert back.ready["resumed"] is False
    assert await back.take_texts(1) == ["c"]


@pytest.mark.behaviour("P-6", "S-3")
async def test_the_hubs_cursor_survives_its_restart(in_memory: Networks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for text in "abc":
            await ann.say("bob", text)
        first = await bob.event()
        await bob.ack(first["seq"])
        await bob.sync()
    async with in_memory.start(store=store) as network:
        back = await network.join("bob")
        assert back.hello["epoch"] == bob.hello["epoch"]
        assert await back.take_texts(2) == ["b", "c"]


async def test_joining_again_keeps_the_card_unless_another_is_given(network: Network) -> None:
    await network.join("ann", card={"description": "first"})
    bob = await network.join("bob")

    async def described() -> str:
        people = (await bob.call("list_participants"))["participants"]
        return str(next(p for p in people if p["id"] == "ann")["card"]["description"])

    await network.join("ann")
    assert await described() == "first"
    await network.join("ann", card={"description": "second"})
    assert await described() == "second"


async def test_a_newcomer_hears_what_comes_and_not_what_was(network: Network) -> None:
    ann = await network.join("ann")
    await ann.call("broadcast_text_message", text="before")
    bob = await network.join("bob")
    await ann.call("broadcast_text_message", text="after")
    assert await bob.texts() == ["after"]
    page = await bob.call("read_thread", thread="broadcast")
    assert [m["content"] for m in page["messages"]] == ["before", "after"]


@pytest.mark.behaviour("P-38")
async def test_a_client_may_start_at_the_head(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for n in range(3):
        await ann.say("bob", str(n))
    await bob.close()
    await network.gone("bob")
    latest = await network.join("bob", latest=True)
    assert (latest.ready["cursor"], latest.ready["head"]) == (3, 3)
    assert latest.ready["resumed"] is False
    (thread,) = latest.ready["threads"]
    assert [message["content"] for message in thread["messages"]] == ["0", "1", "2"]
    assert await latest.sync() == []
    await ann.say("bob", "3")
    (event,) = await latest.sync()
    assert (event["seq"], event["prev"]) == (4, 3)
    assert (await network.join("bob")).ready["cursor"] == 0, "the hub's cursor has not moved"


@pytest.mark.behaviour("P-38")
async def test_a_cursor_that_can_be_resumed_comes_before_the_head(network: Network) -> None:
    ann, bob = await network.join("ann"), await network.join("bob")
    for n in range(3):
        await ann.say("bob", str(n))
    epoch = bob.hello["epoch"]
    back = await network.join("bob", latest=True, cursor={"epoch": epoch, "seq": 1})
    assert (back.ready["cursor"], back.ready["resumed"]) == (1, True)
    assert await back.take_texts(2) == ["1", "2"]
    lost = await network.join("bob", latest=True, cursor={"epoch": "another", "seq": 1})
    assert (lost.ready["cursor"], lost.ready["resumed"]) == (3, False)


@pytest.mark.behaviour("P-38", "W-7")
async def test_an_agent_that_starts_at_the_head_still_has_its_wakes(in_memory: Networks) -> None:
    async with in_memory.start(
        config(agents={"bot": {"kind": "python", "class": "x.py:X"}})
    ) as net:
        ann = await net.join("ann")
        sent = await ann.say("bot", "wake up")
        bot = await net.join("bot", "agent", turns=True, latest=True)
        assert [wake["message"]["id"] for wake in bot.ready["pending"]] == [sent["id"]]
