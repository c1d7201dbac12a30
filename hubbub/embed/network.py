"""A network in this process: hub, mods and agents, running for the duration of a `with` block.

    clerk = LlmAgent("clerk", model="gpt-5-mini", instruction="You handle refunds.")
    async with Network(clerk, name="shop") as net:
        answer = await net.ask("clerk", "refund order 7")

The classes are the ones the YAML config builds. By default the store is in memory and no port is
opened.
"""

from __future__ import annotations

import asyncio
import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, overload

from pydantic import JsonValue

from hubbub.agents.launch import run_agent, run_python_agent
from hubbub.agents.llm_agent import LlmAgent, is_object, with_environment
from hubbub.agents.output import Output
from hubbub.agents.prompt.context import Note
from hubbub.agents.python.agent import Agent
from hubbub.agents.tools.approval import ApprovalRequest, Approved, Denied, Verdict
from hubbub.client import Client, ClientOptions
from hubbub.client.transport import MemoryTransport
from hubbub.config.agents import ModelSettings
from hubbub.config.budgets import ApprovalsConfig, BreakerConfig, Budgets, DailyBudgets
from hubbub.config.checks import cross_check
from hubbub.config.explain import as_document, valid
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.config.models import (
    A2aConfig,
    AgentConfig,
    ChannelConfig,
    HumanConfig,
    Limits,
    McpServerConfig,
    ModelConfig,
    NetworkFile,
    WakePolicy,
)
from hubbub.config.paths import MEMORY_STORE, SQLITE, anchor_paths
from hubbub.config.problems import ConfigProblems, nearest
from hubbub.embed.ask import Answer, Ask, OnEvent, QuestionInFlight, QuestionRunner
from hubbub.errors import ConfigError, UserError
from hubbub.mods.api import Mod
from hubbub.mods.loader import docs_of, load_mods
from hubbub.network.caller import OPERATOR
from hubbub.network.hub import Hub
from hubbub.network.path_switch import Doors
from hubbub.network.server import serve_hub
from hubbub.network.store import open_store
from hubbub.protocol.messages import Kind
from hubbub.waiting import cancel
from hubbub.wording import dashed

__all__ = ["Network"]

T = TypeVar("T")
Settings = Mapping[str, JsonValue]
Member = LlmAgent | Agent | type[Agent]
Approve = Callable[[ApprovalRequest], bool | Verdict | Awaitable[bool | Verdict]]
DEFAULT_PERSON = "user"
"""The asker in a network without people."""


