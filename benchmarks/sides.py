"""The two sides of a comparison: lanes of senders and receivers on the relay and on the hub."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

from benchmarks.lanes import Lane, Lost
from benchmarks.messages import Template, broadcast, direct, index_in, ref_in
from benchmarks.servers import Server
from benchmarks.sockets import Alarm, Kind, Socket, identify, open_socket
from benchmarks.wire import text_frame

__all__ = [
    "Side",
    "hub_fan",
    "hub_lane",
    "hub_pairs",
    "hub_sender",
    "opened_side",
    "receive_events",
    "relay_fan",
    "relay_pairs",
    "token_of",
]

ACK_EVERY = 32
"""Events after which a receiver acknowledges; what is left over it acknowledges when idle."""
ACK_AFTER_S = 0.1
_SEQ = re.compile(rb'"seq":(\d+)')


class Side:
    """One server with the lanes that load it."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.run = uuid4().hex[:8]
        """Makes the cids of this side's lanes unlike those of any other run."""
        self.alarm = Alarm()
        self.lanes: list[Lane] = []
        self.background: list[Lane] = []
        """Lanes that run beside the others, but are not measured."""
        self.sockets: list[Socket] = []

    async def open(self, path: str) -> Socket:
        socket = await open_socket(self.server.port, path, self.alarm)
        self.sockets.append(socket)
        return socket

    async def join(self, participant: str, kind: Kind = "agent") -> Socket:
        """A socket that has identified itself to the hub."""
        socket = await self.open("/")
        await identify(socket, participant, kind, token_of(participant))
        return socket

    def close(self) -> None:
        for socket in self.sockets:
            socket.close()


def token_of(participant: str) -> str:
    """The token that the benchmark's hub knows for a participant."""
    return f"bench-{participant}"


class _Acknowledger:
    """Acknowledges on one socket as the client library does: in groups, or when idle."""

    def __init__(self, socket: Socket):
        self._socket = socket
        self._last = b""
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def event(self, frame: bytes) -> None:
        self._last = frame
        self._count += 1
        if self._count >= ACK_EVERY:
            self._send()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(ACK_AFTER_S, self._idle)

    def _idle(self) -> None:
        self._timer = None
        if self._count and not self._socket.closing:
            self._send()

    def _send(self) -> None:
        self._count = 0
        found = _SEQ.search(self._last)
        assert found is not None
        self._socket.write(text_frame(b'{"op":"ack","seq":%b}' % found[1]))


def _send_through(lane: Lane, socket: Socket, template: Template) -> None:
    lane.transmit = lambda index: socket.write(template.frame(index))


def _receive_plain(lane: Lane, socket: Socket, number: int) -> None:
    def receive(frame: bytes) -> None:
        index = index_in(frame)
        assert index is not None
        lane.arrived(number, index)

    socket.receive = receive


def receive_events(lane: Lane, socket: Socket, number: int) -> None:
    """Let the socket be receiver `number` of the lane, at the hub."""
    acknowledger = _Acknowledger(socket)

    def receive(frame: bytes) -> None:
        index = index_in(frame)
        if index is not None:
            lane.arrived(number, index)
            acknowledger.event(frame)
        elif b'"op":"error"' in frame:
            raise Lost(frame.decode())

    socket.receive = receive


def _receive_answers(lane: Lane, socket: Socket) -> None:
    def receive(frame: bytes) -> None:
        if b'"op":"result"' in frame:
            index = ref_in(frame)
            assert index is not None
            lane.answered(index)
        elif b'"op":"error"' in frame:
            raise Lost(frame.decode())

    socket.receive = receive


@asynccontextmanager
async def opened_side(server: Server) -> AsyncIterator[Side]:
    side = Side(server)
    try:
        yield side
    finally:
        side.close()


@asynccontextmanager
async def relay_pairs(server: Server, count: int, first: int = 0) -> AsyncIterator[Side]:
    """`count` lanes of one sender and one receiver through the relay."""
    async with opened_side(server) as side:
        for n in range(first, first + count):
            await _relay_lane(side, f"/pair/{n}", 1, direct(f"b{n}", side.run))
        yield side


@asynccontextmanager
async def relay_fan(server: Server, receivers: int) -> AsyncIterator[Side]:
    """One lane with many receivers through the loop that awaits `send`."""
    async with opened_side(server) as side:
        await _relay_lane(side, "/fan/0", receivers, broadcast(side.run))
        yield side


async def _relay_lane(side: Side, path: str, receivers: int, template: Template) -> None:
    lane = Lane(receivers, answers=False, clock=time.perf_counter)
    _send_through(lane, await side.open(f"{path}/a"), template)
    for number in range(receivers):
        _receive_plain(lane, await side.open(f"{path}/b"), number)
    side.lanes.append(lane)


@asynccontextmanager
async def hub_pairs(server: Server, count: int, first: int = 0) -> AsyncIterator[Side]:
    """`count` pairs of agents that talk directly, through the hub."""
    async with opened_side(server) as side:
        for n in range(first, first + count):
            side.lanes.append(await hub_lane(side, f"a{n}", f"b{n}"))
        yield side


@asynccontextmanager
async def hub_fan(server: Server, receivers: int) -> AsyncIterator[Side]:
    """An agent that broadcasts to many through the hub."""
    async with opened_side(server) as side:
        lane = Lane(receivers, answers=True, clock=time.perf_counter)
        for number in range(receivers):
            receive_events(lane, await side.join(f"b{number}"), number)
        await hub_sender(side, lane, "a0", broadcast(side.run))
        side.lanes.append(lane)
        yield side


async def hub_lane(side: Side, sender: str, receiver: str, *, deaf: bool = False) -> Lane:
    """A lane between two agents. A deaf receiver never reads: the hub's answer completes."""
    lane = Lane(0 if deaf else 1, answers=True, clock=time.perf_counter)
    socket = await side.join(receiver)
    if deaf:
        socket.transport.pause_reading()
    else:
        receive_events(lane, socket, 0)
    await hub_sender(side, lane, sender, direct(receiver, side.run))
    return lane


async def hub_sender(
    side: Side, lane: Lane, participant: str, template: Template, socket: Socket | None = None
) -> None:
    """Let the participant send the lane's messages, on this socket or a new one."""
    socket = socket or await side.join(participant)
    _send_through(lane, socket, template)
    _receive_answers(lane, socket)
