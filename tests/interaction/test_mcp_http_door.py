"""The door for MCP hosts on the hub's port, under bad tokens and many connections."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx2
import pytest

from hubbub import Network
from hubbub.network.auth import AT_ONCE

pytest.importorskip("mcp", reason="needs the extra `mcp`")
# Reading the SDK takes longer than running all of this.
pytestmark = [pytest.mark.slow, pytest.mark.behaviour("I-14")]

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
HEADERS = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def door(**limits: int) -> AsyncIterator[str]:
    """The address of `claude`, whose token is `right`."""
    async with Network(auth="tokens", mcp=True, limits=limits) as net:
        net.hub.gateway.admission.add_token("claude", "right")
        yield (await net.serve(page=False)).replace("ws:", "http:") + "/mcp/claude"


async def test_wrong_tokens_wait_without_delaying_the_right_one() -> None:
    async with door() as url, httpx2.AsyncClient(timeout=60) as http:

        async def status(token: str) -> int:
            headers = {**HEADERS, "Authorization": f"Bearer {token}"}
            return (await http.post(url, json=LIST, headers=headers)).status_code

        right = await status("right")
        assert right != 401
        wrong = [asyncio.create_task(status(f"wrong{n}")) for n in range(AT_ONCE + 20)]
        done, _ = await asyncio.wait(wrong, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in done} <= {401, 429}
        assert await status("right") == right
        assert not all(each.done() for each in wrong), "all but a few are delayed"
        for each in wrong:
            each.cancel()
        await asyncio.wait(wrong)


async def test_a_stopping_hub_refuses_hosts_with_503_as_with_401_they_would_log_in() -> None:
    async with Network(mcp=True) as net, httpx2.AsyncClient() as http:
        url = (await net.serve(page=False)).replace("ws:", "http:") + "/mcp/claude"
        net.hub.kernel.draining.set()
        answer = await http.post(url, json=LIST, headers=HEADERS)
        assert (answer.status_code, "www-authenticate" in answer.headers) == (503, False)


async def test_connections_to_a_door_count_towards_the_limit() -> None:
    async with door(strangers=3) as url:
        host, port = url.removeprefix("http://").partition("/")[0].split(":")
        streams = [await asyncio.open_connection(host, port) for _ in range(4)]
        for _, writer in streams:
            writer.write(b"GET /mcp/claude HTTP/1.1\r\n")  # incomplete
        closed = [asyncio.create_task(reader.read()) for reader, _ in streams]
        done, _ = await asyncio.wait(closed, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert b"503" in done.pop().result()
        for _, writer in streams:
            writer.close()
            await writer.wait_closed()
        await asyncio.wait(closed)


async def test_a_request_in_a_version_that_does_not_exist_gets_400() -> None:
    async with door() as url, httpx2.AsyncClient() as http:
        headers = {**HEADERS, "Authorization": "Bearer right", "MCP-Protocol-Version": "2999-01-01"}
        answer = await http.post(url, json=LIST, headers=headers)
        assert (answer.status_code, answer.json()["id"]) == (400, 1)
