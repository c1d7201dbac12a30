"""WebSocket frames made and taken apart by hand, for the load program only.

A client library would be the bottleneck of a machine with two cores. Frames go out with the mask
key zero, which RFC 6455 allows and which leaves the payload as it is; what comes in is never
fragmented or compressed by the servers measured here.
"""

from __future__ import annotations

import base64
import os

__all__ = ["CLOSE", "PING", "PONG", "TEXT", "Splitter", "handshake", "header", "text_frame"]

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
_WHOLE_TEXT = 0x80 | TEXT


def header(size: int, opcode: int = TEXT) -> bytes:
    """The header of a masked frame with a payload of `size` bytes, up to and with the mask key."""
    if size < 126:
        length = bytes([0x80 | size])
    elif size < 65536:
        length = b"\xfe" + size.to_bytes(2, "big")
    else:
        length = b"\xff" + size.to_bytes(8, "big")
    return bytes([0x80 | opcode]) + length + b"\0\0\0\0"


def text_frame(payload: bytes) -> bytes:
    return header(len(payload)) + payload


def handshake(port: int, path: str) -> bytes:
    """The request that opens a WebSocket on a server of this machine."""
    key = base64.b64encode(os.urandom(16)).decode()
    return (
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\n"
        f"Connection: Upgrade\r\nSec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


class Splitter:
    """Cuts what a server sends into frames, however the network cut it."""

    __slots__ = ("_rest", "pings")

    def __init__(self) -> None:
        self._rest = b""
        self.pings: list[bytes] = []
        """Payloads of pings that nobody has answered yet."""

    def feed(self, data: bytes) -> list[bytes]:
        """The payloads of the text frames that are complete now.

        Raises `ConnectionError` on a close frame.
        """
        if self._rest:
            data = self._rest + data
        found: list[bytes] = []
        at, end = 0, len(data)
        while end - at >= 2:
            start, size = at + 2, data[at + 1]
            if size == 126 and end - at >= 4:  # nearly all frames, so without a call
                start, size = at + 4, data[at + 2] << 8 | data[at + 3]
            elif size > 125:
                start, size = _payload(data, at)
            if start + size > end:
                break
            if data[at] == _WHOLE_TEXT:
                found.append(data[start : start + size])
            else:
                self._control(data[at] & 0x0F, data[start : start + size])
            at = start + size
        self._rest = data[at:]
        return found

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == PING:
            self.pings.append(payload)
        elif opcode == CLOSE:
            raise ConnectionError(f"closed by the server: {_verdict(payload)}")
        elif opcode != PONG:
            raise ConnectionError(f"a frame with opcode {opcode} that the load program cannot read")


def _payload(data: bytes, at: int) -> tuple[int, int]:
    """Where the payload of the frame at `at` starts and how long it is.

    With a header that is cut short the start lies beyond the data.
    """
    size = data[at + 1]
    if size < 126:
        return at + 2, size
    if size == 126:
        return at + 4, int.from_bytes(data[at + 2 : at + 4], "big")
    return at + 10, int.from_bytes(data[at + 2 : at + 10], "big")


def _verdict(payload: bytes) -> str:
    code = int.from_bytes(payload[:2], "big") if len(payload) >= 2 else 1005
    return f"{code} {payload[2:].decode(errors='replace')}".strip()
