"""A desk at which ann (a person) and the agents bot and dot work; olga owns the network, and cat
does not sit there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.network.ports import Store
from tests.interaction.hand_clock import HandClock
from tests.interaction.peers import Network, Networks, Peer, config

__all__ = ["DESK", "KINDS", "at_time", "later", "refused", "refusing", "workplace"]

DESK = "channel.desk"
KINDS = {"olga": "human", "ann": "human", "cat": "human", "bot": "agent", "dot": "agent"}
FILE = config(
    network={"limits": {"burst": 100_000, "calls_per_second": 1_000_000}},
    humans={"olga": {"roles": ["owner"]}, "ann": {}, "cat": {}},
    channels={"desk": {"members": ["olga", "ann", "bot", "dot"]}, "attic": {"members": ["cat"]}},
)


@asynccontextmanager
async def workplace(
    mods: Sequence[Mod],
    *who: str,
    store: str | Store = "sqlite::memory:",
    clock: HandClock | None = None,
) -> AsyncIterator[tuple[Any, ...]]:
    """The network and the peers of these participants."""
    async with Networks(sockets=False).start(FILE, mods=mods, store=store, clock=clock) as network:
        yield (network, *[await network.join(name, KINDS[name]) for name in who])


async def refusing(peer: Peer, name: str, /, **args: Any) -> OperationError:
    """The error that the call is answered with."""
    with pytest.raises(OperationError) as caught:
        await peer.call(name, **args)
    return caught.value


async def refused(peer: Peer, name: str, /, **args: Any) -> str:
    """Its code."""
    return (await refusing(peer, name, **args)).code


def at_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def later(network: Network, clock: HandClock, seconds: float) -> None:
    """Time passes."""
    clock.wall += seconds
    network.hub.mods.look()
