"""The HTTP server of the APIs: persistent connections and invalid requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from hubbub import Agent, Message, Network
from hubbub.config.models import A2aConfig
from hubbub.interop.http import BadRequest, Exchange, HttpServer
from tests.interaction.peers import soon


async def respond(exchange: Exchange) -> None:
    """Answers with the request's body: whole, in pieces, or not at all."""
    try:
        exchange.check()
        body, seen = await exchange.body(1_000_000), exchange.header("x-one")
    except BadRequest as wrong:
        await exchange.respond(wrong.status, {}, str(wrong).encode())
        return
    if exchange.path == "/pieces":
        exchange.start(200, {"content-type": "text/plain"})
        for piece in (exchange.method.encode(), b" ", body):
            await exchange.write(piece)
    elif exchange.path == "/early":
        await exchange.respond(403, {}, b"no")
    else:
        await exchange.respond(200, {"x-seen": seen}, body)


class Peer:
    """A socket at the other end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self.reader, self.writer = reader, writer

    async def request(self, *parts: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request sent in these parts."""
        for part in parts:
            self.writer.write(part)
            await self.writer.drain()
        async with soon():
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()
            if "transfer-encoding: chunked" in head:
                body = b""
                while size := int(await self.reader.readline(), 16):
                    body += await self.reader.readexactly(size)
                    await self.reader.readline()
                await self.reader.readline()
            else:
                length = head.partition("content-length: ")[2].partition("\r\n")[0]
                body = await self.reader.readexactly(int(length or 0))
        return int(head.split(" ")[1]), body

    async def ended(self) -> bool:
        async with soon():
            return not await self.reader.read()


@asynccontextmanager
async def peer(port: int) -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield Peer(reader, writer)
    finally:
        writer.close()
        await writer.wait_closed()


class Echo(Agent):
    async def on_direct(self, message: Message) -> str:
        return message.text


def post(path: str, body: bytes = b"", *more: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", *more]
    return "\r\n".join([*lines, "", ""]).encode() + body


@pytest.mark.behaviour("I-20")
async def test_a_connection_carries_many_api_requests_and_closes_after_one_to_the_hub() -> None:
    question = {"model": "echo", "messages": [{"role": "user", "content": "hi"}]}
    chat = post("/v1/chat/completions", json.dumps(question).encode(), "Authorization: Bearer ann")
    preflight = b"OPTIONS /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
    async with AsyncExitStack() as stack:
        async with Network(Echo(), openai=True) as net:
            port = int((await net.serve(page=False)).rpartition(":")[2])
            busy, idle = [await stack.enter_async_context(peer(port)) for _ in range(2)]
            for parts in ((chat,), (chat[:30], chat[30:])):
                status, body = await busy.request(*parts)
                assert status == 200
                assert json.loads(body)["choices"][0]["message"]["content"] == "hi"
                assert (await busy.request(post("/v1/nowhere")))[0] == 404
                assert await busy.request(preflight) == (204, b"")
            health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
            assert await busy.request(health) == (200, b"ok\n")
            assert await busy.ended(), "the hub's own answer is the last"
            assert (await idle.request(chat))[0] == 200
        assert await idle.ended(), "a network that ends closes its idle connections"


DOORS = ("/a2a/echo", "/v1/chat/completions", "/mcp/echo2")


@asynccontextmanager
async def doors() -> AsyncIterator[int]:
    """The port of a network with all APIs."""
    a2a = A2aConfig(agents=["echo"])
    async with Network(Echo(), people=["ann"], openai=True, mcp=True, a2a=a2a) as net:
        yield int((await net.serve(page=False)).rpartition(":")[2])


@pytest.mark.behaviour("I-20")
@pytest.mark.parametrize("path", DOORS)
async def test_a_body_of_very_many_values_is_refused_before_it_is_parsed(path: str) -> None:
    more = (
        "Authorization: Bearer ann" if path != DOORS[2] else "X-Open: 1",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
    )
    zeros, texts = [0] * 200_000, ['a"b\\'] * 200_000
    async with doors() as port:
        for values in (zeros, texts, {f"name{n}": 0 for n in range(200_000)}):
            body = json.dumps({"model": "echo", "messages": values}).encode()
            async with peer(port) as client:
                status, answer = await client.request(post(path, body, *more))
                assert status == 413, answer[:200]
                assert b"values in all" in answer
        text = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "x", "text": '{"a": [0, 0], "b' * 30_000}
        )
        async with peer(port) as client:
            status, answer = await client.request(post(path, text.encode(), *more))
            assert b"values in all" not in answer, "commas and brackets of a text are no values"


