"""A program that receives webhooks, over real HTTP on the loopback interface."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import h11

from tests.interaction.peers import soon

__all__ = ["Receiver", "Request", "receiving"]


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:  # any JSON, as a receiver sees it
        return json.loads(self.body)


@dataclass
class Receiver:
    """Answers with `status` and `headers`, or not at all while `status` is None."""

    url: str = ""
    status: int | None = 200
    headers: dict[str, str] = field(default_factory=dict)
    answer: bytes = b"thanks"
    requests: list[Request] = field(default_factory=list)
    _arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def got(self, count: int) -> list[Request]:
        """Wait for at least `count` requests. Returns all of them."""
        async with soon(), self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)
        return self.requests

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = h11.Connection(h11.SERVER)
        try:
            while await self._one(wire, reader, writer):
                wire.start_next_cycle()
        except (OSError, h11.RemoteProtocolError):
            pass  # the sender may disconnect
        finally:
            writer.close()

    async def _one(
        self, wire: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> bool:
        head, body = None, b""
        while True:
            event = wire.next_event()
            if event is h11.NEED_DATA:
                wire.receive_data(await reader.read(65536))
            elif isinstance(event, h11.Request):
                head = event
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage):
                break
            else:
                return False
        assert head is not None
        headers = {name.decode(): value.decode() for name, value in head.headers}
        async with self._arrived:
            self.requests.append(Request(head.target.decode(), headers, body))
            self._arrived.notify_all()
        if self.status is None:
            await reader.read()  # until the sender disconnects
            return False
        more = {"content-length": str(len(self.answer)), **self.headers}
        writer.write(wire.send(h11.Response(status_code=self.status, headers=list(more.items()))))
        writer.write(wire.send(h11.Data(data=self.answer)))
        writer.write(wire.send(h11.EndOfMessage()))
        await writer.drain()
        return True


@asynccontextmanager
async def receiving(port: int = 0) -> AsyncIterator[Receiver]:
    receiver = Receiver()
    connections: dict[asyncio.Future[None], asyncio.StreamWriter] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served = asyncio.get_running_loop().create_future()
        connections[served] = writer
        try:
            await receiver.serve(reader, writer)
        finally:
            del connections[served]
            served.set_result(None)

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    try:
        yield receiver
    finally:
        server.close()
        for writer in connections.values():
            writer.close()
        async with soon():
            await asyncio.gather(*connections)
