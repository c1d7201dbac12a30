"""A small office: ann, bob and the agent bot share a channel; olga owns the network and is in none
of their threads; cat is anybody."""

from __future__ import annotations

from typing import Any

import pytest

from hubbub.client import Client
from hubbub.clock import Clock
from hubbub.config.models import (
    ChannelConfig,
    HumanConfig,
    Limits,
    NetworkConfig,
    NetworkFile,
)
from hubbub.errors import OperationError
from hubbub.mods.api import Mod
from hubbub.network.ports import Store
from hubbub.testing.network import LocalNetwork

__all__ = ["ask", "office", "refused", "say"]


def office(
    *mods: Mod,
    store: str | Store = "sqlite::memory:",
    clock: Clock | None = None,
    **more: Any,  # other parts of the YAML
) -> LocalNetwork:
    file = NetworkFile(
        network=NetworkConfig(
            auth="open", limits=Limits(burst=100_000, calls_per_second=1_000_000)
        ),
        humans={"olga": HumanConfig(roles=["owner"]), "ann": HumanConfig(), "bob": HumanConfig()},
        channels={"desk": ChannelConfig(members=["ann", "bob", "bot"])},
        **more,
    )
    return LocalNetwork(file, store=store, clock=clock, mods=mods)


async def ask(client: Client, name: str, /, **args: object) -> dict[str, Any]:
    answer = await client.call(name, **args)  # type: ignore[arg-type]
    assert isinstance(answer, dict)
    return answer


async def refused(client: Client, name: str, /, **args: object) -> OperationError:
    """The error that the call is answered with."""
    with pytest.raises(OperationError) as caught:
        await ask(client, name, **args)
    return caught.value


async def say(client: Client, to: str, text: str, **more: object) -> str:
    """The id of the message."""
    answer = await ask(client, "send_text_message", to=to, text=text, **more)
    return f"m{answer['seq']}"
