"""Agents on a running network, which tests start, kill and restart, and people who talk to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pydantic import JsonValue

from hubbub import Agent
from hubbub.agents.launch import run_agent, run_python_agent
from hubbub.agents.tools.approval import Approver
from hubbub.client import Client, ClientOptions
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig, NetworkFile
from hubbub.mods.api import Mod
from hubbub.network.ports import Store
from hubbub.network.records import Batch, TurnEnded
from hubbub.protocol.codes import CloseCode
from hubbub.protocol.messages import Card
from hubbub.protocol.turns import Turn, TurnEnd
from hubbub.testing.model_script import AnyAnswer
from hubbub.testing.model_server import ModelServer, Script, ScriptedAnswer, ScriptedCall
from tests.interaction.peers import Frame, Network, Networks, Peer, eventually, soon

__all__ = [
    "Gate",
    "Harness",
    "arrived",
    "call",
    "ended",
    "finish",
    "harness",
    "heard",
    "held",
    "incoming_message",
    "model_config",
    "notice",
    "one_person",
    "playing",
    "said_to",
    "says",
    "send",
    "wakes_of",
]


class Gate:
    """A point where a handler waits until the test lets it pass."""

    def __init__(self) -> None:
        self.reached, self.open = asyncio.Event(), asyncio.Event()

    async def wait(self) -> None:
        self.reached.set()
        await self.open.wait()

    async def until_reached(self) -> None:
        async with soon():
            await self.reached.wait()


class Harness:
    """A network with agents on it."""

    def __init__(self, network: Network):
        self.network = network
        self.clients: dict[str, Client] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._operator: Peer | None = None
        self._commits, self._ends = asyncio.Event(), asyncio.Event()
        append = network.hub.store.append

        async def append_and_signal(batch: Batch) -> None:
            await append(batch)
            self._commits.set()
            if any(isinstance(record, TurnEnded) for record in batch.records):
                self._ends.set()

        network.hub.store.append = append_and_signal  # type: ignore[method-assign]  # its own store

    # People and agents --------------------------------------------------------------------------

    async def person(self, name: str = "ann") -> Peer:
        """Join a person, who sees raw frames."""
        return await self.network.join(name, "human")

    async def python(self, name: str, agent: Agent, **config: JsonValue) -> None:
        """Start a Python agent."""
        settings = AgentConfig.model_validate({"kind": "python", **config})

        async def run(client: Client) -> None:
            await run_python_agent(agent, client, settings, grace_s=0)

        await self._start(name, run_with=run, card=settings.card)

    async def llm(self, name: str, server: ModelServer, **config: JsonValue) -> None:
        """Start an agent with a model."""
        override = config.pop("endpoint", {})
        assert isinstance(override, dict)
        models = {"default": model_config(server, **override)}
        await self.configured(name, AgentConfig.model_validate(config), Path(), models)

    async def configured(
        self,
        name: str,
        config: AgentConfig,
        base: Path,
        models: Mapping[str, ModelConfig],
        *,
        approver: Approver | None = None,
        mcp_servers: Mapping[str, McpServerConfig] | None = None,
    ) -> None:
        """Start an agent from its section of a network file."""

        async def run(client: Client) -> None:
            await run_agent(
                config,
                name,
                client,
                base,
                models,
                grace_s=0,
                approver=approver,
                mcp_servers=mcp_servers or {},
            )

        await self._start(name, run_with=run)

    async def acp(
        self, name: str, command: Sequence[str], folder: Path, **config: JsonValue
    ) -> None:
        """Start a coding agent whose program works in the folder."""
        from hubbub.interop.acp.agent import run_acp_agent

        program = {"command": list(command), "cwd": str(folder)}
        settings = AgentConfig.model_validate({"kind": "acp", "acp": program, **config})

        async def run(client: Client) -> None:
            await run_acp_agent(settings, name, client, folder, grace_s=0)

        await self._start(name, run_with=run)

    async def _start(self, name: str, *, run_with: object, card: Card | None = None) -> None:
        joined = asyncio.Event()

        async def life() -> None:
            options = ClientOptions(card=card or Card())
            transport = self.network.local.transport()
            async with Client(transport, name, "agent", turns=True, options=options) as client:
                self.clients[name] = client
                joined.set()
                await run_with(client)  # type: ignore[operator]  # one of the functions above

        task = self._tasks[name] = asyncio.create_task(life(), name=f"agent {name}")
        waiting = asyncio.create_task(joined.wait())
        async with soon():
            await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done() and not joined.is_set():
            await task

    async def kill(self, name: str) -> None:
        """Kill the agent's process."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait({task})

    async def crash(self, name: str) -> None:
        """Kill the agent's process and wait until the hub notices."""
        await self.kill(name)
        await self.network.gone(name)

    async def cut(self, name: str) -> None:
        """Cut the agent's connection, which it opens again by itself."""
        for session in self.network.hub.kernel.fanout.of(name):
            session.close(CloseCode.SLOW, "cut by the test")
        await self.network.gone(name)

    async def death(self, name: str) -> BaseException | None:
        """Wait until an agent ends by itself. Returns what it raised."""
        task = self._tasks.pop(name)
        async with soon():
            await asyncio.wait({task})
        return task.exception()

    async def stop(self) -> None:
        """Kill all agents. Raises what one of them raised."""
        for name in list(self._tasks):
            task = self._tasks[name]
            if task.done():
                await task
            await self.kill(name)

    # Turns --------------------------------------------------------------------------------------

    async def ask(self, person: Peer, text: str, agent: str = "bot", **more: Any) -> str:
        """Send an agent a message. Returns the id of the turn that it would start."""
        sent = await person.say(agent, text, **more)
        return f"{agent}-{sent['id']}"

    async def turn(self, id: str) -> Turn:
        """Wait for the end of a turn. Returns its record."""
        return await self._record(id, lambda turn: turn.end is not None, self._ends)

    async def begun(self, id: str) -> Turn:
        """Wait for the record of a turn, for which its agent does not wait."""
        return await self._record(id, lambda turn: True, self._commits)

    async def _record(self, id: str, wanted: Callable[[Turn], bool], sign: asyncio.Event) -> Turn:
        operator = self._operator = self._operator or await self.network.join("operator", "service")
        records: list[Turn] = []

        async def holds() -> bool:
            answer = await operator.ask("read_turn", id=id)  # an error, if it has not begun
            records[:] = [Turn.model_validate(answer["value"])] if answer["op"] == "result" else []
            return bool(records) and wanted(records[0])

        await self.until(holds, sign)
        return records[0]

    async def until(
        self, holds: Callable[[], Awaitable[bool]], sign: asyncio.Event | None = None
    ) -> None:
        """Wait for a condition that only a commit changes, or one that sets `sign`."""
        sign = sign or self._commits
        async with soon():
            while True:
                sign.clear()
                await self.network.quiet()
                if await holds():
                    return
                await sign.wait()


