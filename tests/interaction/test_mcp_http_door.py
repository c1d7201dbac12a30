"""The door for MCP hosts on the hub's port, with strangers before it."""

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
TAKES = {"accept": "application/json, text/event-stream"}


@asynccontextmanager
async def door(**limits: int) -> AsyncIterator[str]:
    """The address of `claude`, who is known by the token `right`."""
    async with Network(auth="tokens", mcp=True, limits=limits) as net:
        net.hub.gateway.admission.add_token("claude", "right")
        yield (await net.serve(page=False)).replace("ws:", "http:") + "/mcp/claude"


async def test_wrong_tokens_wait_and_hold_up_nobody_who_has_the_right_one() -> None:
    async with door() as url, httpx2.AsyncClient(timeout=60) as http:

        async def asked(token: str) -> int:
            headers = {**TAKES, "Authorization": f"Bearer {token}"}
            return (await http.post(url, json=LIST, headers=headers)).status_code

        right = await asked("right")
        assert right != 401
        wrong = [asyncio.create_task(asked(f"wrong{n}")) for n in range(AT_ONCE + 20)]
        done, _ = await asyncio.wait(wrong, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in done} == {401}
        assert await asked("right") == right
        assert not all(each.done() for each in wrong), "those beyond a few wait for their answer"
        for each in wrong:
            each.cancel()
        await asyncio.wait(wrong)


async def test_connections_to_a_door_count_as_all_others() -> None:
    async with door(strangers=3) as url:
        host, port = url.removeprefix("http://").partition("/")[0].split(":")
        streams = [await asyncio.open_connection(host, port) for _ in range(4)]
        for _, writer in streams:
            writer.write(b"GET /mcp/claude HTTP/1.1\r\n")  # and no more
        closed = [asyncio.create_task(reader.read()) for reader, _ in streams]
        done, _ = await asyncio.wait(closed, return_when=asyncio.FIRST_COMPLETED)
        assert len(done) == 1
        assert b"503" in done.pop().result()
        for _, writer in streams:
            writer.close()
            await writer.wait_closed()
        await asyncio.wait(closed)
