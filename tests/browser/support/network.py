"""Networks with a page.

A `Network` is as a user runs it: `hubbub up` in a process, which may be killed and started again.
A `Room` is the same hub and the same page on a port of this process, for tests that need people
only: it is there at once.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from hubbub.client import Client, RunFile, WebSocketTransport
from hubbub.config.models import ChannelConfig, NetworkConfig, NetworkFile
from hubbub.mods.loader import load_mods
from hubbub.network.hub import Hub
from hubbub.network.server import serve_hub
from hubbub.network.store import open_store
from hubbub.protocol.admin import NewToken
from hubbub.protocol.frames import Ready, Signal
from hubbub.protocol.operations import Participants
from hubbub.testing.model_server import ModelServer
from hubbub.web.site import About, Site
from tests.e2e.support.config_network import environment
from tests.unit.configs.people import Person

__all__ = ["Network", "Networks", "Plan", "Room"]

DEADLINE_S = 60.0
"""How long a network may take to come up or to go before the test fails."""
_ADDRESS = re.compile(r"ws://127\.0\.0\.1:(?P<port>[1-9]\d*)")

Plan = Mapping[str, JsonValue]
"""The sections of a network's YAML (channels, agents, humans, ...)."""


class Network:
    """One network on one database. `port` stays the same from the first start on."""

    def __init__(
        self,
        folder: Path,
        plan: Plan,
        auth: Literal["open", "tokens"] = "open",
        variables: Mapping[str, str] | None = None,
    ):
        """`plan["network"]` adds to the section or replaces parts; `variables` is environment."""
        self.folder, self.database = folder, folder / "network.db"
        self.port = 0
        self._plan, self._auth, self._variables = plan, auth, dict(variables or {})
        self._process: Process | None = None
        self._output: list[str] = []
        self._reading: asyncio.Task[None] | None = None
        self._people = AsyncExitStack()

    @property
    def url(self) -> str:
        """For clients."""
        return f"ws://127.0.0.1:{self.port}"

    @property
    def page(self) -> str:
        """For browsers."""
        return f"http://127.0.0.1:{self.port}/"

    async def start(self) -> None:
        """Returns when the hub listens and its agents have joined."""
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hubbub", "up", str(self._config()),
            stdout=PIPE, stderr=STDOUT, cwd=self.folder,
            env=environment(self.folder, **self._variables),
        )  # fmt: skip
        stream = process.stdout
        assert stream is not None
        try:
            async with asyncio.timeout(DEADLINE_S):
                self.port = await self._port(stream)
                self._reading = asyncio.create_task(self._read(stream))
                await self._agents_join()
        except TimeoutError as error:
            raise AssertionError(f"it did not come up:\n{self.output()}") from error

    async def kill(self) -> None:
        """kill -9; its agents end with it."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """Ctrl-C; returns the exit code."""
        return await self._end(signal.SIGINT)

    async def close(self) -> None:
        """The people leave, and whatever runs ends."""
        await self._people.aclose()
        if self._process is not None and self._process.returncode is None:
            await self.stop()

    async def join(self, name: str) -> Person:
        """Somebody else who takes part, with the token that `hubbub chat` would find."""
        client = Client(WebSocketTransport(self.url), name, "human", token=self._launched(name))
        return Person(await self._people.enter_async_context(client))

    async def enters(self, agent: str) -> Client:
        """An agent that is moved by hand, in an open network: connected until the network ends."""
        client = Client(WebSocketTransport(self.url), agent, "agent", turns=True)
        return await self._people.enter_async_context(client)

    async def token(self, name: str) -> str:
        """A new token, as `hubbub token add` makes one: it outlives the process."""
        async with self._operator() as operator:
            made = await operator.call("add_token", participant=name)
        return NewToken.model_validate(made).token

    async def revoke(self, name: str) -> None:
        """All tokens of somebody are void, as with `hubbub token revoke`."""
        async with self._operator() as operator:
            await operator.call("revoke_tokens", participant=name)

    def output(self) -> str:
        """All that the terminal has shown so far."""
        return "".join(self._output)

    def _launched(self, name: str) -> str | None:
        """The token that the launcher made for a participant of this machine."""
        found = [RunFile.model_validate_json(p.read_bytes()) for p in self.folder.glob("run/*")]
        return next((run.tokens.get(name) for run in found), None)

    def _operator(self) -> Client:
        """The identity of the commands that the network's owner gives."""
        token = self._launched("operator")
        return Client(WebSocketTransport(self.url), "operator", "service", token=token)

    async def _port(self, stream: asyncio.StreamReader) -> int:
        """The port, as soon as the terminal shows it."""
        while line := (await stream.readline()).decode():
            self._output.append(line)
            if found := _ADDRESS.search(line):
                return int(found["port"])
        raise AssertionError(f"the network did not start:\n{self.output()}")

    async def _agents_join(self) -> None:
        agents = self._plan.get("agents")
        wanted = {*agents} if isinstance(agents, dict) else set()
        async with self._operator() as operator:
            async for item in operator.events():
                if isinstance(item, Ready | Signal):  # comings and goings are signals
                    found = Participants.model_validate(await operator.call("list_participants"))
                    if wanted <= {p.id for p in found.participants if p.present}:
                        return

    async def _read(self, stream: asyncio.StreamReader) -> None:
        async for line in stream:
            self._output.append(line.decode(errors="replace"))

    async def _end(self, how: signal.Signals) -> int:
        process, reading = self._process, self._reading
        assert process is not None, "started before"
        if process.returncode is None:
            process.send_signal(how)
        async with asyncio.timeout(DEADLINE_S):
            code = await process.wait()
            if reading is not None:
                await reading  # to the end of its agents' output: they are gone too
        self._reading = None
        return code

    def _config(self) -> Path:
        path = self.folder / "network.yaml"
        section: dict[str, JsonValue] = {
            "name": "test",
            "listen": f"127.0.0.1:{self.port}",
            "store": f"sqlite:{self.database}",
            "auth": self._auth,
        }
        more = self._plan.get("network")
        section |= more if isinstance(more, dict) else {}
        path.write_text(json.dumps({**self._plan, "network": section}))  # JSON is YAML
        return path


