"""Runs a whole network for a case or against a recording: the real hub, mods and agents, in this
process and in memory.

Tools that reach outside of the network (functions, MCP servers) do not run. A call returns its
result from the case or the recording; a call without a result ends the run.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import assert_never

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.launch import run_agent
from hubbub.agents.llm_agent import resolve_agent
from hubbub.agents.models.base import ChatModel, Completion, CompletionRequest, OnDelta
from hubbub.agents.models.providers import OPENER, open_endpoint
from hubbub.agents.program import TurnOptions
from hubbub.agents.prompt_client import DIALECTS
from hubbub.agents.tools.approval import ApprovalRequest, Approved, Denied, Verdict
from hubbub.agents.tools.base import CallSite, Tool, ToolFailed
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.mcp.servers import McpTool
from hubbub.agents.turn.hooks import TurnEvent
from hubbub.app.preflight import load_valid
from hubbub.app.prompts import mod_notes
from hubbub.client import Client, ClientOptions
from hubbub.client.transport import MemoryTransport
from hubbub.clock import Clock
from hubbub.config.cases import Fault
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import ModelConfig
from hubbub.config.paths import MEMORY_STORE
from hubbub.embed.ask import turns_of
from hubbub.errors import ModelError, UserError
from hubbub.lab.messages import RunMessage, call_of
from hubbub.lab.recordings import Difference, Recording, Tape, difference, read_recording, record
from hubbub.mods.loader import load_mods
from hubbub.network.caller import OPERATOR
from hubbub.network.hub import Hub
from hubbub.network.ports import Store
from hubbub.network.store import open_store
from hubbub.protocol.frames import Event, Ready
from hubbub.protocol.messages import Card, Kind, Message
from hubbub.protocol.operations import SendResult
from hubbub.waiting import cancel

__all__ = ["FaultInjector", "NetworkRun", "replay", "replayed"]

MOST_S = 600.0
"""Maximum duration of a run, in seconds."""
_MAX_MESSAGES = 10_000
"""Maximum messages of a run that are searched for notices."""
_MAX_DELAY_S = 2.0
"""Maximum delay of a slow model, in seconds."""
UNRECORDED = "a model got a request that the recording has no answer to"
_OUTWARD = frozenset({"webhooks"})
"""Mods that send data outside of the network."""
_OTHER_PROGRAMS = frozenset({"a2a", "acp", "program"})
"""Kinds of agents that do not run in tests."""
_TURN: ContextVar[str] = ContextVar("_TURN")
"""The current turn."""
WaitForEnd = Callable[[str], Awaitable[None]]
"""Waits until an interaction has ended."""
Ask = Callable[[str, Mapping[str, JsonValue]], Awaitable[str | None]]
"""Provides a tool's result for these arguments; None if it has none."""


class FaultInjector:
    """Chooses one of the faults or none by the run's seed, and injects it at one of the first
    requests to models."""

    def __init__(self, faults: Sequence[Fault] = (), seed: object = 0):
        random = Random(f"trouble {seed}")
        self.fault: Fault | None = random.choice([None, *faults])
        self.seconds = random.uniform(0, _MAX_DELAY_S)
        self._until = random.randint(1, 3)

    def strikes(self) -> bool:
        """Count a request to a model. Returns whether the fault occurs at this one."""
        self._until -= 1
        return self._until == 0


@dataclass(slots=True)
class RunEnd:
    """The reason why a run ended early. Models get no further requests."""

    lacking: str | None = None
    """The tool without a result; None if the recording had no answer to a request."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    """The arguments of that tool's call."""

    @property
    def text(self) -> str:
        if self.lacking is None:
            return UNRECORDED
        return f"there is no result for {self.lacking}, which does not run in tests"


