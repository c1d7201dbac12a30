"""A desk at which ann (a person) and the agents bot and dot work; olga owns the network, and cat
does not sit there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hubbub.clock import Clock
from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.network.ports import Store
from tests.interaction.peers import Network, Networks, Peer, config, soon
from tests.interaction.stop_harness import HandClock

__all__ = [
    "DESK", "QUICK", "at_time", "later", "post", "refused", "refusing", "said_by_hub", "workspace",
]  # fmt: skip

DESK = "channel.desk"
AGENTS = ("bot", "dot", "calc")
QUICK = {"limits": {"burst": 100_000, "calls_per_second": 1_000_000}}
FILE = config(
    network=QUICK,
    humans={"olga": {"roles": ["owner"]}, "ann": {}, "bob": {}, "cat": {}},
    channels={
        "desk": {"members": ["olga", "ann", "bob", "bot", "dot", "calc", "webhook"]},
        "attic": {"members": ["cat"]},
    },
)


@asynccontextmanager
async def workspace(
    mods: Sequence[Mod],
    *who: str,
    store: str | Store = "sqlite::memory:",
    clock: Clock | None = None,
    turns: bool = False,
    agents: dict[str, Any] | None = None,
    models: dict[str, Any] | None = None,
    **network: Any,
) -> AsyncIterator[tuple[Any, ...]]:
    """The network and the peers of these participants; the agents `bot`, `dot` and `calc` say that
    they take turns if `turns` is set. The rest changes parts of the YAML."""
    limits = {"limits": {**QUICK["limits"], **network.pop("limits", {})}}
    own = config(network={**limits, **network}, agents=agents or {}, models=models or {})
    parts = {"network": own.network, "agents": own.agents, "models": own.models}
    file = FILE.model_copy(update=parts)
    async with Networks(sockets=False).start(file, mods=mods, store=store, clock=clock) as net:
        peers = [
            await net.join(name, "agent", turns=turns) if name in AGENTS else await net.join(name)
            for name in who
        ]
        yield (net, *peers)


async def post(peer: Peer, text: str, channel: str = "desk", **more: Any) -> str:
    """The id of a message in a channel."""
    args = {"channel": channel, "text": text, **more}
    return str((await peer.call("post_to_channel", **args))["id"])


async def refusing(peer: Peer, name: str, /, **args: Any) -> OperationError:
    """The error that the call is answered with."""
    with pytest.raises(OperationError) as caught:
        await peer.call(name, **args)
    return caught.value


async def refused(peer: Peer, name: str, /, **args: Any) -> str:
    """Its code."""
    return (await refusing(peer, name, **args)).code


async def said_by_hub(network: Network, peer: Peer, count: int = 0) -> list[Any]:
    """What mods have said at the desk by now: as soon as there is so much, and no more comes."""
    async with soon():
        while True:
            await network.quiet()
            page = await peer.call("read_thread", thread=DESK, limit=100)
            told = [each for each in page["messages"] if each["sender_id"] == "hub"]
            if len(told) >= count:
                return told


def at_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def later(network: Network, clock: HandClock, seconds: float) -> None:
    """Time passes."""
    clock.wall += seconds
    network.hub.look()
