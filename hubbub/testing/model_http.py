"""As much HTTP/1.1 as one JSON endpoint needs: strict, keep-alive, on asyncio streams."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

__all__ = ["BadHttp", "HttpRequest", "end_chunks", "read_request", "send", "send_chunk", "start"]

MAX_HEAD = 64 * 1024
MAX_BODY = 64 * 1024 * 1024
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_TARGET = re.compile(rb"(GET|POST|HEAD|PUT|DELETE|OPTIONS) (/[!-~]*) HTTP/1\.([01])\Z")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00-\x08\x0a-\x1f\x7f]*?)[ \t]*\Z")


class BadHttp(Exception):
    """What came is not a request we read; the connection is closed after `status`."""

    def __init__(self, status: int, message: str):
        self.status, self.message = status, message
        super().__init__(message)


@dataclass(frozen=True)
class HttpRequest:
    method: str
    path: str
    """Without the query."""
    headers: dict[str, str]
    """Names in lower case; a repeated header keeps its values, joined by commas."""
    body: bytes
    keep_alive: bool


async def read_request(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> HttpRequest | None:
    """The next request, or None when the peer has closed between two. Raises BadHttp."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise BadHttp(400, "the connection ended inside the head") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadHttp(431, f"the head is over {MAX_HEAD} bytes") from error
    first, *lines = head[:-4].split(b"\r\n")
    target = _TARGET.match(first)
    if target is None:
        raise BadHttp(400, "not an HTTP/1.1 request line")
    headers = _headers(lines)
    length = _length(target[1], headers)
    if headers.get("expect", "").lower() == "100-continue":
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        body = await reader.readexactly(length)
    except asyncio.IncompleteReadError as error:
        raise BadHttp(400, "the connection ended inside the body") from error
    path = target[2].decode("ascii").partition("?")[0]
    keep = target[3] == b"1" and headers.get("connection", "").lower() != "close"
    return HttpRequest(target[1].decode("ascii"), path, headers, body, keep)


def _headers(lines: list[bytes]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        match = _HEADER.match(line)
        if match is None:
            raise BadHttp(400, "not a header line")
        name, value = match[1].decode("ascii").lower(), match[2].decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _length(method: bytes, headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadHttp(501, "chunked requests are not read here; send Content-Length")
    text = headers.get("content-length")
    if text is None:
        if method in (b"POST", b"PUT"):
            raise BadHttp(411, "a body needs Content-Length")
        return 0
    if not (text.isascii() and text.isdigit()):
        raise BadHttp(400, "Content-Length is no number")
    if int(text) > MAX_BODY:
        raise BadHttp(413, f"the body is over {MAX_BODY} bytes")
    return int(text)


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    phrase = _PHRASES.get(status, "Scripted")
    lines = [f"HTTP/1.1 {status} {phrase}", *(f"{k}: {v}" for k, v in headers.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


async def send(
    writer: asyncio.StreamWriter, status: int, headers: Mapping[str, str], body: bytes
) -> None:
    """A whole response."""
    length = {"Content-Length": str(len(body))}
    writer.write(_head(status, {**headers, **length}) + body)
    await writer.drain()


async def start(writer: asyncio.StreamWriter, headers: Mapping[str, str]) -> None:
    """The head of a 200 whose body the caller sends: counted or chunked, as `headers` say."""
    writer.write(_head(200, headers))
    await writer.drain()


async def send_chunk(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(f"{len(data):x}\r\n".encode("ascii") + data + b"\r\n")
    await writer.drain()


async def end_chunks(writer: asyncio.StreamWriter) -> None:
    writer.write(b"0\r\n\r\n")
    await writer.drain()
