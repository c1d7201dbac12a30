"""Agents on a running network: started, killed and started again, and people who talk to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from pydantic import JsonValue

from hubbub import Agent
from hubbub.agents.launch import run_agent, run_python_agent
from hubbub.agents.tools.approval import Approver
from hubbub.client import Client, ClientOptions
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig, NetworkFile
from hubbub.mods.api import Mod
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
    "notice",
    "playing",
    "said_to",
    "says",
    "send",
    "wakes_of",
]


class Gate:
    """Where a handler waits until the test has seen it there."""

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

        async def noted(batch: Batch) -> None:
            await append(batch)
            self._commits.set()
            if any(isinstance(record, TurnEnded) for record in batch.records):
                self._ends.set()

        network.hub.store.append = noted  # type: ignore[method-assign]  # the store is the harness's

    # People and agents --------------------------------------------------------------------------

    async def person(self, name: str = "ann") -> Peer:
        """A human, who sees frames as they come."""
        return await self.network.join(name, "human")

    async def python(self, name: str, agent: Agent, **config: JsonValue) -> None:
        """Start a Python agent."""
        settings = AgentConfig.model_validate({"kind": "python", **config})

        async def run(client: Client) -> None:
            await run_python_agent(agent, client, settings, grace_s=0)

        await self._start(name, run_with=run, card=settings.card)

    async def llm(self, name: str, server: ModelServer, **config: JsonValue) -> None:
        """Start an agent that is a model."""
        model: dict[str, JsonValue] = {"model": "m", "base_url": server.base_url, "retries": 0}
        override = config.pop("endpoint", {})
        assert isinstance(override, dict)
        models = {"default": ModelConfig.model_validate({**model, **override})}
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
        """Start an agent as a network file says."""

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
            way = self.network.local.transport()
            client = Client(way, name, "agent", turns=True, options=options)
            async with client:
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
        """End the agent's process in the middle of whatever it does."""
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait({task})

    async def cut(self, name: str) -> None:
        """Cut the agent's connection: it comes back by itself."""
        for session in self.network.hub.kernel.fanout.of(name):
            session.close(CloseCode.SLOW, "cut by the test")
        await self.network.gone(name)

    async def death(self, name: str) -> BaseException | None:
        """Wait until an agent ends by itself; what it raised."""
        task = self._tasks.pop(name)
        async with soon():
            await asyncio.wait({task})
        return task.exception()

    async def stop(self) -> None:
        """End all agents. What one of them raised is raised."""
        for name in list(self._tasks):
            task = self._tasks[name]
            if task.done():
                await task
            await self.kill(name)

    # What happened ------------------------------------------------------------------------------

    async def turn(self, id: str) -> Turn:
        """The record of a turn, when it has ended."""
        return await self._record(id, lambda turn: turn.end is not None, self._ends)

    async def begun(self, id: str) -> Turn:
        """The record of a turn, as soon as there is one: its agent does not wait for it."""
        return await self._record(id, lambda turn: True, self._commits)

    async def _record(self, id: str, wanted: Callable[[Turn], bool], sign: asyncio.Event) -> Turn:
        operator = self._operator = self._operator or await self.network.join("operator", "service")
        found: list[Turn] = []

        async def holds() -> bool:
            answer = await operator.ask("read_turn", id=id)  # an error, if it has not begun
            found[:] = [Turn.model_validate(answer["value"])] if answer["op"] == "result" else []
            return bool(found) and wanted(found[0])

        await self.until(holds, sign)
        return found[0]

    async def until(
        self, holds: Callable[[], Awaitable[bool]], sign: asyncio.Event | None = None
    ) -> None:
        """Wait until a thing holds that only a commit changes, or one after which `sign` is set."""
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
    store: str = "sqlite::memory:",
    mods: Sequence[Mod] = (),
) -> AsyncIterator[Harness]:
    """A network for the length of a test; its agents are ended with it."""
    async with networks.start(file, store=store, mods=mods) as network:
        made = Harness(network)
        try:
            yield made
        finally:
            await made.stop()


async def notice(who: Peer, code: str) -> Frame:
    """The next notice of the hub with this code, as soon as it is there: it comes a moment after
    what it is about. Other events stay where they are."""

    def found() -> list[Frame]:
        return [event for event in who.events if _code(event["message"]) == code]

    await who.until(lambda: bool(found()))
    event = found()[0]
    who.events.remove(event)
    message: Frame = event["message"]
    return message


def _code(message: Frame) -> str | None:
    content = message["content"]
    return content["code"] if message["sender_kind"] == "system" else None


async def said_to(person: Peer) -> str:
    """The next that an agent says to a person."""
    while (event := await person.event())["message"]["sender_kind"] != "agent":
        pass
    return str(event["message"]["content"])


async def heard(net: Harness, person: Peer) -> list[str]:
    """What agents have said to a person by now."""
    await net.network.quiet()
    events = await person.sync()
    if events:  # the hub keeps back what comes after too many that are not acknowledged
        await person.ack(events[-1]["seq"])
    return [e["message"]["content"] for e in events if e["message"]["sender_kind"] == "agent"]


async def arrived(net: Harness, seq: int, agent: str = "bot") -> None:
    """The agent has a message in its hands."""
    client = net.clients[agent]
    await eventually(lambda: client.cursor is not None and client.cursor.seq >= seq)


def ended(turn: Turn) -> TurnEnd:
    """The end of a turn that has one."""
    assert turn.end is not None
    return turn.end


def wakes_of(turn: Turn) -> list[str]:
    """The messages that a turn is about: those it began with, and those that came in it."""
    return [*turn.start.messages, *(s.message for step in turn.steps for s in step.steered)]


# What a scripted model says --------------------------------------------------------------------


def playing(*answers: AnyAnswer) -> ModelServer:
    """A model that gives these answers in a row."""
    return ModelServer(Script(answers=list(answers)))


async def held(model: ModelServer, name: str) -> None:
    """The model has come to the answer that waits under this name."""
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