class Room:
    """An open network in this process, with the channel `general`."""

    def __init__(self, url: str, people: AsyncExitStack):
        self.url = url
        """For clients."""
        self.page = url.replace("ws://", "http://") + "/"
        """For browsers."""
        self.port = int(url.rpartition(":")[2])
        self._people = people

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        settings: Plan | None = None,
        *,
        mods: Sequence[JsonValue] = (),
        store: str | None = None,
        port: int = 0,
    ) -> AsyncIterator[Room]:
        """A room for as long as the context lasts. `settings` adds to the section `network`; `mods`
        are as in the YAML; `store` and `port` are those of an earlier room."""
        general = ChannelConfig()
        own: Plan = {"name": "test", "auth": "open", "store": store or "sqlite::memory:"}
        section = NetworkConfig.model_validate({**own, **(settings or {})})
        plan = {"network": section, "channels": {"general": general}, "mods": [*mods]}
        file = NetworkFile.model_validate(plan)
        site = Site(About(file.network.name, file.network.auth))
        async with (
            Hub(file, open_store(section.store), mods=load_mods(file.mods)) as hub,
            serve_hub(hub, f"127.0.0.1:{port}", pages=site) as listening,
            AsyncExitStack() as people,
        ):
            yield cls(listening.url, people)

    async def join(self, name: str) -> Person:
        """Somebody else who takes part."""
        client = Client(WebSocketTransport(self.url), name, "human")
        return Person(await self._people.enter_async_context(client))

    async def enters(self, agent: str) -> Client:
        """An agent that is moved by hand."""
        client = Client(WebSocketTransport(self.url), agent, "agent", turns=True)
        return await self._people.enter_async_context(client)


class Networks:
    """Starts networks that end with `stack`."""

    def __init__(self, stack: AsyncExitStack, folder: Path):
        self._stack, self._folder, self._count = stack, folder, 0

    async def start(
        self,
        plan: Plan,
        *,
        auth: Literal["open", "tokens"] = "open",
        model: ModelServer | None = None,
        database: Path | None = None,
    ) -> Network:
        """A started network. With `model` its agents of kind llm talk to that one; `database` is
        the store to begin with."""
        self._count += 1
        folder = self._folder / f"network{self._count}"
        folder.mkdir()
        variables = {}
        if model is not None:
            variables = {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "scripted"}
        network = Network(folder, plan, auth, variables)
        if database is not None:
            network.database = database
        self._stack.push_async_callback(network.close)
        await network.start()
        return network
