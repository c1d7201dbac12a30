"""One WebSocket as the hub's outlet: complete text frames in, coalesced writes out.

The `websockets` library does the handshake, control frames, fragments, compression and closing. Two
shortcuts save a message the cost of a parser and a coroutine: plain text frames go straight to the
session, and everything written in one iteration of the loop leaves in one write per socket.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from struct import Struct
from typing import Any

from websockets.asyncio.server import ServerConnection
from websockets.frames import CloseCode as WebSocketCode
from websockets.frames import Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import State
from websockets.speedups import apply_mask

from hubbub.network.http import is_upgrade
from hubbub.network.limits import ConnectionCount
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.frames import STRANGER_BYTES, STRANGER_FRAMES
from hubbub.protocol.wire import Inlet

__all__ = ["TOO_SLOW", "Connection", "ConnectionOutlet", "Flusher", "FrameSplitter"]

ABORT_AFTER_S = 1.0
"""Seconds for a peer to answer the closing handshake."""
MAX_UNSENT = 4
"""Multiple of `max_unsent` at which a peer is closed at once: answers to calls can pile up before
it shows whether the peer reads them."""
MAX_FROM_STRANGER = 64 * 1024 + STRANGER_FRAMES * STRANGER_BYTES
"""Bytes before `ready`, including the handshake: the maximum number of frames at maximum size."""
LARGE = 64 * 1024
"""Bytes of a write that can have made the session hold back events."""
TOO_SLOW = "you are reading too slowly; reconnect and resume"

_BODY_HEADERS = re.compile(rb"\r\n(?:content-length|transfer-encoding):[^\r\n]*", re.IGNORECASE)

_MEDIUM = Struct("!BBH").pack
_LONG = Struct("!BBQ").pack
_FINAL_TEXT = 0x81
_MASKED = 0x80
_SHORT = [bytes((_FINAL_TEXT, size)) for size in range(126)]


def _header(size: int) -> bytes:
    """The head of an unmasked, final text frame."""
    if size < 126:
        return _SHORT[size]
    if size < 65536:
        return _MEDIUM(_FINAL_TEXT, 126, size)
    return _LONG(_FINAL_TEXT, 127, size)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class FrameSplitter:
    """Splits a client's byte stream into frames, so that plain text frames need no parser.

    Clients nearly always send whole text frames: final, masked, uncompressed. These are unmasked
    and passed on at once. Any other frame goes to the WebSocket library unchanged, as does the rest
    of a stream with a frame that the library has to refuse.

    `text(payload)` is called for each plain text frame, `other(frame)` for the bytes of any other
    whole frame, and `not_text()` for a text frame that is not UTF-8. `max_bytes` limits the
    payload.
    """

    __slots__ = ("_buffer", "_max_bytes", "_needed", "_not_text", "_other", "_text", "giving_up")

    def __init__(
        self,
        text: Callable[[bytes], None],
        other: Callable[[bytes], None],
        not_text: Callable[[], None],
        max_bytes: int,
    ):
        self._text, self._other, self._not_text = text, other, not_text
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._needed = 0
        """Bytes that the buffer needs before parsing can continue."""
        self.giving_up = False
        """Whether the library gets the rest of the stream unsplit."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream, and pass on the complete frames."""
        if self.giving_up:
            self._other(data)
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        at, end = 0, len(data)
        while end - at >= 2 and not self.giving_up:
            size = data[at + 1] ^ _MASKED
            mask_at = at + 2
            if size == 126 and end - at >= 4:
                size = data[at + 2] << 8 | data[at + 3]
                mask_at = at + 4
            elif size == 127 and end - at >= 10:
                size = int.from_bytes(data[at + 2 : at + 10], "big")
                mask_at = at + 10
            elif size in (126, 127):
                self._needed = 4 if size == 126 else 10
                break
            if size > self._max_bytes or not data[at + 1] & _MASKED:
                self.giving_up = True
                break
            payload_at = mask_at + 4
            stop = payload_at + size
            if stop > end:
                self._needed = stop - at
                break
            if data[at] == _FINAL_TEXT:
                payload = apply_mask(data[payload_at:stop], data[mask_at:payload_at])
                if payload.isascii() or _is_utf8(payload):
                    self._text(payload)
                else:
                    self._not_text()
            else:
                self._other(data[at:stop])
            at = stop
        else:
            self._needed = 2
        if at < end:
            if self.giving_up:
                self._other(data[at:])
            else:
                self._buffer += data[at:]


