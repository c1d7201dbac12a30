"""A connection between a gateway and the owner of its network: messages, both ways, in order.

It begins as a request to the hub's port, with a token; after the response both sides send messages.
Everything sent in one iteration of the loop leaves in one write. A link that is silent, or whose
other side does not read, is cut, and both sides continue as if the other had crashed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar, cast

from msgspec import MsgspecError

from hubbub.network.cluster.messages import Alive, encode

__all__ = ["HEAD_BYTES", "NAME_HEADER", "PATH", "PROTOCOL", "LinkEnd", "MessageLink"]

PATH = "/gateway"
PROTOCOL = "hubbub-gateway.v1"
NAME_HEADER = "Hubbub-Gateway"
"""The header with the gateway's name."""
HEAD_BYTES = 8192
"""Limit for the request, or its response."""
MAX_UNSENT = 64 * 1024 * 1024
"""Unsent bytes at which the link is cut."""
MAX_MESSAGE = 64 * 1024 * 1024
BEAT_S = 1.0
M = TypeVar("M")
Received = TypeVar("Received", contravariant=True)


class LinkEnd(Protocol[Received]):
    """The user of a link."""

    def opened(self) -> None: ...

    def received(self, message: Received) -> None: ...

    def lost(self) -> None:
        """The link is lost. Called once, even for a link that was never opened."""
        ...


class MessageLink(asyncio.Protocol, Generic[M]):
    """One end of a link. `agree(head)` checks the other side's head before the first message: it
    responds, and returns whether messages follow."""

    def __init__(
        self,
        read: Callable[[bytes], M],
        agree: Callable[[asyncio.Transport, bytes], bool],
        silent_s: float,
    ):
        """`silent_s`: how long the other side can be silent."""
        self._read, self._agree, self._silent_s = read, agree, silent_s
        self.end: LinkEnd[M]
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._agreed = self._lost = False
        self._out: list[bytes] = []
        self._heard_at = 0.0
        self._beat: asyncio.TimerHandle | None = None
        self.flushing: Callable[[], None] = lambda: None
        """Called before a flush, so that collected messages can be sent."""

    # In -----------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transport is not a subclass of asyncio's.
        self._transport = cast(asyncio.Transport, transport)
        self._heard_at = asyncio.get_running_loop().time()
        self._beat_on()

    def data_received(self, data: bytes) -> None:
        assert self._transport is not None
        self._heard_at = asyncio.get_running_loop().time()
        self._buffer += data
        if not self._agreed and not self._read_head():
            return
        self._read_messages()

    def _read_head(self) -> bool:
        assert self._transport is not None
        head, end, rest = bytes(self._buffer).partition(b"\r\n\r\n")
        if not end:
            if len(head) > HEAD_BYTES:
                self._transport.abort()
            return False
        if not self._agree(self._transport, head):
            self._transport.close()
            return False
        self._agreed = True
        self._buffer = bytearray(rest)
        self.end.opened()
        return True

    def _read_messages(self) -> None:
        buffer, at = self._buffer, 0
        while len(buffer) - at >= 4 and not self._lost:
            size = int.from_bytes(buffer[at : at + 4], "big")
            if size > MAX_MESSAGE:
                self.cut()
            if len(buffer) - at - 4 < size:
                break
            try:
                message = self._read(bytes(buffer[at + 4 : at + 4 + size]))
            except MsgspecError:  # another version of this program
                self.cut()
                break
            at += 4 + size
            if not isinstance(message, Alive):
                self.end.received(message)
        del buffer[:at]

    def connection_lost(self, exc: Exception | None) -> None:
        self._lose()

    # Out ----------------------------------------------------------------------------------

    def send(self, message: object) -> None:
        self.send_encoded(encode(message))

    def send_encoded(self, message: bytes) -> None:
        """Send bytes from `encode`, which can be shared by several links."""
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out += (len(message).to_bytes(4, "big"), message)

    def touch(self) -> None:
        """Schedule a flush, for collected messages."""
        if not self._out:
            self.send(Alive())

    def _flush(self) -> None:
        self.flushing()
        out, self._out = self._out, []
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        transport.write(b"".join(out))
        if transport.get_write_buffer_size() > MAX_UNSENT:
            self.cut()

    # The end ------------------------------------------------------------------------------

    def _beat_on(self) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._heard_at > self._silent_s:
            self.cut()
            return
        if self._agreed:
            self.send(Alive())
        self._beat = asyncio.get_running_loop().call_later(BEAT_S, self._beat_on)

    def close(self) -> None:
        """End the link after everything already sent."""
        self._flush()
        if self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        """End the link immediately."""
        if self._transport is not None:
            self._transport.abort()
        self._lose()

    def _lose(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        if not self._lost:
            self._lost = True
            self.end.lost()