class Network:
    """Agents, and the hub between them, in this process.

    `agents` are `LlmAgent`s, `Agent`s or `Agent` classes. The name of an `Agent` without a `name`
    is derived from its class (`WordCounter`: word-counter). The other arguments are the keys of the
    YAML config, with the same meaning and defaults, except that the store is in memory and that no
    tokens are needed. A section can be a mapping or an instance of its class. `people` and
    `channels` can be lists of names, `mods` can be objects, and relative paths start at `folder`.
    Models without `base_url` and `api_key` use the environment's OPENAI_BASE_URL and
    OPENAI_API_KEY.

    `approve` decides calls that need approval. It gets each call and returns whether it can run, or
    an `Approved` with other arguments, or a `Denied` with a reason; it can be `async`. Without it
    people are asked through the hub, and the question waits for them.

    Raises `ConfigError` for invalid arguments. Entering the block raises `UserError` for mods,
    stores and missing keys; leaving it raises the error of an agent that could not start.
    """

    def __init__(
        self,
        *agents: Member,
        name: str = "hubbub",
        people: Sequence[str] | Mapping[str, HumanConfig | Settings] = (),
        channels: Sequence[str] | Mapping[str, ChannelConfig | Settings] = (),
        mods: Sequence[str | Mapping[str, Settings | None] | Mod] = (),
        models: Mapping[str, ModelConfig | Settings] | None = None,
        mcp_servers: Mapping[str, McpServerConfig | Settings] | None = None,
        knowledge: KnowledgeConfig | Settings | Sequence[str] | None = None,
        store: str = MEMORY_STORE,
        auth: Literal["tokens", "open"] = "open",
        hosts: Sequence[str] | None = None,
        limits: Limits | Settings | None = None,
        wake: WakePolicy | Settings | None = None,
        budgets: Budgets | Settings | None = None,
        daily: DailyBudgets | Settings | None = None,
        breaker: BreakerConfig | Settings | None = None,
        approvals: ApprovalsConfig | Settings | None = None,
        allow_mods: Sequence[str] | None = None,
        mcp: bool | None = None,
        openai: bool | None = None,
        a2a: A2aConfig | Settings | None = None,
        compression: bool | None = None,
        folder: Path | str = ".",
        approve: Approve | None = None,
    ):
        for what, given in (("people", people), ("channels", channels), ("mods", mods)):
            if isinstance(given, str):
                raise ConfigError(f"Network: {what}: {given!r} is no list: write [{given!r}]")
        self._folder, self._own_mods = Path(folder).absolute(), list(mods)
        self._approver = _ProgramApprover(approve) if approve is not None else None
        if store.startswith(SQLITE) and store not in (SQLITE, MEMORY_STORE):
            store = f"{SQLITE}{self._folder / store.removeprefix(SQLITE)}"
        self._agents = {_name_of(agent): agent for agent in agents}
        if len(self._agents) < len(agents):
            names = [_name_of(agent) for agent in agents]
            duplicate = next(each for each in names if names.count(each) > 1)
            raise ConfigError(f"Network: two agents are named {duplicate!r}: rename one of them")
        hub = {
            "name": name, "store": store, "auth": auth, "hosts": hosts, "limits": limits,
            "wake": wake, "budgets": budgets, "daily": daily, "breaker": breaker,
            "approvals": approvals, "allow_mods": allow_mods, "mcp": mcp,
            "openai": openai, "a2a": a2a, "compression": compression,
        }  # fmt: skip
        sections: dict[str, object] = {
            "network": {key: value for key, value in hub.items() if value is not None},
            "humans": _named(people),
            "channels": _named(channels),
            "mods": [mod for mod in mods if not isinstance(mod, Mod)],
            "models": {
                each: with_environment(model) if isinstance(model, Mapping) else model
                for each, model in (models or {}).items()
            },
            "mcp_servers": mcp_servers or {},
            "knowledge": knowledge if knowledge is not None else {},
        }
        base = valid(NetworkFile, sections, "Network")
        joined = {
            each: agent.joined(base.models) if isinstance(agent, LlmAgent) else (_PYTHON, None)
            for each, agent in self._agents.items()
        }
        added = {each: model for each, (_, model) in joined.items() if model is not None}
        both = sorted(added.keys() & base.models.keys())
        if both:
            raise ConfigError(
                f"Network: {both[0]!r} is the name of an agent and of a model: rename one of them"
            )
        sections["agents"] = {each: config for each, (config, _) in joined.items()}
        sections["models"] = {**base.models, **added}
        self.file = valid(NetworkFile, sections, "Network")
        _check_file(self.file, self._folder)
        self._asker = next(iter(self.file.humans), DEFAULT_PERSON)
        self._stack = AsyncExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The loop in which it runs; None: it does not."""

    async def __aenter__(self) -> Self:
        if self._loop is not None:
            raise UserError("the network is already running: make another `Network`")
        _check_keys(self.file)
        mods = [
            mod if isinstance(mod, Mod) else load_mods([mod], self.file.network.allow_mods)[0]
            for mod in self._own_mods
        ]
        self._notes = tuple(Note(mod.name, docs_of(type(mod))) for mod in mods)
        self._loop = asyncio.get_running_loop()
        try:
            if any(isinstance(agent, LlmAgent) for agent in self._agents.values()):
                await asyncio.to_thread(_import_models)
            store = open_store(self.file.network.store)
            self.hub = await self._stack.enter_async_context(Hub(self.file, store, mods=mods))
            self._tokens = {each: secrets.token_urlsafe(32) for each in (OPERATOR, *self._agents)}
            for each, token in self._tokens.items():
                self.hub.gateway.admission.add_token(each, token)
            self._questions = QuestionRunner(self._person)
            self._operator = self._follow(await self.join(OPERATOR, "service", observe=True))
            # The agents leave before the server of `serve` closes all connections.
            self._servers = await self._stack.enter_async_context(AsyncExitStack())
            group = await self._stack.enter_async_context(_ungrouped(asyncio.TaskGroup()))
            tasks = [group.create_task(self._run(each), name=each) for each in self._agents]
            self._stack.callback(lambda: [task.cancel() for task in tasks])
        except BaseException:
            try:
                await self._stack.aclose()
            finally:
                self._loop = None
            raise
        return self

    async def __aexit__(self, *exc: Any) -> bool | None:  # passed to the stack
        try:
            return await self._stack.__aexit__(*exc)
        finally:
            self._loop = None

    # People -------------------------------------------------------------------------------------

    @overload
    def ask(
        self,
        agent: str,
        text: str,
        *,
        by: str | None = None,
        output: None = None,
        settings: ModelSettings | Settings | None = None,
    ) -> Ask[Answer]: ...
    @overload
    def ask(
        self,
        agent: str,
        text: str,
        *,
        by: str | None = None,
        output: type[T],
        settings: ModelSettings | Settings | None = None,
    ) -> Ask[T]: ...
    def ask(
        self,
        agent: str,
        text: str,
        *,
        by: str | None = None,
        output: type[Any] | None = None,
        settings: ModelSettings | Settings | None = None,
    ) -> Ask[Any]:
        """Ask an agent as a person (`by`; default: the first of `people`), in their direct thread.

        Awaiting it returns an `Answer`, or with `output` a value of that type; if the answer does
        not fit, the model is asked again with the errors, three times in all. `settings` are model
        settings for this question. `async for` yields the events of the turn. One person's
        questions to one agent are answered one at a time, and the agent remembers them; each person
        has their own thread.

        Raises `NoAnswer` if the turn fails, `OperationError` if the hub refuses the question, and
        `UserError` for an unknown agent or a type that JSON cannot represent.
        """
        if agent not in self._agents:
            raise UserError(f"ask: there is no agent {agent!r}{nearest(str(agent), self._agents)}")
        own = settings if isinstance(settings, ModelSettings) else None
        if settings is not None and own is None:
            own = valid(ModelSettings, dict(settings), "ask: settings")
        parser: Output[Any] | None = Output(output) if output is not None else None
        if parser is None and isinstance(member := self._agents[agent], LlmAgent):
            parser = member.objects.output
        self._check_running("ask")
        person = by or self._asker

        async def run(on_event: OnEvent) -> tuple[Any, Answer]:
            self._check_loop("ask")
            question = QuestionInFlight(person, agent, parser, own, on_event)
            return await self._questions.answer(self._operator, question, text)

        return Ask(run)

    @overload
    def ask_sync(
        self,
        agent: str,
        text: str,
        *,
        by: str | None = None,
        output: None = None,
        settings: ModelSettings | Settings | None = None,
    ) -> Answer: ...
    @overload
    def ask_sync(
        self,
        agent: str,
        text: str,
        *,
        by: str | None = None,
        output: type[T],
        settings: ModelSettings | Settings | None = None,
    ) -> T: ...
    def ask_sync(self, agent: str, text: str, **how: Any) -> Any:
        """Start the network, ask one question like `ask`, and stop it: for scripts without an event
        loop. With a file as the store, the next question continues the conversation.

        Raises the errors of `ask`, and `UserError` if an event loop is running, as in a notebook.
        """

        async def run() -> Any:
            async with self:
                return await self.ask(agent, text, **how)

        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(run())
        raise UserError(
            "ask_sync: an event loop is already running, as in a notebook; "
            "use `async with Network(...) as net:` and `await net.ask(...)`"
        )

    async def join(self, name: str, kind: Kind = "human", *, observe: bool = False) -> Client:
        """Join under this name, and return the client, which can call any operation. It is closed
        with the network. Raises the errors of `Client.__aenter__`."""
        self._check_loop("join")
        client = Client(
            MemoryTransport(self.hub.gateway.attach),
            name,
            kind,
            token=self._token(name),
            options=ClientOptions(observe=observe),
        )
        return await self._stack.enter_async_context(client)

    async def serve(self, port: int = 0, *, host: str = "127.0.0.1", page: bool = True) -> str:
        """Listen for clients and, with `page`, browsers, until the network stops. Port 0 picks a
        free port. Returns the address, such as `ws://127.0.0.1:4820`; the page is at the same
        address with `http`.

        Raises `UserError` if the address is not available.
        """
        from hubbub.web.site import About, Site

        self._check_loop("serve")
        network = self.file.network
        site = Site(About(network.name, network.auth, tuple(self.file.humans))) if page else None
        doors: Doors = {}
        if network.mcp or network.openai or network.a2a:
            from hubbub.interop.doors import open_doors  # imported only if needed

            cards = {name: agent.card for name, agent in self.file.agents.items()}
            doors = await self._servers.enter_async_context(open_doors(self.hub, host, cards))
        listening = serve_hub(self.hub, f"{host}:{port}", pages=site, doors=doors)
        return (await self._servers.enter_async_context(_ungrouped(listening))).url

    # Agents -------------------------------------------------------------------------------------

    async def _run(self, name: str) -> None:
        agent, config = self._agents[name], self.file.agent(name)
        transport, token = MemoryTransport(self.hub.gateway.attach), self._tokens[name]
        options = ClientOptions(card=config.card)
        client = Client(transport, name, "agent", token=token, turns=True, options=options)
        async with client:
            if not isinstance(agent, LlmAgent):
                instance = agent() if isinstance(agent, type) else agent
                await run_python_agent(instance, client, config, program=self._questions)
                return
            await run_agent(
                config,
                name,
                client,
                self._folder,
                self.file.models,
                mods=self._notes,
                mcp_servers=self.file.mcp_servers,
                approver=self._approver,
                objects=agent.objects,
                program=self._questions,
            )

    def _check_running(self, method: str) -> None:
        if self._loop is None:
            what = "the network is not running: use `async with Network(...) as net:`"
            also = ", or `ask_sync` in a script without an event loop" if method == "ask" else ""
            raise UserError(f"{method}: {what}{also}")

    def _check_loop(self, method: str) -> None:
        """Raises `UserError` outside the network's block, and in another event loop: what is
        awaited there would never happen."""
        self._check_running(method)
        if self._loop is not asyncio.get_running_loop():
            raise UserError(
                "the network runs in the event loop of another thread: from here, call "
                "`asyncio.run_coroutine_threadsafe` with a coroutine of yours and that loop"
            )

    async def _person(self, name: str) -> Client:
        return self._follow(await self.join(name))

    def _follow(self, client: Client) -> Client:
        task = asyncio.create_task(self._questions.follow(client))
        self._stack.push_async_callback(cancel, task)
        return client

    def _token(self, name: str) -> str | None:
        if name not in self._tokens and self.file.network.auth == "tokens":
            self._tokens[name] = secrets.token_urlsafe(32)
            self.hub.gateway.admission.add_token(name, self._tokens[name])
        return self._tokens.get(name)


_PYTHON = AgentConfig(kind="python")


def _name_of(agent: Member) -> str:
    kinds = (LlmAgent, Agent)
    if not isinstance(agent, kinds) and not (isinstance(agent, type) and issubclass(agent, Agent)):
        what = "pass each LlmAgent, Agent or Agent class as its own argument"
        raise ConfigError(f"Network: {agent!r} is not an agent: {what}")
    if isinstance(agent, LlmAgent) or agent.name:
        return agent.name
    kind = agent if isinstance(agent, type) else type(agent)
    return dashed(kind.__name__)


def _named(given: Sequence[str] | Mapping[str, object]) -> dict[str, object]:
    return dict(given) if isinstance(given, Mapping) else {name: {} for name in given}


def _check_file(file: NetworkFile, folder: Path) -> None:
    """Run the checks that a schema cannot express. Raises `ConfigProblems`."""
    values = file.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for agent in values["agents"].values():
        agent["class"] = None  # the program has the class
        agent["tools"] = [tool for tool in agent.get("tools") or () if not is_object(tool)]
    document = as_document(values, folder / "Network")
    anchor_paths(document)
    cross_check(document, None)
    if document.problems:
        raise ConfigProblems(document.problems)


def _check_keys(file: NetworkFile) -> None:
    """No agent needs a key that is not there. Raises `UserError`."""
    for name, agent in file.agents.items():
        for model in map(file.models.__getitem__, sorted(agent.used_models)):
            if model.lacks_key:
                raise UserError(
                    f"the model of {name}, {model.model}, has no key: set OPENAI_API_KEY, or "
                    "OPENAI_BASE_URL to a server of your own (Ollama, vLLM, llama.cpp)"
                )


@dataclass(frozen=True, slots=True)
class _ProgramApprover:
    """An `Approver` that calls the program's `approve`."""

    decide: Approve

    async def approve(self, call: ApprovalRequest) -> Verdict:
        decision = self.decide(call)
        verdict = await decision if inspect.isawaitable(decision) else decision
        if isinstance(verdict, bool):
            return Approved(call.arguments, by="program") if verdict else Denied("it may not run")
        return verdict


def _import_models() -> None:
    """Import what agents with a model need before anyone connects: on a busy machine that takes
    longer than a handshake may."""
    for module in ("openai", "hubbub.agents.model_backend"):
        import_module(module)


@asynccontextmanager
async def _ungrouped(context: AbstractAsyncContextManager[T]) -> AsyncIterator[T]:
    """A context with a task group, which raises a single failure without the exception group."""
    try:
        async with context as value:
            yield value
    except BaseExceptionGroup as group:
        if len(group.exceptions) > 1:
            raise
        (error,) = group.exceptions
        story = error.__cause__, error.__context__, error.__suppress_context__
        try:
            raise error
        finally:  # as it was raised: the group is no part of it
            error.__cause__, error.__context__, error.__suppress_context__ = story
