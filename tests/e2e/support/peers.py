"""A participant that sends raw frames, with nothing but a WebSocket library."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count

from pydantic import JsonValue
from websockets.asyncio.client import ClientConnection, connect

__all__ = ["Frame", "Peer", "inside", "integer", "peer"]

Frame = dict[str, JsonValue]


def inside(frame: Mapping[str, JsonValue], key: str) -> Frame:
    """The object under `key`."""
    value = frame[key]
    assert isinstance(value, dict), frame
    return value


def integer(frame: Mapping[str, JsonValue], key: str) -> int:
    """The integer under `key`."""
    value = frame[key]
    assert isinstance(value, int), frame
    return value


class Peer:
    """One open socket, after `hello`."""

    def __init__(self, socket: ClientConnection, hello: Frame):
        self.socket, self.hello = socket, hello
        self._refs = count(1)

    async def send(self, frame: Mapping[str, JsonValue]) -> None:
        await self.socket.send(json.dumps(frame))

    async def recv(self) -> Frame:
        """The next frame. Raises `websockets.ConnectionClosed`."""
        frame: Frame = json.loads(await self.socket.recv(decode=False))
        return frame

    async def expect(self, **fields: JsonValue) -> Frame:
        """The next frame with these fields; earlier ones are dropped."""
        while True:
            frame = await self.recv()
            if all(frame.get(key) == value for key, value in fields.items()):
                return frame

    async def identify(
        self, participant: str, kind: str = "human", cursor: Mapping[str, JsonValue] | None = None
    ) -> Frame:
        """Joins; returns `ready`."""
        frame: Frame = {"op": "identify", "version": "hubbub.v1"}
        frame |= {"participant": participant, "kind": kind}
        if cursor is not None:
            frame["cursor"] = dict(cursor)
        await self.send(frame)
        return await self.expect(op="ready")

    async def call(self, name: str, **args: JsonValue) -> Frame:
        """Calls an operation; returns the `result` or `error` frame."""
        ref = f"call-{next(self._refs)}"
        await self.send({"op": "call", "ref": ref, "name": name, "args": args})
        return await self.expect(ref=ref)


@asynccontextmanager
async def peer(url: str) -> AsyncIterator[Peer]:
    """A socket that has received `hello`."""
    async with connect(url, compression=None, proxy=None, max_size=None, close_timeout=1) as socket:
        yield Peer(socket, json.loads(await socket.recv(decode=False)))