@dataclass(slots=True)
class NetworkRun:
    """One run. Requests go to the config's models if there is no `tape`, if `live` and the tape has
    no answer, or if `ignore_tape`."""

    loaded: LoadedConfig
    results: Mapping[str, JsonValue] = field(default_factory=dict)
    tape: Tape | None = None
    live: bool = False
    ignore_tape: bool = False
    faults: FaultInjector = field(default_factory=FaultInjector)
    ask: Ask | None = None
    """Provides results for calls without one."""
    end: RunEnd | None = field(default=None, init=False)
    notices: tuple[str, ...] = field(default=(), init=False)
    """The hub's notices in the run."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _lives: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _killed: set[str] = field(default_factory=set, init=False)
    _begun: set[str] = field(default_factory=set, init=False)
    """Turns that their agents have not settled yet."""
    _ids: dict[str, str] = field(default_factory=dict, init=False)
    """The ids of recorded messages in this run."""
    _tokens: dict[str, str] = field(default_factory=dict, init=False)

    async def run(self, history: Sequence[RunMessage], messages: Sequence[RunMessage]) -> Recording:
        """Send the messages, each after the interaction of the previous one has ended, and record
        the result.

        Raises `UserError` for agents that cannot run in tests, `ConfigError` for errors in the
        config, and `TimeoutError`.
        """
        if self.tape is not None and not self.ignore_tape:
            self.loaded = _with_dialects(self.loaded, self.tape.dialects)
        async with asyncio.timeout(MOST_S), self.hub(open_store(MEMORY_STORE)) as hub:
            before = [await self._send(hub, message, silent=True) for message in history]
            async with self.agents(hub) as (operator, wait_for_end):
                opened = list[str]()
                while self.end is None and len(opened) < len(messages):
                    sent = await self._send(hub, messages[len(opened)])
                    opened.append(sent.message.interaction_id)
                    await wait_for_end(opened[-1])
                await hub.kernel.log.settle()
                self.notices = await _notices(hub)
            async with self._client(hub, OPERATOR, "service") as operator:
                return await record(operator, opened, [sent.message for sent in before])

    @asynccontextmanager
    async def hub(self, store: Store, clock: Clock | None = None) -> AsyncIterator[Hub]:
        """Run the hub and its mods, without those that send data outside."""
        file = self.loaded.file
        section = file.network.model_copy(update={"store": MEMORY_STORE, "auth": "open"})
        mods = [mod for mod in file.mods if _mod_name(mod) not in _OUTWARD]
        file = file.model_copy(update={"network": section, "mods": mods})
        async with Hub(file, store, mods=load_mods(mods, section.allow_mods), clock=clock) as hub:
            for name in (OPERATOR, *file.agents):
                self._tokens[name] = secrets.token_urlsafe(32)
                hub.gateway.admission.add_token(name, self._tokens[name])
            yield hub

    @asynccontextmanager
    async def agents(self, hub: Hub) -> AsyncIterator[tuple[Client, WaitForEnd]]:
        """Run the agents. Yields the operator, and the function that waits for an end."""
        async with (
            self._client(hub, OPERATOR, "service") as operator,
            _running(self._keep_alive(hub, each) for each in self.loaded.file.agents) as agents,
        ):
            watching = asyncio.create_task(self._watch(operator))
            try:
                yield operator, partial(self._wait_for_end, operator, agents)
            finally:
                await cancel(watching)

    # Messages -----------------------------------------------------------------------------------

    def _client(self, hub: Hub, name: str, kind: Kind, card: Card | None = None) -> Client:
        """With a card: the client of an agent that takes turns."""
        options = ClientOptions(observe=name == OPERATOR, card=card)
        transport, token = MemoryTransport(hub.gateway.attach), self._tokens.get(name)
        turns = card is not None
        return Client(transport, name, kind, token=token, turns=turns, options=options)

    async def _send(self, hub: Hub, message: RunMessage, *, silent: bool = False) -> SendResult:
        operation, args = call_of(message, self._ids)
        if silent and message.amends is None:
            args["silent"] = True
        async with self._client(hub, message.sender, message.kind) as client:
            result = await client.call(operation, cid=None, **args)
        sent = SendResult.model_validate(result)
        self._ids[message.id] = sent.id
        if self.tape is not None:
            self.tape.ids[message.id] = sent.id
        return sent

    async def _wait_for_end(
        self, operator: Client, agents: Sequence[asyncio.Task[None]], interaction: str
    ) -> None:
        # The hub reports why there is no answer only after the end is recorded.
        while self._begun or await turns_of(operator, interaction) is None:
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({changed, *agents}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            for agent in agents:
                if agent.done():
                    agent.result()  # raises: without cancellation it ends only on an error
            self._changed.clear()

    async def _watch(self, operator: Client) -> None:
        async for item in operator.events():
            if isinstance(item, Event):
                await operator.ack(item.seq)
                self._changed.set()

    # Agents -------------------------------------------------------------------------------------

    async def _keep_alive(self, hub: Hub, name: str) -> None:
        """Run an agent, and restart it when it is killed."""
        is_other = self.loaded.file.agent(name).kind in _OTHER_PROGRAMS
        run = self._stand_in if is_other else self._agent
        while True:
            life = self._lives[name] = asyncio.create_task(run(hub, name))
            try:
                await asyncio.wait({life})
            finally:
                await cancel(life)
            if name not in self._killed:
                return life.result()
            self._killed.discard(name)

    async def _agent(self, hub: Hub, name: str) -> None:
        file, folder = self.loaded.file, self.loaded.path.parent
        agent = resolve_agent(file.agent(name), name, folder, file.models)
        OPENER.set(lambda config, label: _RunModel(self, name, config, label))
        config = agent.config.model_copy(update={"greet": None})
        async with self._client(hub, name, "agent", config.card) as client:
            await run_agent(
                config,
                name,
                client,
                folder,
                agent.models,
                grace_s=0,
                mods=mod_notes(file.mods),
                mcp_servers=file.mcp_servers,
                approver=self,
                performer=self.perform,
                objects=agent.objects,
                program=self,
            )

    async def _stand_in(self, hub: Hub, name: str) -> None:
        """Take the place of a program until a message wakes it. Raises `UserError` then."""
        card = self.loaded.file.agent(name).card
        async with self._client(hub, name, "agent", card) as client:
            async for item in client.events():
                pending = isinstance(item, Ready) and item.pending
                if pending or (isinstance(item, Event) and item.wake is not None):
                    raise UserError(
                        f"agents.{name} was woken: other programs do not run in tests of a network"
                    )

    def recorded(self, question: CompletionRequest) -> Completion | None:
        """The model's recorded answer; None if the request goes to the model. Raises `ModelError`
        if it must not."""
        if self.end is not None:
            raise ModelError(self.end.text)
        if self.tape is None or self.ignore_tape:
            return None
        answer = self.tape.answer(_TURN.get(""), question)
        if answer is None and not self.live:
            self.end = RunEnd()
            raise ModelError(self.end.text)
        return answer

    async def strike(self, agent: str) -> None:
        """Inject the fault if it is due, before a request to a model. Raises `ModelError`."""
        if not self.faults.strikes():
            return
        match self.faults.fault:
            case "slow_model":
                await asyncio.sleep(self.faults.seconds)
            case "rate_limit":
                raise ModelError("HTTP 429 after all retries: too many requests")
            case "agent_killed":
                self._killed.add(agent)
                self._lives[agent].cancel()
                await asyncio.Event().wait()
            case "person_silent" | None:
                return
            case _ as never:
                assert_never(never)

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Like `Tool.run`. A call without a result ends the run."""
        if tool.name in self.results:
            result = self.results[tool.name]
            return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        if not isinstance(tool, FunctionTool | McpTool):
            return await tool.run(arguments, site)
        tape = self.tape
        recorded = tape.call(tool.name, arguments, site) if tape is not None else None
        if recorded is not None and recorded.result is not None:
            return recorded.result
        if self.ask is not None and self.end is None:
            answer = await self.ask(tool.name, arguments)
            if answer is not None:
                return answer
        self.end = self.end or RunEnd(lacking=tool.name, arguments=arguments)
        raise ToolFailed(self.end.text)

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """Repeat the recorded decision; without one, approve, unless the person is silent."""
        tape = self.tape
        recorded = tape.call(call.tool, call.arguments, call.site) if tape is not None else None
        if self.faults.fault == "person_silent":
            return Denied("no decision in time", error="expired")
        if recorded is None:
            return Approved(call.arguments)
        match recorded.error:
            case ("denied" | "expired" | "cancelled") as error:
                return Denied(_reason(recorded.result or ""), error=error)
        if recorded.changed is not None:
            return Approved(recorded.changed.arguments, by=recorded.changed.by)
        return Approved(call.arguments)

    # The interface of the agents' program -------------------------------------------------------

    def turn_options(self, plan: TurnPlan) -> TurnOptions:
        return TurnOptions()

    def on_event(self, event: TurnEvent) -> None:
        if event.kind == "turn_start":
            _TURN.set(event.turn.id)
            self._begun.add(event.turn.id)
            if self.tape is not None:
                self.tape.begin(event.turn)

    def turn_settled(self, plan: TurnPlan) -> None:
        self._begun.discard(plan.id)
        self._changed.set()


