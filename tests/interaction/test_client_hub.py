"""The client library against the real hub, in process and over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hubbub.client import Backoff, Client, Disconnected, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.errors import ConnectionLost, OperationError
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.operations import Participants, SendResult
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import config, soon

AT_ONCE = Backoff(first_s=0, most_s=0)


@pytest.fixture(params=[False, True], ids=["memory", "sockets"])
async def network(request: pytest.FixtureRequest) -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(limited(burst=10_000), sockets=request.param) as network:
        yield network


def limited(**limits: int) -> NetworkFile:
    """An open network with these limits."""
    return config(network={"limits": {**limits}})


def client(network: LocalNetwork, name: str, **options: object) -> Client:
    return Client(network.transport(), name, "human", backoff=AT_ONCE, **options)  # type: ignore[arg-type]  # what a test passes on


async def take(client: Client, count: int, *, ack: bool = True) -> list[Event]:
    """The next events."""
    found: list[Event] = []
    async with soon():
        async for item in client.events():
            if isinstance(item, Event):
                found.append(item)
                if ack:
                    await client.ack(item.seq)
            if len(found) == count:
                break
    return found


def texts(events: list[Event]) -> list[str]:
    return [event.message.text for event in events]


def cut(network: LocalNetwork, code: CloseCode = CloseCode.SLOW) -> None:
    """End every connection as the hub would."""
    for session in network.hub.sessions():
        session.close(code, "cut by the test")


async def send(client: Client, to: str, text: str) -> SendResult:
    async with soon():
        value = await client.call("send_text_message", to=to, text=text)
    return SendResult.model_validate(value)


async def test_a_message_travels_from_one_client_to_another(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, client(network, "bob") as bob:
        sent = await send(ann, "bob", "hello")
        (event,) = await take(bob, 1)
    assert (event.seq, event.message.id, event.message.sender_id) == (sent.seq, sent.id, "ann")
    assert event.message.text == "hello"
    assert sent.present == ("bob",)


async def test_what_was_acknowledged_never_comes_again(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann:
        async with client(network, "bob") as bob:
            for n in range(4):
                await send(ann, "bob", str(n))
            await take(bob, 2)
        async with client(network, "bob") as bob:
            assert texts(await take(bob, 2)) == ["2", "3"]


async def test_what_was_not_acknowledged_comes_again_to_the_next_client(
    network: LocalNetwork,
) -> None:
    async with client(network, "ann") as ann:
        async with client(network, "bob") as bob:
            await send(ann, "bob", "once more")
            await take(bob, 1, ack=False)
        async with client(network, "bob") as bob:
            assert texts(await take(bob, 1)) == ["once more"]


@pytest.mark.behaviour("C-1", "S-1")
async def test_posts_arrive_exactly_once_and_in_order_however_often_the_line_is_cut(
    network: LocalNetwork,
) -> None:
    count = 60
    async with client(network, "ann") as ann, client(network, "bob") as bob:
        posts = [ann.post("send_text_message", to="bob", text=str(n)) for n in range(count)]
        got: list[str] = []
        async with soon():
            for _ in range(6):
                got += texts(await take(bob, count // 6))
                cut(network)
            await asyncio.gather(*posts)
    assert got == [str(n) for n in range(count)]


async def test_a_client_that_was_cut_resumes_and_says_so(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann:
        items = ann.events()
        async with soon():
            first = await anext(items)
            cut(network)
            lost = await anext(items)
            again = await anext(items)
        assert isinstance(first, Ready)
        assert isinstance(lost, Disconnected)
        assert lost.code == CloseCode.SLOW
        assert isinstance(again, Ready)
        assert again.resumed


async def test_a_draining_hub_is_waited_for(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann:
        items = ann.events()
        async with soon():
            await anext(items)
            await network.hub.drain(after_s=0.01)
            lost = await anext(items)
        assert isinstance(lost, Disconnected)
        assert lost.code == CloseCode.DRAIN
        assert lost.retry_in_s >= 0.01


async def test_calls_beyond_the_rate_limit_are_repeated_until_they_pass() -> None:
    async with (
        LocalNetwork(limited(calls_per_second=200, burst=2)) as network,
        Client(network.transport(), "ann", "human", backoff=Backoff(first_s=0.01)) as ann,
        client(network, "bob") as bob,
        soon(),
    ):
        calls = [ann.call("send_text_message", to="bob", text=str(n)) for n in range(12)]
        await asyncio.gather(*calls)
        assert sorted(texts(await take(bob, 12)), key=int) == [str(n) for n in range(12)]


async def test_the_hub_sends_on_as_acknowledgements_arrive() -> None:
    async with (
        LocalNetwork(limited(unacknowledged=4)) as network,
        client(network, "ann") as ann,
        client(network, "bob") as bob,
    ):
        for n in range(20):
            await send(ann, "bob", str(n))
        assert texts(await take(bob, 20)) == [str(n) for n in range(20)]


async def test_an_acknowledgement_from_before_the_cut_is_not_an_error_after_it(
    network: LocalNetwork,
) -> None:
    """The hub refuses acknowledgements of what it has not sent on this connection."""
    async with client(network, "ann") as ann, client(network, "bob") as bob:
        for n in range(5):
            await send(ann, "bob", str(n))
        events = await take(bob, 5, ack=False)
        for _ in range(3):
            cut(network)
            await bob.ack(events[-1].seq)
            async with soon():
                await bob.call("list_participants")
        await send(ann, "bob", "after")
        assert texts(await take(bob, 1)) == ["after"]
        assert network.hub.metrics.bad_frames == 0


async def test_a_refused_call_names_the_field(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, soon():
        with pytest.raises(OperationError, match="colour") as caught:
            await ann.call("send_text_message", to="bob", text="?", colour="red")
        assert caught.value.code == "bad_request"
        with pytest.raises(OperationError, match="did you mean") as caught:
            await ann.call("send_text_mesage", to="bob", text="?")
        assert caught.value.code == "unknown_operation"


async def test_a_repeated_cid_gives_the_first_result_and_another_body_a_conflict(
    network: LocalNetwork,
) -> None:
    async with client(network, "ann") as ann, client(network, "bob"), soon():
        first = await ann.call("send_text_message", cid="c1", to="bob", text="one")
        again = await ann.call("send_text_message", cid="c1", to="bob", text="one")
        assert SendResult.model_validate(again).seq == SendResult.model_validate(first).seq
        with pytest.raises(OperationError) as caught:
            await ann.call("send_text_message", cid="c1", to="bob", text="two")
        assert caught.value.code == "cid_conflict"


async def test_signals_reach_the_readers_of_a_thread(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, client(network, "bob") as bob:
        sent = await send(ann, "bob", "hello")
        await ann.signal("activity", sent.thread_id, "thinking")
        item: object = None
        async with soon():
            async for item in bob.events():
                if isinstance(item, Signal) and item.type == "activity":
                    break
    assert isinstance(item, Signal)
    assert (item.sender, item.thread_id, item.data) == ("ann", "dm.ann.bob", "thinking")


async def test_comings_and_goings_are_told(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, soon():
        items = ann.events()
        async with client(network, "bob"):
            assert "bob" in await _presence(items, "online")
            people = Participants.model_validate(await ann.call("list_participants")).participants
            assert {p.id: p.present for p in people} == {"ann": True, "bob": True}
        assert "bob" in await _presence(items, "offline")


async def _presence(items: AsyncIterator[object], key: str) -> list[str]:
    while True:
        item = await anext(items)
        if isinstance(item, Signal) and item.type == "presence" and isinstance(item.data, dict):
            found = item.data[key]
            assert isinstance(found, list)
            names = [p["id"] if isinstance(p, dict) else p for p in found]
            if "bob" in names:
                return [str(name) for name in names]


async def test_a_second_agent_of_the_same_name_replaces_the_first(network: LocalNetwork) -> None:
    async with (
        Client(network.transport(), "calc", backoff=AT_ONCE) as first,
        Client(network.transport(), "calc", backoff=AT_ONCE) as second,
        soon(),
    ):
        with pytest.raises(ConnectionLost) as caught:
            async for _ in first.events():
                pass
        assert caught.value.code == CloseCode.REPLACED
        with pytest.raises(ConnectionLost):
            await first.call("list_participants")
        await second.call("list_participants")


async def test_a_revoked_participant_does_not_come_back(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, soon():
        await network.hub.revoke("ann")
        with pytest.raises(ConnectionLost) as caught:
            async for _ in ann.events():
                pass
        assert caught.value.code == CloseCode.REVOKED


async def test_a_wrong_token_is_told_when_entering() -> None:
    file = config(network={"auth": "tokens"}, humans={"ann": {}})
    async with LocalNetwork(file) as network, soon():
        network.hub.joining.add_token("ann", "right")
        with pytest.raises(OperationError) as caught:
            await client(network, "ann", token="wrong").__aenter__()
        assert caught.value.code == "auth_failed"
        async with client(network, "ann", token="right") as ann:
            await ann.call("list_participants")


class Restarting:
    """A network that can be stopped and started again, and a way in that follows it."""

    def __init__(self, file: NetworkFile) -> None:
        self._file = file
        self._network: LocalNetwork | None = None

    def attach(self, outlet: Outlet) -> Inlet:
        if self._network is None:
            raise ConnectionRefusedError(111, "Connect call failed")
        return self._network.hub.attach(outlet)

    def client(self, name: str) -> Client:

        async def briefly(delay: float) -> None:
            await asyncio.sleep(min(delay, 0.002))

        backoff = Backoff(sleep=briefly)
        return Client(MemoryTransport(self.attach), name, "human", backoff=backoff)

    async def start(self, stack: AsyncExitStack, store: Path) -> None:
        network = LocalNetwork(self._file, store=f"sqlite:{store}")
        await stack.enter_async_context(network)
        self._network = network

    async def stop(self, stack: AsyncExitStack) -> None:
        self._network = None
        await stack.aclose()


@pytest.mark.behaviour("C-3", "S-1")
async def test_a_restarted_hub_is_resumed_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    running, stack = Restarting(config()), AsyncExitStack()
    await running.start(stack, tmp_path / "hub.db")
    async with running.client("ann") as ann, running.client("bob") as bob:
        await send(ann, "bob", "before")
        assert texts(await take(bob, 1)) == ["before"]
        await running.stop(stack)
        posts = [ann.post("send_text_message", to="bob", text=str(n)) for n in range(10)]
        await running.start(stack, tmp_path / "hub.db")
        async with soon():
            await asyncio.gather(*posts)
        assert texts(await take(bob, 10)) == [str(n) for n in range(10)]
        assert bob.ready.resumed
    await stack.aclose()


async def test_another_database_is_a_fresh_start(tmp_path: Path) -> None:
    running, stack = Restarting(config()), AsyncExitStack()
    await running.start(stack, tmp_path / "one.db")
    async with running.client("ann") as ann, running.client("bob") as bob:
        await send(ann, "bob", "in the old log")
        await take(bob, 1)
        epoch = bob.hello.epoch
        await running.stop(stack)
        await running.start(stack, tmp_path / "two.db")
        async with soon():
            await bob.call("list_participants")
            await ann.call("list_participants")
        assert bob.hello.epoch != epoch
        assert not bob.ready.resumed
        await send(ann, "bob", "in the new log")
        assert texts(await take(bob, 1)) == ["in the new log"]
    await stack.aclose()


async def test_an_observer_sees_everything_and_is_nobody(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, client(network, "bob"):
        watcher = Client(network.transport(), "operator", "service", observe=True)
        async with watcher:
            await send(ann, "bob", "between the two")
            (event,) = await take(watcher, 1)
            assert event.message.text == "between the two"
            people = Participants.model_validate(await ann.call("list_participants")).participants
            assert [p.id for p in people] == ["ann", "bob"]
