"""The client library against the real hub, in process and over real sockets."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from hubbub.client import Backoff, Client, ClientOptions, MemoryTransport
from hubbub.config.models import NetworkFile
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import Event
from hubbub.protocol.operations import SendResult
from hubbub.protocol.wire import Inlet, Outlet
from hubbub.testing.network import LocalNetwork
from tests.interaction.peers import config, soon

AT_ONCE = ClientOptions(backoff=Backoff(first_s=0, most_s=0))


def client(network: LocalNetwork, name: str) -> Client:
    return Client(network.transport(), name, "human", options=AT_ONCE)


async def take(client: Client, count: int, *, ack: bool = True) -> list[Event]:
    """The next events."""
    events: list[Event] = []
    async with soon():
        async for item in client.events():
            if isinstance(item, Event):
                events.append(item)
                if ack:
                    await client.ack(item.seq)
            if len(events) == count:
                break
    return events


def texts(events: list[Event]) -> list[str]:
    return [event.message.text for event in events]


def cut(network: LocalNetwork) -> None:
    """End every connection as the hub would."""
    for session in network.hub.gateway.sessions():
        session.close(CloseCode.SLOW, "cut by the test")


async def send(client: Client, to: str, text: str) -> SendResult:
    async with soon():
        value = await client.call("send_text_message", to=to, text=text)
    return SendResult.model_validate(value)


@pytest.mark.behaviour("C-1", "S-1")
@pytest.mark.parametrize("sockets", [False, True], ids=["memory", "sockets"])
async def test_posts_arrive_exactly_once_and_in_order_across_disconnects(sockets: bool) -> None:
    count = 60
    async with (
        LocalNetwork(config(network={"limits": {"burst": 10_000}}), sockets=sockets) as network,
        client(network, "ann") as ann,
        client(network, "bob") as bob,
    ):
        posts = [ann.post("send_text_message", to="bob", text=str(n)) for n in range(count)]
        received: list[str] = []
        async with soon():
            for _ in range(6):
                received += texts(await take(bob, count // 6))
                cut(network)
            await asyncio.gather(*posts)
    assert received == [str(n) for n in range(count)]


async def test_an_acknowledgement_stays_valid_after_a_reconnect() -> None:
    """The hub refuses acknowledgements of events that it did not send on this connection."""
    async with (
        LocalNetwork(config(network={"limits": {"unacknowledged": 4}})) as network,
        client(network, "ann") as ann,
        client(network, "bob") as bob,
    ):
        for n in range(12):
            await send(ann, "bob", str(n))
        assert texts(await take(bob, 8)) == [str(n) for n in range(8)]
        events = await take(bob, 4, ack=False)
        for _ in range(3):
            cut(network)
            await bob.ack(events[-1].seq)
            async with soon():
                await bob.call("list_participants")
        await send(ann, "bob", "after")
        assert texts(await take(bob, 1)) == ["after"]
        assert network.hub.kernel.metrics.bad_frames == 0


class Restarting:
    """A network that can be stopped and started again, and a transport that follows it."""

    def __init__(self, file: NetworkFile) -> None:
        self._file = file
        self._network: LocalNetwork | None = None
        self._runs = asyncio.Event()

    def attach(self, outlet: Outlet) -> Inlet:
        if self._network is None:
            raise ConnectionRefusedError(111, "Connect call failed")
        return self._network.hub.gateway.attach(outlet)

    def client(self, name: str) -> Client:
        async def until_it_runs(delay: float) -> None:
            await self._runs.wait()

        options = ClientOptions(backoff=Backoff(sleep=until_it_runs))
        return Client(MemoryTransport(self.attach), name, "human", options=options)

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
async def test_clients_resume_after_a_hub_restart_without_loss_or_duplicates(
    tmp_path: Path,
) -> None:
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
