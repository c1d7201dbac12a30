"""A network with a storm, and an operator that counts messages and wakes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue

from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.network.caller import OPERATOR
from hubbub.protocol.admin import NetworkStatus
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import InteractionPage, InteractionWake, Receipts
from hubbub.testing.model_server import (
    ModelServer,
    Script,
    ScriptedAnswer,
    ScriptedCall,
    ScriptRule,
)
from tests.e2e.support.config_network import Network, run_here
from tests.unit.configs.people import Person

__all__ = [
    "CAST",
    "HOPS",
    "WAKES",
    "Storm",
    "brewing",
    "does",
    "model_agents",
    "python_agents",
    "scripted",
]

CAST = Path(__file__).parent / "cast.py"
DEADLINE_S = 100.0
"""How long a storm can take to end before the test fails. None takes a tenth of it."""

HOPS, WAKES, AGENTS = 8, 64, 16
"""The default limits of an interaction opened by a person."""
MOST_QUESTIONS = 10
"""To the bystander. More would trip the breaker, which one test sets to twelve turns."""

Agents = dict[str, dict[str, Any]]  # as in the YAML


def python_agents(kind: str, names: Sequence[str]) -> Agents:
    """Agents of a class of the cast."""
    agent = {"kind": "python", "class": f"{CAST}:{kind}"}
    return {name: dict(agent) for name in names}


def model_agents(names: Sequence[str], tools: Sequence[str]) -> Agents:
    """Agents with the scripted model."""
    return {name: {"instruction": f"You are {name}.", "tools": list(tools)} for name in names}


def does(tool: str, **arguments: JsonValue) -> ScriptedAnswer:
    """A model's answer that calls one tool and finishes."""
    done = ScriptedCall(tool="finish", arguments={"reason": "done"})
    return ScriptedAnswer(calls=[ScriptedCall(tool=tool, arguments=arguments), done])


def scripted(*rules: ScriptRule, people: bool = True) -> Script:
    """A model that follows the rules, and answers people who ask whether it is there."""
    person = {"incoming": "are you there", "sender": "^(ann|ben)$"}
    here = does("send_text_message", to="{{ sender }}", text="I am here, {{ sender }}")
    rest = ScriptRule(
        answer=ScriptedAnswer(
            calls=[ScriptedCall(tool="finish", arguments={"reason": "nothing to do"})]
        )
    )
    answers = [ScriptRule.model_validate({"when": person, "answer": here})] if people else []
    return Script(rules=[*answers, *rules, rest])


