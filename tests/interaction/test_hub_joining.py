"""Joining, resuming, and being refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hubbub.client import snapshot
from hubbub.config.loader import load
from hubbub.config.models import HumanConfig, NetworkConfig
from hubbub.mods.loader import load_mods
from hubbub.network.admission import AT_ONCE
from hubbub.network.operations import CORE_OPERATIONS
from hubbub.protocol.frames import VERSION, Hello, Ready
from tests.interaction.peers import Network, Networks, Peer, config
from tests.interaction.stores import MoodyStore

QUICKSTART = Path(__file__).parents[2] / "configs" / "quickstart.yaml"


@pytest.mark.behaviour("P-1", "P-2", "B-1")
async def test_hello_and_ready_describe_the_network_and_its_limits(in_memory: Networks) -> None:
    file = config(
        network={"name": "newsroom", "limits": {"burst": 7, "text": "1KiB"}},
        agents={"calc": {"kind": "python", "class": "x.py:X", "card": {"skills": ["sums"]}}},
        channels={"general": {"description": "Everything"}},
    )
    async with in_memory.start(file) as network:
        ann = await network.join("ann", card={"description": "Ann", "home": "x"})
        hello = Hello.model_validate(ann.hello)
        assert (hello.versions, hello.network) == ((VERSION,), "newsroom")
        assert hello.epoch == network.hub.kernel.state.epoch
        assert (hello.limits.burst, hello.limits.text_bytes) == (7, 1024)
        assert (hello.limits.frame_bytes, hello.limits.unacknowledged) == (256 * 1024, 256)
        ready = Ready.model_validate(ann.ready)
        assert (ready.participant, ready.kind, ready.resumed) == ("ann", "human", False)
        participants = {participant.id: participant for participant in ready.participants}
        calc = participants["calc"]
        assert (calc.card.skills, calc.present) == (("sums",), False)
        assert participants["ann"].card.model_extra == {"home": "x"}
        channels = [(c.name, c.joined, c.members) for c in ready.channels]
        assert channels == [("general", True, ("ann", "calc"))]


@pytest.mark.behaviour("P-3")
async def test_ready_lists_the_allowed_operations_whose_schemas_can_be_requested(
    network: Network,
) -> None:
    agent = await network.join("calc", "agent")
    listed = {info["name"]: info for info in agent.ready["operations"]}
    allowed = {op.name: op for op in CORE_OPERATIONS if op.permission != "admin"}
    assert listed.keys() == allowed.keys()
    for described in (await agent.call("describe_operations"))["operations"]:
        operation = allowed[described["name"]]
        assert described["description"] == operation.description
        assert described["input_schema"] == operation.input.model_json_schema()
        assert described["output_schema"]["type"] == "object"
        brief = {key: described[key] for key in described if not key.endswith("_schema")}
        assert listed.pop(described["name"]) == brief
    assert listed == {}
    some = await agent.call("describe_operations", names=["reply", "add_token", "reply"])
    assert [each["name"] for each in some["operations"]] == ["reply"]
    ann = await network.join("ann")
    assert "add_token" in {info["name"] for info in ann.ready["operations"]}, "an owner"


@pytest.mark.behaviour("P-3")
@pytest.mark.parametrize("others", [0, 1200])
async def test_ready_stays_small_and_the_client_fetches_the_rest(
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
        everyone = {each["id"] for each in (*page["participants"], *rest["participants"])}
        assert everyone == {*names, *file.agents, "eve"}
        error = await eve.ask("list_participants", after="nobody")
        assert error["code"] == "unknown_participant"
        assert eve.ready["left_out"] == (["participants", "channels"] if others else [])
        snapshot.forget()
        calls = running.hub.kernel.metrics.calls
        bot = await running.local.join("bot")
        assert {each.id for each in bot.ready.participants} == {*everyone, "bot"}
        assert all(each.input_schema for each in bot.ready.operations)
        first_join = running.hub.kernel.metrics.calls - calls
        assert first_join == (4 if others else 1)  # two pages, the channels, the schemas
        again = await running.local.join("again")
        assert again.ready.operations == bot.ready.operations
        assert running.hub.kernel.metrics.calls - calls - first_join == (3 if others else 0)


@pytest.mark.behaviour("P-7", "P-8", "D-3")
async def test_an_invalid_missing_or_second_identify_is_refused(network: Network) -> None:
    error, code = await (await network.attach()).refused(version="hubbub.v2")
    assert (error["code"], code) == ("unsupported_version", 4502)
    assert "hubbub.v1" in error["message"]
    peer = await network.attach()
    for frame in ({"op": "ack", "seq": 0}, {"op": "signal", "type": "typing"}):
        await peer.send(**frame)
        assert (await peer.expect("error"))["code"] == "not_identified"
    assert (await peer.ask("list_participants"))["code"] == "not_identified"
    await peer.identify("ann")
    await peer.send(op="identify", version=VERSION, participant="bob", kind="human")
    assert (await peer.expect("error"))["code"] == "already_identified"
    assert (await peer.call("list_participants"))["participants"][0]["id"] == "ann"
    for name in ("hub", "broadcast", "all", "here", "t5", "direct_bob", "channel_x", "mod_x"):
        error, code = await (await network.attach()).refused(participant=name)
        assert (error["code"], code, "reserved" in error["message"]) == ("auth_failed", 4500, True)
    error, code = await (await network.attach()).refused(participant="ann", kind="agent")
    assert (error["code"], code) == ("auth_failed", 4500)
    assert "is already a person" in error["message"]
    for kind in ("human", "agent"):
        _, code = await (await network.attach()).refused(participant="operator", kind=kind)
        assert code == 4500
    operator = await network.join("operator", "service")
    assert (await operator.call("network_status"))["head"] == 0
    listed = (await operator.call("list_participants"))["participants"]
    assert [each["id"] for each in listed] == ["ann"], "the operator is no participant"


async def test_a_second_identify_during_the_first_is_an_error(network: Network) -> None:
    peer = await network.attach()
    for name in ("ann", "bob"):
        await peer.send(op="identify", version=VERSION, participant=name, kind="human")
    frames = {frame["op"]: frame for frame in [await peer.receive(), await peer.receive()]}
    assert frames.keys() == {"error", "ready"}
    assert frames["ready"]["participant"] == "ann"


async def send_abc(network: Network) -> tuple[Peer, Peer, int]:
    """Ann sends three messages to bob, who acknowledges the first and leaves."""
    ann, bob = await network.join("ann"), await network.join("bob")
    for text in "abc":
        await ann.say("bob", text)
    first = await bob.event()
    await bob.ack(first["seq"])
    await bob.sync()
    await bob.close()
    await network.gone("bob")
    return ann, bob, first["seq"]


@pytest.mark.behaviour("P-4", "P-5", "P-6")
async def test_a_stream_resumes_at_a_valid_cursor_or_else_at_the_hubs_own(network: Network) -> None:
    _ann, bob, first = await send_abc(network)
    epoch = bob.hello["epoch"]
    back = await network.join("bob", cursor={"epoch": epoch, "seq": 2})
    assert (back.ready["resumed"], back.ready["cursor"]) == (True, 2)
    assert await back.take_texts(1) == ["c"]
    wrong = [{"epoch": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "seq": 1}, {"epoch": epoch, "seq": 999}]
    for cursor in (*wrong, None):
        back = await network.join("bob", cursor=cursor)
        assert (back.ready["resumed"], back.ready["cursor"]) == (False, first)
        assert [m["content"] for m in back.ready["threads"][0]["messages"]] == ["a"]
        assert await back.take_texts(2) == ["b", "c"]


@pytest.mark.behaviour("P-6", "S-3")
async def test_the_hubs_cursors_survive_a_restart(in_memory: Networks, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path}/hub.db"
    async with in_memory.start(store=store) as network:
        _ann, bob, _first = await send_abc(network)
        await network.join("eve")
    async with in_memory.start(store=store) as network:
        eve = await network.join("eve")
        assert eve.ready["cursor"] == 3, "where she joined, although she acknowledged nothing"
        back = await network.join("bob")
        assert back.hello["epoch"] == bob.hello["epoch"]
        assert await back.take_texts(2) == ["b", "c"]


async def test_a_participant_keeps_its_card_until_it_joins_with_another(network: Network) -> None:
    bob = await network.join("bob")
    joins: list[tuple[dict[str, Any], str]] = [
        ({"card": {"description": "first"}}, "first"),
        ({}, "first"),
        ({"card": {"description": "second"}}, "second"),
    ]
    for more, description in joins:
        await network.join("ann", **more)
        ann = (await bob.call("list_participants"))["participants"][0]
        assert ann["card"]["description"] == description


async def test_a_newcomer_gets_later_messages_and_can_read_earlier_ones(network: Network) -> None:
    ann = await network.join("ann")
    await ann.call("broadcast_text_message", text="before")
    bob = await network.join("bob")
    await ann.call("broadcast_text_message", text="after")
    assert await bob.texts() == ["after"]
    page = await bob.call("read_thread", thread="broadcast")
    assert [m["content"] for m in page["messages"]] == ["before", "after"]


@pytest.mark.behaviour("P-38")
async def test_a_client_that_cannot_resume_can_start_at_the_head(network: Network) -> None:
    ann, bob, first = await send_abc(network)
    for cursor in (None, {"epoch": "another", "seq": 1}):
        latest = await network.join("bob", latest=True, cursor=cursor)
        assert (latest.ready["cursor"], latest.ready["head"]) == (3, 3)
        assert latest.ready["resumed"] is False
    (thread,) = latest.ready["threads"]
    assert [message["content"] for message in thread["messages"]] == ["a", "b", "c"]
    assert await latest.sync() == []
    await ann.say("bob", "d")
    (event,) = await latest.sync()
    assert (event["seq"], event["prev"]) == (4, 3)
    assert (await network.join("bob")).ready["cursor"] == first, "the hub's cursor did not move"
    cursor = {"epoch": bob.hello["epoch"], "seq": 1}
    back = await network.join("bob", latest=True, cursor=cursor)
    assert (back.ready["cursor"], back.ready["resumed"]) == (1, True)
    assert await back.take_texts(3) == ["b", "c", "d"]


@pytest.mark.behaviour("P-38", "W-7")
async def test_an_agent_that_starts_at_the_head_keeps_its_wakes(in_memory: Networks) -> None:
    file = config(agents={"bot": {"kind": "python", "class": "x.py:X"}})
    async with in_memory.start(file) as network:
        sent = await (await network.join("ann")).say("bot", "wake up")
        bot = await network.join("bot", "agent", turns=True, latest=True)
        assert [wake["message"]["id"] for wake in bot.ready["pending"]] == [sent["id"]]


@pytest.mark.behaviour("P-1")
async def test_simultaneous_newcomers_join_in_order_without_those_that_disconnected(
    network: Network, moody: MoodyStore
) -> None:
    moody.reads.clear()
    peers = [await network.attach() for _ in range(AT_ONCE + 5)]
    before = moody.asked
    for n, peer in enumerate(peers):
        identify = {"participant": f"p{n}", "kind": "human", "version": VERSION}
        await peer.send(op="identify", **identify)
    await peers[-1].close()
    await moody.until(lambda: moody.asked - before == AT_ONCE)
    moody.reads.set()
    for peer in peers[:-1]:
        await peer.expect("ready")
    is_registered = network.hub.kernel.state.knows
    registered = [is_registered(f"p{n}") for n in range(len(peers))]
    assert registered == [True] * (AT_ONCE + 4) + [False]