class _RunModel:
    """A model of an agent in the run."""

    def __init__(self, run: NetworkRun, agent: str, config: ModelConfig, label: str):
        self.name, self._run, self._agent = config.model, run, agent
        self._config, self._label = config, label
        self._endpoint: ChatModel | None = None

    async def answer(
        self, question: CompletionRequest, on_delta: OnDelta | None = None
    ) -> Completion:
        await self._run.strike(self._agent)
        recorded = self._run.recorded(question)
        if recorded is not None:
            return recorded
        self._endpoint = self._endpoint or open_endpoint(self._config, self._label)
        return await self._endpoint.answer(question, on_delta)

    async def close(self) -> None:
        if self._endpoint is not None:
            await self._endpoint.close()


@asynccontextmanager
async def _running(
    coroutines: Iterable[Coroutine[None, None, None]],
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Run the coroutines as tasks within the context."""
    tasks = [asyncio.create_task(coroutine) for coroutine in coroutines]
    try:
        yield tasks
    finally:
        await cancel(*tasks)


async def _notices(hub: Hub) -> tuple[str, ...]:
    log = await hub.store.log(0, hub.kernel.log.head, _MAX_MESSAGES)
    messages = (Message.model_validate_json(entry.body) for entry in log)
    return tuple(message.text for message in messages if message.is_notice)


def _with_dialects(loaded: LoadedConfig, dialects: Mapping[str, str | None]) -> LoadedConfig:
    """The network whose models have these dialects, by agent, where the config leaves the choice to
    the endpoint, which is not asked."""
    models = dict(loaded.file.models)
    for name in dialects.keys() & loaded.file.agents.keys():
        label, dialect = loaded.file.agent(name).model, dialects[name]
        if dialect in DIALECTS and label in models and models[label].dialect is None:
            models[label] = models[label].model_copy(update={"dialect": dialect})
    return replace(loaded, file=loaded.file.model_copy(update={"models": models}))


def _mod_name(entry: str | Mapping[str, object]) -> str:
    return entry if isinstance(entry, str) else next(iter(entry), "")


def _reason(result: str) -> str:
    """The reason in the result of a call that did not run."""
    value = json.loads(result)
    return str(value["message"]) if isinstance(value, dict) and "message" in value else result


# Replays of recordings ----------------------------------------------------------------------------


async def replayed(
    run: NetworkRun, recording: Recording, changed: Collection[str] = ()
) -> Difference | None:
    """The first step that differs from the recording, if any. Does not compare the system prompts
    of `changed` agents.

    Raises the errors of `NetworkRun.run`, and `UserError` for a tool without a result.
    """
    history = [RunMessage.of(message) for message in recording.history]
    now = await run.run(history, [RunMessage.of(message) for message in recording.asked])
    differs = difference(recording, now, changed)
    if run.end is not None and (differs is None or not differs.now):
        raise UserError(run.end.text)
    return differs


def replay(config: Path | str, recording: Path | str) -> Difference | None:
    """Replay a recording in the network of a config: a regression test in one line.

        def test_refunds_are_unchanged() -> None:
            assert replay("hubbub.yaml", "refund.json") is None

    Sends no requests to models, and runs no tools that reach outside. Returns the first step that
    differs. Raises `UserError`.
    """
    loaded, recorded = load_valid(Path(config)), read_recording(Path(recording))
    return asyncio.run(replayed(NetworkRun(loaded, tape=Tape(recorded)), recorded))
