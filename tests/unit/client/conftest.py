"""The `peer` fixture runs in process; `any_peer` also over a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from tests.unit.client.peer import Peer, memory_peer, socket_peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with _leaving_no_task(memory_peer()) as peer:
        yield peer


@pytest.fixture(params=[memory_peer, socket_peer])
async def any_peer(request: pytest.FixtureRequest) -> AsyncIterator[Peer]:
    async with _leaving_no_task(request.param()) as peer:
        yield peer


@asynccontextmanager
async def _leaving_no_task(opening: AbstractAsyncContextManager[Peer]) -> AsyncIterator[Peer]:
    before = asyncio.all_tasks()
    async with opening as peer:
        yield peer
    left = [task for task in asyncio.all_tasks() - before if task.get_name().startswith("hubbub")]
    assert not left, "a task outlived its client"
