from __future__ import annotations

import asyncio
import json

import pytest
from hypothesis import given, settings
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


async def status(data: bytes) -> bytes:
    async with ModelServer(SCRIPT) as server:
        return (await exchange(server, data)).partition(b"\r\n")[0]


async def test_pipelined_requests_are_answered_in_order() -> None:
    async with ModelServer(SCRIPT) as server:
        answers = await exchange(server, post() + post())
    assert answers.count(b"HTTP/1.1 200 OK") == 2
    assert answers.index(b'"one"') < answers.index(b'"two"')


async def test_a_connection_closes_when_the_client_says_so() -> None:
    async with ModelServer(SCRIPT) as server:
        answers = await exchange(server, post(BODY, "Connection: close") + post())
    assert answers.count(b"HTTP/1.1") == 1


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on() -> None:
    assert await status(post(BODY, "Expect: 100-continue")) == b"HTTP/1.1 100 Continue"


async def test_the_query_is_no_part_of_the_path() -> None:
    assert await status(b"GET /v1/models?limit=2 HTTP/1.1\r\n\r\n") == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
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
    ],
)
async def test_bad_requests_get_their_status(data: bytes, expected: bytes) -> None:
    assert (await status(data)).split()[1] == expected


@settings(max_examples=25, deadline=None)
@given(st.lists(st.binary(max_size=60) | st.just(b"GET / HTTP/1.1\r\n\r\n"), max_size=4))
def test_no_bytes_break_the_server(pieces: list[bytes]) -> None:
    async def scene() -> bytes:
        async with ModelServer(SCRIPT) as server:
            await exchange(server, b"".join(pieces))
            return await exchange(server, post())

    assert b'"one"' in asyncio.run(scene())