@asynccontextmanager
async def harness(
    networks: Networks,
    file: NetworkFile | None = None,
    *,
    store: str | Store = "sqlite::memory:",
    mods: Sequence[Mod] = (),
) -> AsyncIterator[Harness]:
    """A network with agents for the length of a test."""
    async with networks.start(file, store=store, mods=mods) as network:
        net = Harness(network)
        try:
            yield net
        finally:
            await net.stop()


@asynccontextmanager
async def one_person(
    networks: Networks, file: NetworkFile | None = None
) -> AsyncIterator[tuple[Harness, Peer]]:
    """A network with agents, and Ann, who talks to them."""
    async with harness(networks, file) as net:
        yield net, await net.person()


async def notice(who: Peer, code: str) -> Frame:
    """Wait for the next notice of the hub with this code. Other events stay in `events`."""

    def notices() -> list[Frame]:
        return [event for event in who.events if _code(event["message"]) == code]

    await who.until(lambda: bool(notices()))
    event = notices()[0]
    who.events.remove(event)
    message: Frame = event["message"]
    return message


def _code(message: Frame) -> str | None:
    content = message["content"]
    return content["code"] if message["sender_kind"] == "system" else None


async def said_to(person: Peer) -> str:
    """The next message of an agent to a person."""
    while (event := await person.event())["message"]["sender_kind"] != "agent":
        pass
    return str(event["message"]["content"])


async def heard(net: Harness, person: Peer) -> list[str]:
    """All messages of agents to a person so far."""
    await net.network.quiet()
    events = await person.sync()
    if events:  # after too many unacknowledged events, the hub sends no more
        await person.ack(events[-1]["seq"])
    return [e["message"]["content"] for e in events if e["message"]["sender_kind"] == "agent"]


async def arrived(net: Harness, seq: int, agent: str = "bot") -> None:
    """Wait until the agent has received a message."""
    client = net.clients[agent]
    await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)


def ended(turn: Turn) -> TurnEnd:
    assert turn.end is not None
    return turn.end


def wakes_of(turn: Turn) -> list[str]:
    """The messages that started a turn, and those that steered it."""
    return [*turn.start.messages, *(s.message for step in turn.steps for s in step.steered)]


# Scripted models -------------------------------------------------------------------------------


def model_config(server: ModelServer, **more: JsonValue) -> ModelConfig:
    """A section of `models` for this server."""
    return ModelConfig.model_validate(
        {"model": "m", "base_url": server.base_url, "retries": 0, **more}
    )


def playing(*answers: AnyAnswer) -> ModelServer:
    """A model that gives these answers in a row."""
    return ModelServer(Script(answers=list(answers)))


def incoming_message(model: ModelServer, request: int) -> ElementTree.Element:
    """The last incoming message in the prompt of a request."""
    prompt = model.requests[request].body.messages[1].text
    conversation = prompt[prompt.index("<conversation>") : prompt.rindex("\n\n")]
    return ElementTree.fromstring(conversation).findall(".//incoming_message")[-1]


async def held(model: ModelServer, name: str) -> None:
    """Wait until the model is at the answer held under this name."""
    async with soon():
        await model.held(name)


def says(*calls: ScriptedCall, **how: object) -> ScriptedAnswer:
    return ScriptedAnswer.model_validate({"calls": list(calls), **how})


def call(tool: str, **arguments: JsonValue) -> ScriptedCall:
    return ScriptedCall(tool=tool, arguments=arguments)


def send(to: str, text: str) -> ScriptedCall:
    return call("send_text_message", to=to, text=text)


def finish(reason: str = "done") -> ScriptedCall:
    return call("finish", reason=reason)
