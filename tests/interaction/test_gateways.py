"""A gateway in front of a hub: what its clients notice when the hub moves to another owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from hubbub.errors import UserError
from hubbub.network.cluster import owner
from hubbub.network.cluster.holder import SessionHolder
from hubbub.network.cluster.uplink import Uplink
from hubbub.network.stored import StoredEvent
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import Network, Networks, Peer, config, eventually, soon
from tests.interaction.stores import MoodyStore

GATEWAYS = Networks(sockets=True, gateway=True)
CHANNELS = config(channels={"general": {"members": "all"}})


@pytest.fixture
async def gateway(moody: MoodyStore) -> AsyncIterator[Network]:
    """A network whose peers come through a gateway."""
    async with GATEWAYS.start(CHANNELS, store=moody) as network:
        yield network


async def cut(network: Network) -> None:
    """The link between gateway and hub ends, as it does when the hub's machine dies."""
    uplink = network.local.uplink
    assert uplink is not None
    await eventually(lambda: uplink.link is not None)
    assert uplink.link is not None
    uplink.link.cut()


async def moved(peer: Peer) -> None:
    """The peer was notified that its hub moves, and that it has moved."""
    for state in ("moving", "moved"):
        assert (await peer.signal("moving"))["data"] == {"state": state}


@pytest.mark.behaviour("R-16")
async def test_connected_clients_stay_and_miss_nothing_when_the_hub_moves(gateway: Network) -> None:
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    await ann.say("bob", "before")
    await cut(gateway)
    await moved(bob)
    await moved(ann)
    await ann.say("bob", "after")
    events = await bob.take(2)
    assert [event["message"]["content"] for event in events] == ["before", "after"]
    assert [event["prev"] for event in events] == [0, events[0]["seq"]]


@pytest.mark.parametrize("cid", [None, "mine"])
async def test_an_unanswered_call_is_repeated_at_the_next_owner_and_done_once(
    gateway: Network, moody: MoodyStore, cid: str | None
) -> None:
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    moody.gate.clear()
    ref = await ann.post("send_text_message", cid=cid, to="bob", text="once")
    await moody.until_waiting()
    await cut(gateway)
    await ann.signal("moving")
    moody.gate.set()
    assert (await ann.answer(ref))["op"] == "result"
    assert await bob.take_texts(1) == ["once"]


async def test_a_call_to_an_owner_that_lost_its_store_goes_to_the_next_owner(
    gateway: Network, moody: MoodyStore
) -> None:
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    moody.gate.clear()
    ref = await ann.post("send_text_message", to="bob", text="once")
    await moody.until_waiting()
    gateway.hub.gateway.leaving()
    moody.failing = 1
    moody.gate.set()
    await ann.signal("moving")
    await moody.until(lambda: moody.failing == 0)
    await cut(gateway)
    assert (await ann.answer(ref))["op"] == "result"
    assert await bob.take_texts(1) == ["once"]


