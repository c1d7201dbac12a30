"""A network with a page: its hub and agents run in this process, clients use sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.agents.launch import run_agent
from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.config.models import NetworkFile
from hubbub.errors import UserError
from hubbub.mods.loader import load_mods
from hubbub.network.hub import Hub
from hubbub.network.server import Listening, serve_hub
from hubbub.network.store import open_store
from hubbub.testing.model_server import ModelServer
from hubbub.web.site import About, Site
from tests.unit.configs.people import Person

__all__ = ["Plan", "Room", "call", "posted"]

Plan = Mapping[str, JsonValue]
"""The sections of a network's YAML (channels, agents, humans, ...)."""

_ports: list[int] = []
"""Ports of closed rooms; browsers have cached the files of the page from them."""


class Room:
    """A running network. The next one can use its `port`, so that a browser reconnects to it."""

    def __init__(self, hub: Hub, url: str, stack: AsyncExitStack):
        self.hub, self.url = hub, url
        """`url` is for clients, `page` for browsers."""
        self.page = url.replace("ws://", "http://") + "/"
        self.address = url.removeprefix("ws://")
        self.port = int(url.rpartition(":")[2])
        self._stack = stack

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Plan | None = None,
        *,
        plan: Plan | None = None,
        mods: Sequence[JsonValue] = (),
        store: str = "sqlite::memory:",
        port: int | None = None,
        model: ModelServer | None = None,
    ) -> AsyncIterator[Room]:
        """Run an open network with the channel `general` within the context.

        `settings` adds to the section `network`, `plan` to the others; agents of the plan run with
        `model`. `store` and `port` can be those of an earlier room.
        """
        own: Plan = {"name": "test", "auth": "open", "store": store}
        endpoint = {"base_url": model.base_url, "api_key": "scripted"} if model else {}
        sections: dict[str, JsonValue] = {"channels": {"general": {}}, **(plan or {})}
        defined = sections.get("models", {"default": {"model": "scripted"}} if model else {})
        assert isinstance(defined, dict)
        models: dict[str, JsonValue] = {
            name: {**each, **endpoint} for name, each in defined.items() if isinstance(each, dict)
        }
        everything = {"network": {**own, **(settings or {})}, "models": models, "mods": [*mods]}
        file = NetworkFile.model_validate({**sections, **everything})
        site = _site(file.network.name, file.network.auth)
        if file.agents:  # their import in this process takes longer than a handshake may
            for runtime in ("model_backend", "models.openai"):
                import_module(f"hubbub.agents.{runtime}")
        async with (
            Hub(file, open_store(file.network.store), mods=load_mods(file.mods)) as hub,
            _served(hub, site, port) as listening,
            AsyncExitStack() as stack,
        ):
            room = cls(hub, listening.url, stack)
            for name in file.agents:
                await room._run(name, file)
            yield room

    async def join(self, name: str) -> Person:
        """Connect another person."""
        client = Client(WebSocketTransport(self.url), name, "human")
        return Person(await self._stack.enter_async_context(client))

    async def enters(self, agent: str) -> Client:
        """Connect an agent that the test controls."""
        client = Client(WebSocketTransport(self.url), agent, "agent", turns=True)
        return await self._stack.enter_async_context(client)

    def token(self, name: str) -> str:
        """Create a token for a participant."""
        self.hub.gateway.admission.add_token(name, token := f"hub_token-of-{name}")
        return token

    async def as_operator(self, operation: str, **args: Any) -> dict[str, Any]:
        """Call an operation as the commands of the network's user do."""
        token = self.token("operator")
        transport = WebSocketTransport(self.url)
        async with Client(transport, "operator", "service", token=token) as operator:
            return await call(operator, operation, **args)

    async def _run(self, name: str, file: NetworkFile) -> None:
        """Run an agent of the plan until the room closes."""
        config, token = file.agents[name], self.token(name)
        transport = WebSocketTransport(self.url)
        options = ClientOptions(card=config.card)
        client = Client(transport, name, "agent", token=token, options=options, turns=True)
        await self._stack.enter_async_context(client)
        life = run_agent(config, name, client, Path(), file.models, grace_s=0)
        task = asyncio.create_task(life, name=f"agent {name}")
        self._stack.push_async_callback(_ended, task)


async def call(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    """Call an operation that returns an object."""
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def posted(person: Person, text: str, channel: str = "general") -> str:
    """Post to a channel; returns the message's id."""
    return str((await call(person.client, "post_to_channel", channel=channel, text=text))["id"])


async def _ended(task: asyncio.Task[None]) -> None:
    """End an agent; raises its exception."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        await task


@cache
def _site(network: str, auth: str) -> Site:
    """Cached, so that the page's files are read and compressed once."""
    return Site(About(network, auth))


@asynccontextmanager
async def _served(hub: Hub, site: Site, port: int | None) -> AsyncIterator[Listening]:
    """Serve the hub on this port, otherwise on the port of a closed room, otherwise on any."""
    preferred = port if port is not None else _ports.pop() if _ports else 0
    stack = AsyncExitStack()
    try:
        listening = await stack.enter_async_context(
            serve_hub(hub, f"127.0.0.1:{preferred}", pages=site)
        )
    except UserError:
        if port is not None:
            raise
        listening = await stack.enter_async_context(serve_hub(hub, "127.0.0.1:0", pages=site))
    async with stack:
        yield listening
    if port is None:
        _ports.append(int(listening.url.rpartition(":")[2]))
