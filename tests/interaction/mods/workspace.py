"""A channel `desk` with ann (a person) and the agents bot and dot. olga owns the network; cat is
not a member."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any

import pytest

from hubbub.clock import Clock
from hubbub.errors import OperationError
from hubbub.mods.api import PASS, Mod, ModConfig, Reject, Verdict
from hubbub.network.ports import Store
from hubbub.protocol.messages import Draft
from tests.interaction.peers import Network, Networks, Peer, config, soon
from tests.interaction.stop_harness import HandClock

__all__ = [
    "DESK", "QUICK", "NoNotices", "advance", "at_time", "hub_messages", "post", "refusal",
    "refused", "workspace",
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
    """A network and the peers of these participants. `turns` is for the agents `bot`, `dot` and
    `calc`; the other arguments change sections of the config."""
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


async def refusal(peer: Peer, name: str, /, **args: Any) -> OperationError:
    """The error of a refused call."""
    with pytest.raises(OperationError) as caught:
        await peer.call(name, **args)
    return caught.value


async def refused(peer: Peer, name: str, /, **args: Any) -> str:
    """The code of a refused call."""
    return (await refusal(peer, name, **args)).code


async def hub_messages(network: Network, peer: Peer, count: int = 0) -> list[Any]:
    """Messages of the hub and its mods at the desk, once there are `count`."""
    async with soon():
        while True:
            await network.quiet()
            page = await peer.call("read_thread", thread=DESK, limit=100)
            messages = [each for each in page["messages"] if each["sender_id"] == "hub"]
            if len(messages) >= count:
                return messages


def at_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


def advance(network: Network, clock: HandClock, seconds: float) -> None:
    """Let time pass."""
    clock.wall += seconds
    network.hub.look()


class NoNotices(Mod):
    """Rejects the hub's notices with this text."""

    name = "no_notices"

    def __init__(self, text: str) -> None:
        super().__init__(ModConfig())
        self.rejected = asyncio.Queue[Draft]()
        self._text = text

    def on_message(self, draft: Draft) -> Verdict:
        if draft.sender_kind == "system" and self._text in (draft.text_representation or ""):
            self.rejected.put_nowait(draft)
            return Reject("no notices here")
        return PASS
