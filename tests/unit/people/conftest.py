"""A running network, and bob in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hubbub.client import Client
from hubbub.testing.network import LocalNetwork
from tests.unit.people.chatroom import town


@pytest.fixture
async def network() -> AsyncIterator[LocalNetwork]:
    async with town() as network:
        yield network


@pytest.fixture
async def bob(network: LocalNetwork) -> Client:
    return await network.join("bob", "human")
