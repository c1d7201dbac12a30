"""A network between clients and one hub: frames are delayed, keep their order on a connection, and
are lost with it. An end can notice that at once, or after a long time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

from hubbub.client.transport import ABNORMAL, Wire
from hubbub.errors import ConnectionLost
from hubbub.protocol.wire import Inlet, Outlet
from tests.simulation.loop import PROCESS, Process, VirtualLoop

__all__ = ["VirtualNetwork"]

UNNOTICED_S = 40.0
"""The maximum number of seconds until unanswered pings close a connection."""

Attach = Callable[[Outlet], Inlet]


class VirtualNetwork:
    """The place where a hub listens while it lives."""

    def __init__(self, loop: VirtualLoop):
        self.loop = loop
        self.hub: tuple[Process, Attach] | None = None
        self.lines: list[_Line] = []
        self.twice: set[str] = set()
        """Clients whose next call arrives twice."""
        self.tap: Callable[[bytes, str], None] = lambda frame, name: None
        """Called with each frame of a hub and its client."""

    def listen(self, attach: Attach) -> None:
        """The calling process accepts connections from now on."""
        process = PROCESS.get()
        self.hub = process, attach
        process.on_death.append(lambda: self.died(process))

    def died(self, process: Process) -> None:
        """The other ends of its connections notice: soon if its machine survives, which still sends
        buffered frames, else late."""
        if self.hub is not None and self.hub[0] is process:
            self.hub = None
        late = self.loop.random.random() < 0.2
        for line in [line for line in self.lines if process in (line.client, line.hub)]:
            line.cut(silently=late, sent_by=None if late else process)

    async def open(self, name: str) -> Wire:
        """A new connection of the client `name`. Raises OSError while no hub listens."""
        await asyncio.sleep(self.loop.random.uniform(0, self.loop.weather.network))
        if self.hub is None:
            raise ConnectionRefusedError("connection refused")
        hub, attach = self.hub
        line = _Line(self, name, PROCESS.get(), hub)
        self.lines.append(line)
        line.to_hub.send(line.attach, attach)
        return line.wire

    def transport(self, name: str) -> _Transport:
        return _Transport(self, name)


class _Transport:
    def __init__(self, network: VirtualNetwork, name: str):
        self._network, self._name = network, name

    async def open(self) -> Wire:
        return await self._network.open(self._name)


class _Way:
    """One direction: frames arrive in order, unless the line is cut."""

    def __init__(self, line: _Line, to: Process):
        self._line, self._to, self.last = line, to, 0.0
        self.broken = False
        """Whether frames no longer arrive."""

    def send(self, arrive: Callable[..., None], *args: Any) -> None:
        loop = self._line.network.loop
        delay = loop.random.uniform(0, loop.weather.network)
        self.last = max(self.last, loop.time() + delay)
        loop.deliver(self._to, self.last, self._arrive, arrive, args)

    def _arrive(self, arrive: Callable[..., None], args: tuple[Any, ...]) -> None:
        if not self.broken:
            arrive(*args)


class _Line:
    """One connection, which is an `Outlet` for the hub."""

    inlet: Inlet | None = None

    def __init__(self, network: VirtualNetwork, name: str, client: Process, hub: Process):
        self.network, self.name, self.client, self.hub = network, name, client, hub
        self.to_hub, self.to_client = _Way(self, hub), _Way(self, client)
        self.wire = _Wire(self)
        self.broken = self.closed = False
        """Whether it is cut, and whether the hub has closed or lost it."""
        self._unsent = 0
        client.on_death.append(lambda: network.died(client))

    # The hub's end ------------------------------------------------------------------------------

    def attach(self, attach: Attach) -> None:
        self.inlet = attach(self)

    def write(self, frame: bytes) -> None:
        if not self.closed:
            self.network.tap(frame, self.name)
            self._unsent += len(frame)
            self.to_client.send(self.wire.arrive, frame)
            self.hub.count_frame()

    def close(self, code: int, reason: str) -> None:
        if not self.closed:
            self.to_client.send(self.wire.end, code, reason)
            asyncio.get_running_loop().call_soon(self.lose)

    def identified(self) -> None:
        """Connections are not counted."""

    def unsent(self) -> int:
        return self._unsent

    def receive(self, frame: bytes) -> None:
        if not self.closed and self.inlet is not None:
            self.inlet.receive(frame)

    def taken(self, size: int, *, all: bool) -> None:
        self._unsent -= size
        if all and not self.closed and self.inlet is not None:
            self.inlet.drained()

    def lose(self) -> None:
        """The hub notices that the connection has ended."""
        if not self.closed:
            self.closed = True
            if self in self.network.lines:
                self.network.lines.remove(self)
            if self.inlet is not None:
                self.inlet.lost()

    # Failures -----------------------------------------------------------------------------------

    def cut(self, *, silently: bool, sent_by: Process | None = None) -> None:
        """Frames no longer arrive, except those of the dead process `sent_by`. Each end notices in
        its own time."""
        if self.broken:
            return
        self.broken = True
        self.to_hub.broken = sent_by is not self.client
        self.to_client.broken = sent_by is not self.hub
        loop = self.network.loop
        most = UNNOTICED_S if silently else max(loop.weather.network, 0.001)
        now, chance = loop.time(), loop.random.uniform
        client_at, hub_at = now + chance(0, most), now + chance(0, most)
        if sent_by is self.hub:
            client_at = max(client_at, self.to_client.last)
        if sent_by is self.client:
            hub_at = max(hub_at, self.to_hub.last)
        loop.deliver(self.client, client_at, self.wire.end, ABNORMAL, "")
        loop.deliver(self.hub, hub_at, self.lose)


class _Wire:
    """The client's end."""

    def __init__(self, line: _Line):
        self._line = line
        self._frames = deque[bytes]()
        self._ended: tuple[int, str] | None = None
        self._changed = asyncio.Event()

    def arrive(self, frame: bytes) -> None:
        if self._ended is None:
            self._frames.append(frame)
            self._changed.set()

    def end(self, code: int, reason: str) -> None:
        if self._ended is None:
            self._ended = code, reason
            self._changed.set()

    async def send(self, *frames: str | bytes) -> None:
        for frame in frames:
            self._send(frame.encode() if isinstance(frame, str) else frame)

    def _send(self, data: bytes) -> None:
        if self._ended is not None:
            raise ConnectionLost(*self._ended)
        line = self._line
        line.to_hub.send(line.receive, data)
        if line.name in line.network.twice and b'"call"' in data[:40]:
            line.network.twice.discard(line.name)
            line.to_hub.send(line.receive, data)
        line.client.count_frame()

    async def recv(self) -> bytes:
        while not self._frames:
            if self._ended is not None:
                raise ConnectionLost(*self._ended)
            self._changed.clear()
            await self._changed.wait()
        frame = self._frames.popleft()
        self._line.to_hub.send(partial(self._line.taken, len(frame), all=not self._frames))
        return frame

    async def close(self) -> None:
        self.end(1000, "")
        self._line.to_hub.send(self._line.lose)
