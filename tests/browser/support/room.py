"""A network with a page: its hub and its agents run in this process, clients use sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
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
"""Those that rooms have left: a browser has the files of the page from there already."""


class Room:
    """A running network. `port` may be used by the next one, so that a browser finds it there."""

    def __init__(self, hub: Hub, url: str, stack: AsyncExitStack):
        self.hub, self.url = hub, url
        """`url` is for clients, `page` for browsers."""
        self.page = url.replace("ws://", "http://") + "/"
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
        """An open network with the channel `general`, as long as the context lasts.

        `settings` adds to the section `network`, `plan` to the others; agents of the plan run, and
        ask `model`. `store` and `port` are those of an earlier room.
        """
        own: Plan = {"name": "test", "auth": "open", "store": store}
        endpoint = {"base_url": model.base_url, "api_key": "scripted"} if model else {}
        sections: dict[str, JsonValue] = {"channels": {"general": {}}, **(plan or {})}
        known = sections.get("models", {"default": {"model": "scripted"}} if model else {})
        assert isinstance(known, dict)
        models: dict[str, JsonValue] = {
            name: {**each, **endpoint} for name, each in known.items() if isinstance(each, dict)
        }
        everything = {"network": {**own, **(settings or {})}, "models": models, "mods": [*mods]}
        file = NetworkFile.model_validate({**sections, **everything})
        site = _site(file.network.name, file.network.auth)
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
        """Somebody else who takes part."""
        client = Client(WebSocketTransport(self.url), name, "human")
        return Person(await self._stack.enter_async_context(client))

    async def enters(self, agent: str) -> Client:
        """An agent that is moved by hand."""
        client = Client(WebSocketTransport(self.url), agent, "agent", turns=True)
        return await self._stack.enter_async_context(client)

    def token(self, name: str) -> str:
        """A token for somebody, for as long as the room is open."""
        self.hub.gateway.admission.add_token(name, token := f"hub_token-of-{name}")
        return token

    async def revoke(self, name: str) -> None:
        """All tokens of somebody are void, as with `hubbub tokens revoke`."""
        token = self.token("operator")
        transport = WebSocketTransport(self.url)
        async with Client(transport, "operator", "service", token=token) as operator:
            await operator.call("revoke_tokens", participant=name)

    async def _run(self, name: str, file: NetworkFile) -> None:
        """An agent of the plan, until the room closes."""
        config, token = file.agents[name], self.token(name)
        transport = WebSocketTransport(self.url)
        options = ClientOptions(card=config.card)
        client = Client(transport, name, "agent", token=token, options=options, turns=True)
        await self._stack.enter_async_context(client)
        life = run_agent(config, name, client, Path(), file.models, grace_s=0)
        task = asyncio.create_task(life, name=f"agent {name}")
        self._stack.push_async_callback(_ended, task)


async def call(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    """An operation that answers with an object."""
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def posted(person: Person, text: str, channel: str = "general") -> str:
    """Says something in a channel; the message's id."""
    said = await call(person.client, "post_to_channel", channel=channel, text=text)
    return str(said["id"])


async def _ended(task: asyncio.Task[None]) -> None:
    """Ends an agent; raises what it has died of."""
    if not task.done():
        task.cancel()
        await asyncio.wait({task})
    if not task.cancelled():
        await task


@cache
def _site(network: str, auth: str) -> Site:
    """The page's files are read and compressed once."""
    return Site(About(network, auth))


@asynccontextmanager
async def _served(hub: Hub, site: Site, port: int | None) -> AsyncIterator[Listening]:
    """On the port that is asked for, else on one that was used before, else on any."""
    wanted = port if port is not None else _ports.pop() if _ports else 0
    stack = AsyncExitStack()
    try:
        listening = await stack.enter_async_context(
            serve_hub(hub, f"127.0.0.1:{wanted}", pages=site)
        )
    except UserError:
        if port is not None:
            raise
        listening = await stack.enter_async_context(serve_hub(hub, "127.0.0.1:0", pages=site))
    async with stack:
        yield listening
    if port is None:
        _ports.append(int(listening.url.rpartition(":")[2]))
