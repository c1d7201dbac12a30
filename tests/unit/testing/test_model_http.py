"""The model server and HTTP: what it answers, and that no bytes break it."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from hubbub.testing.model_server import Answer, ModelServer, Script

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
SCRIPT = Script(answers=[Answer(text="one"), Answer(text="two")])


def post(body: bytes = BODY, *headers: str) -> bytes:
    lines = ["POST /v1/chat/completions HTTP/1.1", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def exchange(server: ModelServer, data: bytes) -> bytes:
    """Everything the server sends until it closes, after `data` and the end of our side."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        writer.write(data)
        writer.write_eof()
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_pipelined_requests_are_answered_in_order_until_the_client_wants_no_more() -> None:
    async with ModelServer(SCRIPT) as server:
        answers = await exchange(server, post() + post())
        assert answers.count(b"HTTP/1.1 200 OK") == 2
        assert answers.index(b'"one"') < answers.index(b'"two"')
    async with ModelServer(SCRIPT) as server:
        answers = await exchange(server, post(BODY, "Connection: close") + post())
        assert answers.count(b"HTTP/1.1") == 1


STATUS = [
    (post(BODY, "Expect: 100-continue"), b"100"),
    (b"GET /v1/models?limit=2 HTTP/1.1\r\n\r\n", b"200"),
    (b"GET /v1/nothing HTTP/1.1\r\n\r\n", b"404"),
    (b"GET /v1/chat/completions HTTP/1.1\r\n\r\n", b"404"),
    (b"get / HTTP/1.1\r\n\r\n", b"400"),
    (b"GET  / HTTP/1.1\r\n\r\n", b"400"),
    (b"GET / HTTP/2.0\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nspace : x\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nA: \x00\r\n\r\n", b"400"),
    (b"GET / HTTP/1.1\r\nA: x", b"400"),
    (b"POST / HTTP/1.1\r\n\r\n", b"411"),
    (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n12345", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nshort", b"400"),
    (b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", b"413"),
    (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"501"),
    (b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000 + b"\r\n\r\n", b"431"),
    (post(b"not json"), b"400"),
    (post(b"\xff\xfe"), b"400"),
    (post(b"[]"), b"400"),
    (post(b"{}"), b"400"),
]


async def test_each_request_gets_its_status() -> None:
    async with ModelServer(SCRIPT) as server:
        for data, expected in STATUS:
            answer = await exchange(server, data)
            assert answer.split(None, 2)[1] == expected, data[:60]


@given(st.lists(st.binary(max_size=60) | st.just(b"GET / HTTP/1.1\r\n\r\n"), max_size=4))
def test_no_bytes_break_the_server(pieces: list[bytes]) -> None:
    async def scene() -> bytes:
        async with ModelServer(SCRIPT) as server:
            await exchange(server, b"".join(pieces))
            return await exchange(server, post())

    assert b'"one"' in asyncio.run(scene())
