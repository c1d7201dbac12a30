"""Where frames begin and end, so that plain text frames need no parser.

What clients send is, nearly always, whole text frames: final, masked, uncompressed. These are
unmasked and handed over at once; every other frame goes to the WebSocket library as it came, and so
does, from there on, a stream whose frames the library has to refuse.
"""

from __future__ import annotations

from collections.abc import Callable

from websockets.speedups import apply_mask

__all__ = ["FrameSplitter"]

_FINAL_TEXT = 0x81
_MASKED = 0x80


class FrameSplitter:
    """Splits a client's byte stream into frames.

    `text(payload)` is called for each plain text frame, `other(frame)` for the bytes of any other
    whole frame. `max_bytes` is the largest payload that is waited for.
    """

    __slots__ = ("_buffer", "_max_bytes", "_needed", "_other", "_text", "giving_up")

    def __init__(
        self, text: Callable[[bytes], None], other: Callable[[bytes], None], max_bytes: int
    ):
        self._text, self._other, self._max_bytes = text, other, max_bytes
        self._buffer = bytearray()
        self._needed = 0
        """Bytes that the buffer must have before it is worth another look."""
        self.giving_up = False
        """Whether the library gets the rest of the stream unsplit."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        if self.giving_up:
            self._other(data)
            return
        if self._buffer:
            self._buffer += data
            if len(self._buffer) < self._needed:
                return
            data = bytes(self._buffer)
            self._buffer.clear()
        used = self._split(data)
        if used < len(data):
            rest = data[used:]
            if self.giving_up:
                self._other(rest)
            else:
                self._buffer += rest

    def _split(self, data: bytes) -> int:
        """Hand over the whole frames at the beginning of `data`; returns how long they are."""
        at, end = 0, len(data)
        self._needed = 2
        while end - at >= 2:
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
                return at
            if size > self._max_bytes or not data[at + 1] & _MASKED:
                self.giving_up = True
                return at
            payload_at = mask_at + 4
            stop = payload_at + size
            if stop > end:
                self._needed = stop - at
                return at
            if data[at] == _FINAL_TEXT:
                self._text(apply_mask(data[payload_at:stop], data[mask_at:payload_at]))
            else:
                self._other(data[at:stop])
            at = stop
        return at