class Storm:
    """A running network, observed by its operator."""

    def __init__(self, network: Network, operator: Client, agents: Sequence[str]):
        self.network, self._operator, self._agents = network, operator, agents
        self.log: list[Message] = []
        """Every message, in order."""
        self._changed = asyncio.Condition()
        self._ended: dict[str, int] = {}
        """Per interaction, the position of its last message when all its turns had ended."""

    async def watch(self) -> None:
        async for item in self._operator.events():
            if isinstance(item, Event):
                await self._operator.ack(item.seq)
                async with self._changed:
                    self.log.append(item.message)
                    self._changed.notify_all()

    async def until(self, condition: Callable[[Message], bool]) -> Message:
        """The first message in the log for which the condition holds."""
        try:
            async with asyncio.timeout(DEADLINE_S), self._changed:
                await self._changed.wait_for(lambda: any(map(condition, self.log)))
        except TimeoutError as error:
            raise AssertionError(await self._describe()) from error
        return next(filter(condition, self.log))

    # Its end ------------------------------------------------------------------------------

    async def end(self, bystander: Person) -> None:
        """Waits until all turns have ended; meanwhile a bystander is served."""
        served = 0
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not await self._is_quiet() or not served:
                    if served < MOST_QUESTIONS:
                        served += 1
                        assert await bystander.asks("clock", str(served)) == f"tick {served}"
                await self._all_delivered()
        except TimeoutError as error:
            raise AssertionError(await self._describe()) from error

    async def _describe(self) -> str:
        wakes = [w for i in {m.interaction_id for m in self.log} for w in await self.wakes(i)]
        open_ = [f"{w.turn} ({w.state}, {w.message_id})" for w in wakes if w.state != "ended"]
        last = [f"{m.id} {m.sender_id} in {m.thread_id}: {m.text[:80]}" for m in self.log[-20:]]
        turns = ", ".join(open_) or "none"
        return "\n".join([f"{len(self.log)} messages, open turns: {turns}", *last])

    async def _is_quiet(self) -> bool:
        """Whether every turn has ended without a new message."""
        head = await self._head()
        if not self.log or self.log[-1].seq < head:
            return False
        last = {message.interaction_id: message.seq for message in self.log}
        for interaction, seq in last.items():
            if self._ended.get(interaction) == seq:
                continue
            if any(wake.state != "ended" for wake in await self.wakes(interaction)):
                return False
            self._ended[interaction] = seq
        return await self._head() == head

    async def _head(self) -> int:
        return NetworkStatus.model_validate(await self._operator.call("network_status")).head

    async def _all_delivered(self) -> None:
        """Waits until every agent has received the last message to it, and so all earlier ones."""
        last = {agent: message.id for message in self.log for agent in self._readers(message)}
        for id in set(last.values()):
            while not await self._is_delivered(id):
                pass

    def _readers(self, message: Message) -> Sequence[str]:
        if message.type == "direct":
            return [name for name in message.recipients if name in self._agents]
        return [name for name in self._agents if name != message.sender_id]

    async def _is_delivered(self, id: str) -> bool:
        answer = Receipts.model_validate(await self._operator.call("read_receipts", id=id))
        return all(each.delivered for each in answer.receipts if each.kind == "agent")

    # Its record ---------------------------------------------------------------------------

    async def wakes(self, interaction: str) -> list[InteractionWake]:
        """All wakes of an interaction."""
        wakes: list[InteractionWake] = []
        after = 0
        while True:
            page = InteractionPage.model_validate(
                await self._operator.call("read_interaction", id=interaction, after=after)
            )
            wakes += page.wakes
            if not page.more:
                return wakes
            after = page.upto

    def opened_by(self, person: str, text: str) -> str:
        """The interaction that the person opened with this message."""
        return next(m.interaction_id for m in self.log if m.sender_id == person and m.text == text)

    def notices(self, interaction: str) -> Counter[str]:
        """The number of the hub's notices about the interaction, by code."""
        contents = [m.content for m in self.log if m.sender_kind == "system"]
        return Counter(
            str(content["notice"])
            for content in contents
            if isinstance(content, dict) and content.get("interaction") == interaction
        )

    async def check_budget(self, interaction: str, *, wakes: int | None = None) -> None:
        """The interaction is within its limits, and has this number of wakes if given."""
        actual = await self.wakes(interaction)
        assert len(actual) <= WAKES
        assert wakes is None or len(actual) == wakes
        assert len({wake.agent for wake in actual}) <= AGENTS
        assert max(message.hop for message in self.log) <= HOPS

    def messages(self, interaction: str) -> list[Message]:
        """The agents' messages in it."""
        return [m for m in self.log if m.interaction_id == interaction and m.sender_kind == "agent"]


@asynccontextmanager
async def brewing(
    folder: Path,
    agents: Agents,
    *,
    script: Script | None = None,
    network: Mapping[str, Any] | None = None,
    channels: Sequence[str] = (),
) -> AsyncIterator[Storm]:
    """A network of these agents, with models that follow `script`, and the bystander `clock`.

    All agents have joined when the context is entered.
    """
    clock = {"clock": {"kind": "python", "class": f"{CAST}:Clock"}}
    config: dict[str, Any] = {
        "network": {
            "name": "storm",
            "listen": "${HUBBUB_LISTEN}",
            "store": "${HUBBUB_STORE}",
            "auth": "open",
            **(network or {}),
        },
        "channels": {name: {"members": "all"} for name in channels},
        "agents": {**agents, **clock},
    }
    async with ModelServer(script or Script()) as model:
        config["models"] = {
            "default": {"model": "scripted", "base_url": model.base_url, "api_key": "any"}
        }
        path = folder / "storm.yaml"
        path.write_text(yaml.safe_dump(config))
        async with run_here(path, folder) as running:
            transport, token = WebSocketTransport(running.url), running.run_file().tokens[OPERATOR]
            options = ClientOptions(observe=True)
            async with Client(
                transport, OPERATOR, "service", token=token, options=options
            ) as operator:
                storm = Storm(running, operator, tuple(agents))
                watching = asyncio.create_task(storm.watch())
                try:
                    yield storm
                finally:
                    watching.cancel()
                    with suppress(asyncio.CancelledError):
                        await watching
        assert model.mistakes == []