@pytest.mark.behaviour("I-20")
@pytest.mark.parametrize("path", [*DOORS[:2], "/mcp/ann"])  # a person, which no host can be
async def test_a_connection_is_closed_after_a_request_that_is_not_allowed(path: str) -> None:
    async with doors() as port:
        for header in ("Authorization: Bearer hub_wrong", "Origin: http://other.example"):
            async with peer(port) as client:
                status, _ = await client.request(post(path, b"{}", header))
                assert status in (401, 403)
                assert await client.ended(), header


@asynccontextmanager
async def served(**limits: float) -> AsyncIterator[int]:
    server = HttpServer(respond, **limits)  # type: ignore[arg-type]  # seconds, and a number
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(server.protocol, "127.0.0.1", 0)
    try:
        yield int(listening.sockets[0].getsockname()[1])
    finally:
        listening.close()
        await server.close()


@pytest.mark.behaviour("I-20")
async def test_requests_are_answered_however_split_and_invalid_ones_get_an_error() -> None:
    chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    whole = post("/", b"hello", "X-One: \t1 ")
    trailing = chunked[:-2] + b"X-One: 1\r\n\r\n0\r\nX-One: 2\r\n\r\n"
    cases: list[tuple[tuple[bytes, ...], int, bytes]] = [
        ((whole,), 200, b"hello"),
        (tuple(whole[n : n + 1] for n in range(len(whole))), 200, b"hello"),
        ((chunked, b"5\r\nhel", b"lo\r\n", b"0\r\n\r\n"), 200, b"hello"),
        ((trailing,), 200, b""),
        ((post("/pieces", b"hello"),), 200, b"POST hello"),
        ((post("/", b"x" * 600_000),), 200, b"x" * 600_000),
        ((b"GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",), 200, b""),
        ((post("/", b"h2", "Connection: Upgrade", "Upgrade: h2c"),), 400, b""),
        ((post("/", b"", "X-One: 1", "X-One: 2"),), 400, b"the header x-one is repeated"),
        ((b"nonsense\r\n\r\n",), 400, b""),
        ((post("/", b"", "Content-Length: 3"),), 400, b""),
        ((post("/", b"", "X-One: \x7f"),), 400, b""),
        ((post("/", b"", "Transfer-Encoding: chunked"),), 400, b""),
        ((b"GET / HTTP/1.1\r\nX: ", b"y" * 70_000), 431, b""),
        ((b"POST / HTTP/1.1\r\nContent-Length: 1000001\r\n\r\n",), 413, b""),
    ]  # fmt: skip
    async with served() as port:
        for parts, status, body in cases:
            async with peer(port) as client:
                answer = await client.request(*parts)
                assert answer[0] == status, (parts[0][:80], answer)
                assert answer[1] == body or status >= 400, parts[0][:80]
                assert await client.ended()


@pytest.mark.behaviour("I-20")
async def test_slow_disconnected_and_excess_clients_do_not_affect_others() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    async with served(request_s=0.0) as port:
        for parts in ((), (b"POST",), (head, b"x")):
            async with peer(port) as slow:
                assert (await slow.request(*parts))[0] == 408, parts
                assert await slow.ended()
    async with served(most=1) as port:
        async with peer(port) as first:
            first.writer.write(head)
            async with peer(port) as second:
                assert (await second.request(head))[0] == 503
                assert await second.ended()
            assert await first.request(b"123456789") == (200, b"123456789")
        async with peer(port) as gone:
            gone.writer.write(head)
            gone.writer.write_eof()
            assert await gone.ended()
        async with peer(port) as after:
            assert (await after.request(head, b"123456789"))[0] == 200