class SlowPages(MoodyStore):
    """A store whose pages of events are read when the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.page_requested, self.page_released = asyncio.Event(), asyncio.Event()

    async def events(
        self, participant: str, after: int, upto: int, limit: int, own: bool
    ) -> Sequence[StoredEvent]:
        self.page_requested.set()
        await self.page_released.wait()
        return await super().events(participant, after, upto, limit, own)


async def test_a_page_read_that_a_broken_link_interrupts_is_repeated() -> None:
    store = SlowPages()
    async with GATEWAYS.start(CHANNELS, store=store) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        await bob.close()
        await network.gone("bob")
        texts = [str(n) for n in range(3)]
        for text in texts:
            await ann.say("bob", text)
        back = await network.join("bob")
        async with soon():
            await store.page_requested.wait()
        await cut(network)
        store.page_released.set()
        assert await back.take_texts(3) == texts


async def test_a_call_that_refuses_a_cid_closes_its_connection_instead_of_repeating(
    gateway: Network, moody: MoodyStore
) -> None:
    ann = await gateway.join("ann")
    await gateway.join("bob")
    moody.gate.clear()
    args = {"to": "bob", "text": "perhaps"}
    await ann.send(op="call", ref="r", name="send_text_message", args=args, cid=None)
    await moody.until_waiting()
    await cut(gateway)
    assert await ann.closed() == 4004
    moody.gate.set()


async def test_calls_keep_their_order_across_moves(gateway: Network) -> None:
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    refs = []
    for n in range(30):
        refs.append(await ann.post("send_text_message", to="bob", text=str(n)))
        if n in (5, 20):
            await cut(gateway)
            await ann.signal("moving")
    for ref in refs:
        assert (await ann.answer(ref))["op"] == "result"
    assert await bob.take_texts(30) == [str(n) for n in range(30)]


async def test_each_new_owner_checks_the_tokens_of_connected_clients() -> None:
    file = config(network={"auth": "tokens"}, humans={"ann": {"roles": ["owner"]}, "bob": {}})
    async with GATEWAYS.start(file) as network:
        admission = network.hub.gateway.admission
        admission.add_token("bob", "a token")
        bob = await network.join("bob", token="a token")
        admission._launched.clear()
        await cut(network)
        assert await bob.closed() == 4500


async def test_a_client_that_leaves_while_there_is_no_owner_is_reported_offline(
    gateway: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "BACK_WITHIN_S", 0.1)
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    while "bob" not in str((await ann.signal("presence"))["data"]["online"]):
        pass
    await cut(gateway)
    await bob.close()
    while "bob" not in (await ann.signal("presence"))["data"]["offline"]:
        pass


async def test_a_new_socket_of_an_agent_replaces_the_old_one_before_and_after_a_move(
    gateway: Network,
) -> None:
    first = await gateway.join("bob", "agent")
    second = await gateway.join("bob", "agent")
    assert await first.closed() == 4503
    await cut(gateway)
    await moved(second)
    third = await gateway.join("bob", "agent")
    assert await second.closed() == 4503
    await third.call("list_channels")


async def test_the_window_of_unacknowledged_events_survives_a_move() -> None:
    file = config(network={"limits": {"unacknowledged": 4}})
    async with GATEWAYS.start(file) as network:
        ann, bob = await network.join("ann"), await network.join("bob")
        for n in range(10):
            await ann.say("bob", str(n))
        events = await bob.take(4)
        await cut(network)
        await moved(bob)
        assert await bob.sync() == []
        await bob.ack(events[-1]["seq"])
        assert await bob.take_texts(4) == ["4", "5", "6", "7"]


async def test_a_channel_message_reaches_the_current_members_through_a_gateway(
    gateway: Network,
) -> None:
    ann, bob = await gateway.join("ann"), await gateway.join("bob")
    await bob.call("leave_channel", channel="general")
    await ann.call("post_to_channel", channel="general", text="without bob")
    await bob.call("join_channel", channel="general")
    await ann.call("post_to_channel", channel="general", text="with bob")
    assert await bob.take_texts(1) == ["with bob"]


async def test_a_gateway_reports_invalid_frames_and_calls(gateway: Network) -> None:
    ann = await gateway.join("ann")
    await ann.send_raw(b"nonsense")
    assert (await ann.expect("error"))["code"] == "bad_frame"
    assert (await ann.ask("no_such_thing"))["code"] == "unknown_operation"
    assert (await ann.ask("send_text_message", to="bob"))["code"] == "bad_request"
    stranger = await gateway.attach()
    await stranger.send(op="call", ref="r", name="list_channels", args={})
    assert (await stranger.expect("error"))["code"] == "not_identified"


async def test_a_gateway_reports_why_a_hub_refuses_it() -> None:
    async with LocalNetwork(config(), sockets=True) as plain:
        assert "set `gateway_token`" in await _refused(plain.url, "a token of sixteen")
    async with LocalNetwork(config(), gateway=True) as network:
        assert network.uplink is not None
        host, port = network.uplink.owner or ("", 0)
        refusal = await _refused(f"ws://{host}:{port}", "another one of sixteen")
    assert "does not accept this gateway's token" in refusal


async def _refused(url: str, token: str) -> str:
    """The error of a gateway that connects to a hub."""
    host, _, port = url.removeprefix("ws://").rpartition(":")
    holder = SessionHolder(asyncio.get_running_loop().time, lambda work: work.close())
    async with soon():
        with pytest.raises(UserError) as refusal:
            await Uplink(holder, [(host, int(port))], token).first()
    return str(refusal.value)