class Flusher:
    """Flushes all connections that were written to in this iteration of the loop."""

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting: list[Connection] = []

    def flush(self) -> None:
        waiting, self.waiting = self.waiting, []
        for connection in waiting:
            connection.flush()


class Connection(ServerConnection):
    """A server connection that is an `Outlet` and feeds an `Inlet`."""

    flusher: Flusher
    count: ConnectionCount
    max_unsent: int
    """Bytes that a stalled peer can leave unread."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # passed through to the library
        super().__init__(*args, **kwargs)
        self.inlet: Inlet | None = None
        self.refusal: str | None = None
        """Why the connection is refused, if it is."""
        self._address = ""
        self._stranger = True
        self._received = 0
        """Bytes received before the peer identified."""
        self.has_received = True
        """Whether anything arrived since the last heartbeat check."""
        self._early: list[bytes] = []
        self._fragments: bytearray | None = None
        """A message's fragments so far; a peer can send any number of empty ones."""
        self._fragments_are_text = False
        self._out: list[bytes] = []
        self._written = 0
        self._splitter: FrameSplitter | None = None
        self._is_page = False
        """Whether the request is for a page, not for a WebSocket."""
        self._ahead = False
        self._descriptor = -1

    # Unidentified peers -------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self.refusal = self.count.enter(self._address)
        super().connection_made(transport)
        if self.refusal is not None:  # leaves time for the request and its refusal, no more
            self.loop.call_later(ABORT_AFTER_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self.count.leave(self._address, stranger=self._stranger)
        self._stranger = False
        super().connection_lost(exc)

    def identified(self) -> None:
        """The peer has identified."""
        if self._stranger:
            self._stranger = False
            self.count.identified(self._address)

    # In -----------------------------------------------------------------------------------

    def start(self, inlet: Inlet) -> None:
        """Pass received frames to `inlet`, beginning with those that arrived before."""
        self.inlet = inlet
        self._descriptor = self.transport.get_extra_info("socket").fileno()
        if not self.protocol.extensions and not self._ahead:
            most = self.protocol.max_message_size or 0
            receive = inlet.receive
            self._splitter = FrameSplitter(receive, self._other_received, self._not_text, most)
        early, self._early = self._early, []
        for data in early:
            inlet.receive(data)

    def data_received(self, data: bytes) -> None:
        self.has_received = True
        if self._is_page:
            return  # the body, which the library would read as frames
        if self._stranger:
            self._received += len(data)
            if self._received > MAX_FROM_STRANGER:
                self.transport.abort()
                return
        if self._splitter is not None:
            self._splitter.feed(data)
        elif self.request is None:
            self._head_received(data)
        else:
            # It can have begun a frame, which the library is then in the middle of.
            self._ahead = True
            super().data_received(data)

    def _head_received(self, data: bytes) -> None:
        """Pass the request to the library, and then what a client sent without waiting for the
        response. The library closes without one if there is a body, so it gets no header of it."""
        head, end, after = data.partition(b"\r\n\r\n")
        super().data_received(_BODY_HEADERS.sub(b"", head) + end)
        if self.request is None:
            return
        self._is_page = not is_upgrade(self.request.headers)
        self._ahead = not end
        if after:
            self.data_received(after)

    def _other_received(self, data: bytes) -> None:
        """Pass anything but a whole text frame to the library. Between fragments and while closing,
        the library has to check what follows."""
        super().data_received(data)
        in_between = self._fragments is not None
        if self._splitter and (in_between or self.protocol.state is not State.OPEN):
            self._splitter.giving_up = True

    def process_event(self, event: Frame | Request) -> None:  # type: ignore[override]
        if type(event) is not Frame:
            super().process_event(event)
            return
        opcode = event.opcode
        if opcode is Opcode.TEXT and event.fin:
            self._receive(bytes(event.data), text=True)
        elif opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
            self._collect(event)
        else:
            if self.transport.get_write_buffer_size() > MAX_UNSENT * self.max_unsent:
                self.transport.abort()  # pongs pile up unread
            super().process_event(event)

    def _collect(self, frame: Frame) -> None:
        """Collect a fragment or a binary message, whose content is treated as text."""
        if self._fragments is None:
            self._fragments = bytearray()
            self._fragments_are_text = frame.opcode is Opcode.TEXT
        self._fragments += frame.data
        if frame.fin:
            data, self._fragments = bytes(self._fragments), None
            self._receive(data, text=self._fragments_are_text)

    def _receive(self, data: bytes, *, text: bool) -> None:
        if text and not _is_utf8(data):
            self._not_text()
        elif self.inlet is None:
            self._early.append(data)
        elif self.protocol.state is State.OPEN:
            self.inlet.receive(data)

    def _not_text(self) -> None:
        """Close the connection after a text message that is not UTF-8, by RFC 6455 (8.1)."""
        self.close_soon(WebSocketCode.INVALID_DATA, "a text message must be UTF-8")

    # Out ----------------------------------------------------------------------------------

    def write(self, frame: bytes) -> None:
        out = self._out
        if not out:
            waiting = self.flusher.waiting
            if not waiting:
                self.loop.call_soon(self.flusher.flush)
            waiting.append(self)
        size = len(frame)  # the common size is inlined to save a call
        out.append(_MEDIUM(_FINAL_TEXT, 126, size) if 125 < size < 65536 else _header(size))
        out.append(frame)

    def flush(self) -> None:
        """Pass everything written to the transport."""
        out, self._out = self._out, []
        protocol, transport = self.protocol, self.transport
        if not out or protocol.close_sent is not None or transport.is_closing():
            return
        if protocol.extensions:
            for frame in out[1::2]:
                protocol.send_text(frame)
            out = protocol.data_to_send()
        data = b"".join(out)
        size, backlog = len(data), transport.get_write_buffer_size()
        self._written += size
        taken = 0
        if not backlog:
            # Bypasses the transport: os.write releases the GIL, so that the thread that commits
            # can run while the kernel delivers; the transport's send would not.
            try:
                taken = os.write(self._descriptor, data)
            except OSError:  # full or broken: the transport finds out which and handles it
                taken = 0
        if taken < size:
            transport.write(data[taken:] if taken else data)
        if not self.paused:
            if size > LARGE and self.inlet is not None:
                self.inlet.drained()
        # One answer can exceed the limit, so only what was unread before it counts.
        elif backlog > MAX_UNSENT * self.max_unsent:
            self.close_soon(CloseCode.SLOW, TOO_SLOW)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self.inlet is not None:
            self.inlet.drained()

    def unsent(self) -> int:
        return sum(map(len, self._out)) + self.transport.get_write_buffer_size()

    def accepted(self) -> int:
        """Bytes that the peer accepted since the connection began."""
        return self._written - self.transport.get_write_buffer_size()

    def close_soon(self, code: int, reason: str) -> None:
        """Send a close frame after everything written, and abort if the peer does not answer."""
        self.flush()
        if self._splitter is not None:
            self._splitter.giving_up = True
        if self.protocol.state is State.OPEN:
            self.protocol.send_close(code, reason[:120])
            self.send_data()
        self.loop.call_later(ABORT_AFTER_S, self.transport.abort)


class ConnectionOutlet:
    """The `Outlet` of a connection (whose own `close` is the library's coroutine)."""

    __slots__ = ("_connection", "identified", "unsent", "write")

    def __init__(self, connection: Connection):
        self._connection = connection
        self.write = connection.write
        self.unsent = connection.unsent
        self.identified = connection.identified

    def close(self, code: int, reason: str) -> None:
        self._connection.close_soon(code, reason)
