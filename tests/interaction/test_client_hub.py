"""The client library against the real hub, in process and over real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hubbub.client import Backoff, Client, ClientOptions, Disconnected, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.errors import ConnectionLost
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event, Ready, Signal
from hubbub.protocol.operations import Participants, SendResult
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import config, soon

AT_ONCE = ClientOptions(backoff=Backoff(first_s=0, most_s=0))


@pytest.fixture(params=[False, True], ids=["memory", "sockets"])
async def any_network(request: pytest.FixtureRequest) -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork(limited(burst=10_000), sockets=request.param) as network:
        yield network


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with LocalNetwork() as network:
        yield network


def limited(**limits: int) -> NetworkFile:
    """An open network with these limits."""
    return config(network={"limits": {**limits}})


def client(network: LocalNetwork, name: str, **options: object) -> Client:
    return Client(network.transport(), name, "human", options=AT_ONCE, **options)  # type: ignore[arg-type]  # what a test passes on


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
    for session in network.hub.gateway.sessions():
        session.close(code, "cut by the test")


async def send(client: Client, to: str, text: str) -> SendResult:
    async with soon():
        value = await client.call("send_text_message", to=to, text=text)
    return SendResult.model_validate(value)


@pytest.mark.behaviour("C-1", "S-1")
async def test_posts_arrive_exactly_once_and_in_order_however_often_the_line_is_cut(
    any_network: LocalNetwork,
) -> None:
    count = 60
    async with client(any_network, "ann") as ann, client(any_network, "bob") as bob:
        posts = [ann.post("send_text_message", to="bob", text=str(n)) for n in range(count)]
        got: list[str] = []
        async with soon():
            for _ in range(6):
                got += texts(await take(bob, count // 6))
                cut(any_network)
            await asyncio.gather(*posts)
    assert got == [str(n) for n in range(count)]


async def test_what_was_acknowledged_never_comes_again_and_the_rest_does(
    any_network: LocalNetwork,
) -> None:
    async with client(any_network, "ann") as ann:
        async with client(any_network, "bob") as bob:
            sent = [await send(ann, "bob", str(n)) for n in range(4)]
            first, _ = await take(bob, 2)
            await take(bob, 1, ack=False)
        assert (first.seq, first.message.id, first.message.sender_id) == (1, sent[0].id, "ann")
        assert sent[0].present == ("bob",)
        async with client(any_network, "bob") as bob:
            assert texts(await take(bob, 2)) == ["2", "3"]


async def test_a_client_that_was_cut_resumes_and_a_draining_hub_is_waited_for(
    any_network: LocalNetwork,
) -> None:
    async with client(any_network, "ann") as ann, soon():
        items = ann.events()
        assert isinstance(await anext(items), Ready)
        cut(any_network)
        lost, again = await anext(items), await anext(items)
        assert isinstance(lost, Disconnected)
        assert lost.code == CloseCode.SLOW
        assert isinstance(again, Ready)
        assert again.resumed
        await any_network.hub.drain(after_s=0.01)
        lost = await anext(items)
        assert isinstance(lost, Disconnected)
        assert (lost.code, lost.retry_in_s >= 0.01) == (CloseCode.DRAIN, True)


async def test_calls_beyond_the_rate_limit_are_repeated_until_they_pass() -> None:
    async with (
        LocalNetwork(limited(calls_per_second=200, burst=2)) as network,
        Client(
            network.transport(),
            "ann",
            "human",
            options=ClientOptions(backoff=Backoff(first_s=0.01)),
        ) as ann,
        client(network, "bob") as bob,
        soon(),
    ):
        calls = [ann.call("send_text_message", to="bob", text=str(n)) for n in range(8)]
        await asyncio.gather(*calls)
        assert sorted(texts(await take(bob, 8)), key=int) == [str(n) for n in range(8)]


async def test_an_acknowledgement_from_before_the_cut_is_not_an_error_after_it() -> None:
    """The hub refuses acknowledgements of what it has not sent on this connection."""
    async with (
        LocalNetwork(limited(unacknowledged=4)) as network,
        client(network, "ann") as ann,
        client(network, "bob") as bob,
    ):
        for n in range(12):
            await send(ann, "bob", str(n))
        assert texts(await take(bob, 8)) == [str(n) for n in range(8)], "sent on as it is heard"
        events = await take(bob, 4, ack=False)
        for _ in range(3):
            cut(network)
            await bob.ack(events[-1].seq)
            async with soon():
                await bob.call("list_participants")
        await send(ann, "bob", "after")
        assert texts(await take(bob, 1)) == ["after"]
        assert network.hub.kernel.metrics.bad_frames == 0


async def test_signals_and_comings_and_goings_are_told(network: LocalNetwork) -> None:
    async with client(network, "ann") as ann, soon():
        items = ann.events()
        async with client(network, "bob") as bob:
            assert "bob" in await _presence(items, "online")
            people = Participants.model_validate(await ann.call("list_participants")).participants
            assert {p.id: p.present for p in people} == {"ann": True, "bob": True}
            sent = await send(ann, "bob", "hello")
            await bob.signal("activity", sent.thread_id, "thinking")
            item = await anext(items)
            while not (isinstance(item, Signal) and item.type == "activity"):
                item = await anext(items)
            assert (item.sender, item.thread_id, item.data) == ("bob", "dm.ann.bob", "thinking")
        assert "bob" in await _presence(items, "offline")


async def _presence(items: AsyncIterator[object], key: str) -> list[str]:
    while True:
        item = await anext(items)
        if isinstance(item, Signal) and item.type == "presence" and isinstance(item.data, dict):
            found = item.data[key]
            assert isinstance(found, list)
            names = [str(p["id"] if isinstance(p, dict) else p) for p in found]
            if "bob" in names:
                return names


async def test_who_is_replaced_or_revoked_does_not_come_back(any_network: LocalNetwork) -> None:
    async with (
        Client(any_network.transport(), "calc", options=AT_ONCE) as first,
        Client(any_network.transport(), "calc", options=AT_ONCE) as second,
        soon(),
    ):
        with pytest.raises(ConnectionLost) as caught:
            async for _ in first.events():
                pass
        assert caught.value.code == CloseCode.REPLACED
        with pytest.raises(ConnectionLost):
            await first.call("list_participants")
        await second.call("list_participants")
        any_network.hub.services.admin.revoke("calc")
        with pytest.raises(ConnectionLost) as caught:
            async for _ in second.events():
                pass
        assert caught.value.code == CloseCode.REVOKED


class Restarting:
    """A network that can be stopped and started again, and a way in that follows it."""

    def __init__(self, file: NetworkFile) -> None:
        self._file = file
        self._network: LocalNetwork | None = None
        self._runs = asyncio.Event()

    def attach(self, outlet: Outlet) -> Inlet:
        if self._network is None:
            raise ConnectionRefusedError(111, "Connect call failed")
        return self._network.hub.gateway.attach(outlet)

    def client(self, name: str) -> Client:

        async def till_it_runs(delay: float) -> None:
            await self._runs.wait()

        backoff = ClientOptions(backoff=Backoff(sleep=till_it_runs))
        return Client(MemoryTransport(self.attach), name, "human", options=backoff)

    async def start(self, stack: AsyncExitStack, store: Path) -> None:
        network = LocalNetwork(self._file, store=f"sqlite:{store}")
        await stack.enter_async_context(network)
        self._network = network
        self._runs.set()

    async def stop(self, stack: AsyncExitStack) -> None:
        self._network = None
        self._runs.clear()
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
        watcher = Client(
            network.transport(), "operator", "service", options=ClientOptions(observe=True)
        )
        async with watcher:
            await send(ann, "bob", "between the two")
            (event,) = await take(watcher, 1)
            assert event.message.text == "between the two"
            people = Participants.model_validate(await ann.call("list_participants")).participants
            assert [p.id for p in people] == ["ann", "bob"]
