"""A whole network run for a case or against a recording: the real hub, its mods and agents, in this
process and in memory.

Tools that reach out of the network (own functions, MCP servers) are not carried out: a call has the
result that the case or the recording has for it, and one without ends the run.
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
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType
from typing import assert_never

from pydantic import JsonValue

from hubbub.agents.inbox import TurnPlan
from hubbub.agents.launch import run_agent
from hubbub.agents.llm_agent import resolve_agent
from hubbub.agents.models.base import ChatModel, Completion, CompletionRequest, OnDelta
from hubbub.agents.models.providers import OPENER, open_endpoint
from hubbub.agents.program import TurnOptions
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
from hubbub.lab.recordings import Difference, Recording, Tape, difference, read_recording, record
from hubbub.mods.loader import load_mods
from hubbub.network.caller import OPERATOR
from hubbub.network.hub import Hub
from hubbub.network.ports import Store
from hubbub.network.store import open_store
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Event
from hubbub.protocol.messages import Kind, Message
from hubbub.protocol.operations import SendResult

__all__ = ["FaultInjector", "NetworkRun", "RunMessage", "replay", "replayed"]

MOST_S = 600.0
"""Seconds that a run may take."""
MOST_MESSAGES = 10_000
"""Of a run, in which notices are looked for."""
SLOW_S = 2.0
"""Seconds that a slow model takes more, at most."""
UNRECORDED = "a model was asked what the recording has no answer to"
_OUTWARD = frozenset({"webhooks"})
"""Mods that would send something to somebody outside."""
_TURN: ContextVar[str] = ContextVar("_TURN")
"""The turn whose model is asked."""
Over = Callable[[str], Awaitable[None]]
"""Waits until all of an interaction is over."""
Ask = Callable[[str, Mapping[str, JsonValue]], Awaitable[str | None]]
"""What a tool answers to these arguments; None: nobody knows."""
_NO_RESULTS: Mapping[str, JsonValue] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RunMessage:
    """What somebody says."""

    sender: str
    kind: Kind
    thread: str
    """Canonical, of this network."""
    content: JsonValue
    shown: str | None = None
    """How the content reads as text."""
    under: str | None = None
    """The message that it is a reply to."""
    mentions: tuple[str, ...] = ()
    outside: bool = False
    id: str = ""
    """What it was called then."""

    @classmethod
    def of(cls, message: Message) -> RunMessage:
        """What a recorded message says."""
        kind: Kind = "agent" if message.sender_kind == "agent" else "human"
        said, shown = message.content, message.text_representation
        return cls(
            message.sender_id, kind, message.thread_id, said, shown, message.reply_to,
            message.mentions, message.outside, message.id,
        )  # fmt: skip


class FaultInjector:
    """What goes wrong in one run, by its seed: one of the faults or none, at one of the first
    questions to the models."""

    def __init__(self, faults: Sequence[Fault] = (), seed: object = 0):
        random = Random(f"trouble {seed}")
        self.fault: Fault | None = random.choice([None, *faults])
        self.seconds = random.uniform(0, SLOW_S)
        self._until = random.randint(1, 3)

    def strikes(self) -> bool:
        """Whether it does now that a model is asked."""
        self._until -= 1
        return self._until == 0


@dataclass(slots=True)
class RunEnd:
    """Why no model is asked any more: what is under way ends."""

    lacking: str | None = None
    """A tool that has no result. None: a model was asked what the recording has no answer to."""
    arguments: Mapping[str, JsonValue] = field(default_factory=dict)
    """Of the call."""

    @property
    def text(self) -> str:
        if self.lacking is None:
            return UNRECORDED
        return f"there is no result of {self.lacking}, which is not carried out here"


@dataclass(slots=True)
class NetworkRun:
    """One run. The config's models are asked without a `tape`, where that has no answer if `live`,
    and always if `anew`."""

    loaded: LoadedConfig
    results: Mapping[str, JsonValue] = field(default_factory=lambda: _NO_RESULTS)
    tape: Tape | None = None
    live: bool = False
    anew: bool = False
    trouble: FaultInjector = field(default_factory=FaultInjector)
    ask: Ask | None = None
    """Who is asked for the result of a call that has none."""
    end: RunEnd | None = field(default=None, init=False)
    notices: tuple[str, ...] = field(default=(), init=False)
    """What the hub has said of it by itself."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _lives: dict[str, asyncio.Task[None]] = field(default_factory=dict, init=False)
    _killed: set[str] = field(default_factory=set, init=False)
    _begun: set[str] = field(default_factory=set, init=False)
    """Turns whose end is not on record, as far as their agents know."""
    _ids: dict[str, str] = field(default_factory=dict, init=False)
    """What recorded messages are called here."""
    _tokens: dict[str, str] = field(default_factory=dict, init=False)

    async def run(self, history: Sequence[RunMessage], says: Sequence[RunMessage]) -> Recording:
        """Say all that, each when all is over that came of the one before; what came of it.

        Raises `UserError` for agents that cannot run so, `ConfigError` for mistakes in the config,
        and `TimeoutError`.
        """
        async with asyncio.timeout(MOST_S), self.hub(open_store(MEMORY_STORE)) as hub:
            before = [await self._say(hub, saying, silent=True) for saying in history]
            async with self.agents(hub) as (operator, over):
                opened = list[str]()
                while self.end is None and len(opened) < len(says):
                    sent = await self._say(hub, says[len(opened)])
                    opened.append(sent.message.interaction_id)
                    await over(opened[-1])
                await hub.kernel.log.settle()
                self.notices = await _notices(hub)
            async with self._client(hub, OPERATOR, "service") as operator:
                return await record(operator, opened, [sent.message for sent in before])

    @asynccontextmanager
    async def hub(self, store: Store, clock: Clock | None = None) -> AsyncIterator[Hub]:
        """The hub and its mods, without what would send something to somebody outside."""
        file = self.loaded.file
        others = [
            name for name in file.agents if file.agent(name).kind in ("a2a", "acp", "program")
        ]
        if others:
            raise UserError(f"agents.{others[0]}: other programs do not run in tests of a network")
        section = file.network.model_copy(update={"store": MEMORY_STORE, "auth": "open"})
        mods = [mod for mod in file.mods if _mod_name(mod) not in _OUTWARD]
        file = file.model_copy(update={"network": section, "mods": mods})
        async with Hub(file, store, mods=load_mods(mods, section.allow_mods), clock=clock) as hub:
            for name in (OPERATOR, *file.agents):
                self._tokens[name] = secrets.token_urlsafe(32)
                hub.gateway.admission.add_token(name, self._tokens[name])
            yield hub

    @asynccontextmanager
    async def agents(self, hub: Hub) -> AsyncIterator[tuple[Client, Over]]:
        """Within, the agents run. What waits until all of an interaction is over."""
        async with (
            self._client(hub, OPERATOR, "service") as operator,
            _running(self._live(hub, each) for each in self.loaded.file.agents) as agents,
        ):
            watching = asyncio.create_task(self._watch(operator))
            try:
                yield operator, partial(self._over, operator, agents)
            finally:
                watching.cancel()
                await asyncio.wait({watching})

    # What is said -------------------------------------------------------------------------------

    def _client(self, hub: Hub, name: str, kind: Kind) -> Client:
        options = ClientOptions(observe=name == OPERATOR)
        transport = MemoryTransport(hub.gateway.attach)
        return Client(transport, name, kind, token=self._tokens.get(name), options=options)

    async def _say(self, hub: Hub, saying: RunMessage, *, silent: bool = False) -> SendResult:
        operation, args = self._call(saying)
        async with self._client(hub, saying.sender, saying.kind) as client:
            told = await client.call(operation, cid=None, silent=silent, **args)
        sent = SendResult.model_validate(told)
        self._ids[saying.id] = sent.id
        return sent

    def _call(self, saying: RunMessage) -> tuple[str, dict[str, JsonValue]]:
        text = saying.content if isinstance(saying.content, str) else saying.shown or "(no text)"
        marks: dict[str, JsonValue] = {
            "mentions": list(saying.mentions),
            "outside": saying.outside,
        }
        said: dict[str, JsonValue] = {"text": text, **marks}
        if saying.under is not None:
            return "reply", {"message_id": self._ids.get(saying.under, saying.under), **said}
        match thread_ids.kind_of(saying.thread):
            case "channel":
                return "post_to_channel", {"channel": saying.thread.partition(".")[2], **said}
            case "direct":
                to: list[JsonValue] = [
                    m for m in thread_ids.members_of(saying.thread) if m != saying.sender
                ]
                if isinstance(saying.content, str):
                    return "send_text_message", {"to": to, **said}
                shown = {"content": saying.content, "text_representation": saying.shown}
                return "send_message", {"to": to, **shown, **marks}
            case _:
                return "broadcast_text_message", said

    async def _over(
        self, operator: Client, agents: Sequence[asyncio.Task[None]], interaction: str
    ) -> None:
        # Why there is no answer the hub says once the end is on record.
        while self._begun or await turns_of(operator, interaction) is None:
            changed = asyncio.ensure_future(self._changed.wait())
            try:
                await asyncio.wait({changed, *agents}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()
            for agent in agents:
                if agent.done():
                    agent.result()  # raises: by itself it ends for a mistake only
            self._changed.clear()

    async def _watch(self, operator: Client) -> None:
        async for item in operator.events():
            if isinstance(item, Event):
                await operator.ack(item.seq)
                self._changed.set()

    # Its agents ---------------------------------------------------------------------------------

    async def _live(self, hub: Hub, name: str) -> None:
        """An agent, again after it was killed."""
        while True:
            life = self._lives[name] = asyncio.create_task(self._agent(hub, name))
            try:
                await asyncio.wait({life})
            finally:
                life.cancel()
                await asyncio.wait({life})
            if name not in self._killed:
                return life.result()
            self._killed.discard(name)

    async def _agent(self, hub: Hub, name: str) -> None:
        file, folder = self.loaded.file, self.loaded.path.parent
        agent = resolve_agent(file.agent(name), name, folder, file.models)
        OPENER.set(lambda config, label: _RunModel(self, name, config, label))
        config = agent.config.model_copy(update={"greet": None})
        transport, token = MemoryTransport(hub.gateway.attach), self._tokens[name]
        options = ClientOptions(card=config.card)
        client = Client(transport, name, "agent", token=token, turns=True, options=options)
        async with client:
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

    def recorded(self, question: CompletionRequest) -> Completion | None:
        """What the model is to answer; None: it is asked itself. Raises `ModelError` where it may
        not be."""
        if self.end is not None:
            raise ModelError(self.end.text)
        if self.tape is None or self.anew:
            return None
        answer = self.tape.answer(_TURN.get(""), question)
        if answer is None and not self.live:
            self.end = RunEnd()
            raise ModelError(self.end.text)
        return answer

    async def strike(self, agent: str) -> None:
        """What goes wrong now that a model of the agent is asked. Raises `ModelError`."""
        if not self.trouble.strikes():
            return
        match self.trouble.fault:
            case "slow_model":
                await asyncio.sleep(self.trouble.seconds)
            case "rate_limit":
                raise ModelError("HTTP 429, after all repetitions: too many requests")
            case "agent_killed":
                self._killed.add(agent)
                self._lives[agent].cancel()
                await asyncio.Event().wait()
            case "person_silent" | None:
                return
            case _ as never:
                assert_never(never)

    async def perform(self, tool: Tool, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """As `Tool.run`. Where there is no result no model is asked any more."""
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
            said = await self.ask(tool.name, arguments)
            if said is not None:
                return said
        self.end = self.end or RunEnd(lacking=tool.name, arguments=arguments)
        raise ToolFailed(self.end.text)

    async def approve(self, call: ApprovalRequest) -> Verdict:
        """As the person did; without a recording everything, unless it is silent."""
        tape = self.tape
        recorded = tape.call(call.tool, call.arguments, call.site) if tape is not None else None
        if self.trouble.fault == "person_silent":
            return Denied("nobody has decided in time", error="expired")
        if recorded is None:
            return Approved(call.arguments)
        match recorded.error:
            case ("denied" | "expired" | "cancelled") as error:
                return Denied(_reason(recorded.result or ""), error=error)
        if recorded.changed is not None:
            return Approved(recorded.changed.arguments, by=recorded.changed.by)
        return Approved(call.arguments)

    # As the agents' program ---------------------------------------------------------------------

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
    """A model of an agent of the run."""

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
    lives: Iterable[Coroutine[None, None, None]],
) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Within, all of these run."""
    tasks = [asyncio.create_task(life) for life in lives]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


async def _notices(hub: Hub) -> tuple[str, ...]:
    log = await hub.store.log(0, hub.kernel.log.head, MOST_MESSAGES)
    said = (Message.model_validate_json(entry.body) for entry in log)
    return tuple(message.text for message in said if message.is_notice)


def _mod_name(entry: str | Mapping[str, object]) -> str:
    return entry if isinstance(entry, str) else next(iter(entry), "")


def _reason(result: str) -> str:
    """Why a call did not run, as its result says."""
    told = json.loads(result)
    return str(told["message"]) if isinstance(told, dict) and "message" in told else result


# Against a recording ------------------------------------------------------------------------------


async def replayed(
    run: NetworkRun, recording: Recording, changed: Collection[str] = ()
) -> Difference | None:
    """The first step in which the network does not do again what was recorded; None: there is none.
    The system prompts of agents that were `changed` are not compared.

    Raises what `NetworkRun.run` raises, and `UserError` for a tool whose result is not known.
    """
    history = [RunMessage.of(message) for message in recording.history]
    now = await run.run(history, [RunMessage.of(message) for message in recording.asked])
    differs = difference(recording, now, changed)
    if run.end is not None and (differs is None or not differs.now):
        raise UserError(run.end.text)
    return differs


def replay(config: Path | str, recording: Path | str) -> Difference | None:
    """Play a recording to the network of a config: a regression test in one line.

        def test_refunds_go_on_as_they_did() -> None:
            assert replay("hubbub.yaml", "refund.json") is None

    Nothing is asked of a model, and no tool that reaches out is carried out. Returns the first step
    that differs. Raises `UserError`.
    """
    loaded, recorded = load_valid(Path(config)), read_recording(Path(recording))
    return asyncio.run(replayed(NetworkRun(loaded, tape=Tape(recorded)), recorded))
