"""A participant that sends and receives raw frames, and networks for it.

Tests of the hub must see what the client library hides: every frame, in order, with `prev`, `ref`
and all. A `Peer` is a socket that stores what it receives, and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from typing import Any, TypeVar

from hubbub.client.transport import Wire
from hubbub.clock import Clock
from hubbub.config.models import NetworkFile
from hubbub.config.paths import MEMORY_STORE
from hubbub.errors import ConnectionLost, OperationError
from hubbub.mods.api import Mod
from hubbub.network.log import Entry
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork

__all__ = ["DEADLINE_S", "Frame", "Network", "Networks", "Peer", "config", "eventually", "soon"]

T = TypeVar("T")

# Tests write and read frames, valid or not, as plain JSON. A precise type would be one of the
# models that are under test.
Frame = dict[str, Any]
DEADLINE_S = 100.0
GATEWAY = os.environ.get("HUBBUB_TEST_GATEWAY") == "1"
"""Whether all clients connect through a gateway in front of the hub."""
POSTGRES = os.environ.get("HUBBUB_TEST_POSTGRES") == "1"
"""Whether networks without an explicit store use Postgres."""


def soon() -> asyncio.Timeout:
    """Limit a block to the deadline, so that a test fails instead of hanging."""
    return asyncio.timeout(DEADLINE_S)


async def eventually(condition: Callable[[], bool]) -> None:
    """Yield to the loop until a condition holds that no event announces."""
    async with soon():
        while not condition():  # noqa: ASYNC110  # there is no event for it
            await asyncio.sleep(0)


def config(**sections: Any) -> NetworkFile:
    """A network file; the network is open and in memory unless `network` says otherwise."""
    network = {"auth": "open", "store": "sqlite::memory:", **sections.pop("network", {})}
    return NetworkFile.model_validate({"network": network, **sections})


class Networks:
    """Starts hubs; `attach` opens raw sockets to them."""

    def __init__(self, sockets: bool, gateway: bool = GATEWAY):
        self.sockets, self.gateway = sockets, gateway

    @asynccontextmanager
    async def start(
        self,
        file: NetworkFile | None = None,
        *,
        store: str | Store = MEMORY_STORE,
        mods: Sequence[Mod] = (),
        clock: Clock | None = None,
    ) -> AsyncIterator[Network]:
        with ExitStack() as databases:
            if POSTGRES and store == MEMORY_STORE:
                from tests.interaction.databases import empty_database  # with psycopg

                store = databases.enter_context(empty_database())
            local = LocalNetwork(
                file or config(),
                store=store,
                mods=mods,
                sockets=self.sockets,
                gateway=self.gateway,
                clock=clock,
            )
            async with self._watched(local) as network:
                yield network

    @asynccontextmanager
    async def _watched(self, local: LocalNetwork) -> AsyncIterator[Network]:
        async with local:
            network, uncaught = Network(local), list[str]()
            loop = asyncio.get_running_loop()
            loop.set_exception_handler(lambda loop, context: uncaught.append(str(context)))
            try:
                yield network
            finally:
                await network.leave()
        assert not uncaught, "what a callback raises would only be logged"


class Network:
    """A running hub and the raw peers that a test has on it."""

    def __init__(self, local: LocalNetwork):
        self.local, self.hub = local, local.hub
        self.peers: list[Peer] = []
        self._names = 0
        self._commit = asyncio.Event()

        def announce(entries: Sequence[Entry]) -> None:
            commit, self._commit = self._commit, asyncio.Event()
            commit.set()

        self.hub.listen(announce)

    async def attach(self) -> Peer:
        """A new socket that has received `hello` and sent nothing."""
        async with soon():
            peer = Peer(await self.local.transport().open())
            self.peers.append(peer)
            peer.hello = await peer.expect("hello")
        return peer

    async def join(self, participant: str, kind: str = "human", **identify: Any) -> Peer:
        """A socket that has identified itself and received `ready`."""
        peer = await self.attach()
        await peer.identify(participant, kind, **identify)
        return peer

    async def gone(self, participant: str) -> None:
        """Wait until the hub notices that the participant has no socket left."""
        await eventually(lambda: participant not in self.hub.kernel.state.presence)

    @property
    def bad_frames(self) -> int:
        """The number of frames refused by the hub and the gateway in front of it."""
        uplink, refused = self.local.uplink, self.hub.kernel.metrics.bad_frames
        return refused if uplink is None else refused + uplink.holder.metrics.bad_frames

    def fresh(self, *names: str) -> list[str]:
        """Names that are new to this network, such as `ann7`."""
        self._names += 1
        return [f"{name}{self._names}" for name in names]

    async def leave(self) -> None:
        """Close the sockets of all peers."""
        for peer in self.peers:
            await peer.close()
        self.peers.clear()

    async def recorded(self, find: Callable[[], Awaitable[T | None]]) -> T:
        """Call `find` now and after each commit until it returns a value, for what only the log
        shows."""
        async with soon():
            while True:
                commit = self._commit
                if (value := await find()) is not None:
                    return value
                await commit.wait()

    async def quiet(self) -> None:
        """Wait until the log has committed everything in its queue."""
        async with soon():
            await self.hub.kernel.log.settle()


class Peer:
    """One socket. Frames that a test does not wait for are stored in `events`, `signals` and
    `strays`."""

    hello: Frame
    ready: Frame

    def __init__(self, wire: Wire):
        self._wire = wire
        self._reading = asyncio.Lock()
        self._refs = 0
        self._answers: dict[str, Frame] = {}
        self.events: list[Frame] = []
        self.signals: list[Frame] = []
        self.strays: list[Frame] = []
        """Errors that belong to no call, `reconnect`, and everything else."""
        self.why = ""
        """The reason with which the hub closed the socket."""

    # Frames -----------------------------------------------------------------------------------

    async def send(self, **frame: object) -> None:
        await self.send_raw(json.dumps(frame, ensure_ascii=False).encode())

    async def send_raw(self, frame: bytes) -> None:
        await self._wire.send(frame)

    async def receive(self) -> Frame:
        """The next frame of any kind. Raises `ConnectionLost`."""
        async with soon():
            return await self._next()

    async def _next(self) -> Frame:
        frame: Frame = json.loads(await self._wire.recv())
        return frame

    async def expect(self, op: str) -> Frame:
        """The next frame besides signals, which must be an `op`."""
        frame = await self.receive()
        while frame["op"] == "signal" != op:
            self._store(frame)
            frame = await self.receive()
        assert frame["op"] == op, f"expected {op}, not {str(frame)[:200]}"
        return frame

    def _store(self, frame: Frame) -> None:
        if frame["op"] in ("result", "error") and frame.get("ref"):
            self._answers[frame["ref"]] = frame
        elif frame["op"] == "event":
            self.events.append(frame)
        elif frame["op"] == "signal":
            self.signals.append(frame)
        else:
            self.strays.append(frame)

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read frames until the condition holds. One caller reads at a time, as its frame can be
        the one that another waits for."""
        async with soon():
            while not condition():
                async with self._reading:
                    if not condition():
                        self._store(await self._next())

    async def close(self) -> None:
        await self._wire.close()

    async def closed(self) -> int:
        """Read until the hub closes the socket. Returns the close code; stores earlier frames."""
        try:
            while True:
                self._store(await self.receive())
        except ConnectionLost as lost:
            self.why = lost.reason
            return lost.code

    # Identify ---------------------------------------------------------------------------------

    async def identify(self, participant: str, kind: str = "human", **more: Any) -> Frame:
        frame = {"op": "identify", "version": "hubbub.v1", "participant": participant, "kind": kind}
        await self.send(**{**frame, **more})
        self.ready = await self.expect("ready")
        return self.ready

    async def refused(self, **identify: Any) -> tuple[Frame, int]:
        """Identify and be refused. Returns the error frame and the close code."""
        frame = {"op": "identify", "version": "hubbub.v1", "participant": "ann", "kind": "human"}
        await self.send(**{**frame, **identify})
        return await self.expect("error"), await self.closed()

    # Calls ------------------------------------------------------------------------------------

    async def post(self, name: str, /, *, cid: str | None = None, **args: Any) -> str:
        """Send a call. Returns its ref at once."""
        self._refs += 1
        ref = f"r{self._refs}"
        more = {} if cid is None else {"cid": cid}
        await self.send(op="call", ref=ref, name=name, args=args, **more)
        return ref

    async def answer(self, ref: str) -> Frame:
        """The `result` or `error` frame of a call."""
        await self.until(lambda: ref in self._answers)
        return self._answers.pop(ref)

    async def ask(self, name: str, /, *, cid: str | None = None, **args: Any) -> Frame:
        """Call. Returns the answer frame, `result` or `error`."""
        return await self.answer(await self.post(name, cid=cid, **args))

    async def call(self, name: str, /, *, cid: str | None = None, **args: Any) -> Any:
        """Call. Returns the value of the result; raises `OperationError` for an `error` frame."""
        frame = await self.ask(name, cid=cid, **args)
        if frame["op"] == "error":
            more = {k: frame[k] for k in ("temporary", "retry_after_s", "details") if k in frame}
            raise OperationError(frame["code"], frame["message"], **more)
        return frame["value"]

    async def say(self, to: str | list[str], text: str, **more: Any) -> Any:
        """Send a text message."""
        return await self.call("send_text_message", to=to, text=text, **more)

    # Events -----------------------------------------------------------------------------------

    async def event(self) -> Frame:
        """The next event."""
        await self.until(lambda: bool(self.events))
        return self.events.pop(0)

    async def take(self, count: int) -> list[Frame]:
        """The next `count` events, after which there must be no more.

        For a socket that catches up, whose events are read from the store in their own time.
        """
        await self.until(lambda: len(self.events) >= count)
        events = await self.sync()
        assert len(events) == count, [event["message"]["content"] for event in events]
        return events

    async def take_texts(self, count: int) -> list[str]:
        return [event["message"]["content"] for event in await self.take(count)]

    async def sync(self) -> list[Frame]:
        """All events that the hub has sent to this socket so far, in order.

        Frames arrive in order, so everything pushed before the answer to a call arrives before it.
        """
        await self.call("list_channels")
        events, self.events = self.events, []
        return events

    async def texts(self) -> list[str]:
        """The contents of all events so far."""
        return [event["message"]["content"] for event in await self.sync()]

    async def ack(self, seq: int) -> None:
        await self.send(op="ack", seq=seq)

    async def signal(self, type: str) -> Frame:
        """The next signal of a type."""
        await self.until(lambda: any(s["type"] == type for s in self.signals))
        signal = next(s for s in self.signals if s["type"] == type)
        self.signals.remove(signal)
        return signal
