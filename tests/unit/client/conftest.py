"""Every test that takes `peer` runs in process and over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from tests.unit.client.peer import Peer, memory_peer, socket_peer


@pytest.fixture(params=["memory", "websocket"])
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[Peer]:
    before = asyncio.all_tasks()
    opening = memory_peer() if request.param == "memory" else socket_peer()
    async with opening as peer:
        yield peer
    left = [task for task in asyncio.all_tasks() - before if task.get_name().startswith("hubbub")]
    assert not left, "a task outlived its client"
