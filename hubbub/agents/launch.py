"""From an agent's section of the YAML to a running agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox
from hubbub.agents.python.agent import Agent
from hubbub.agents.python.handlers import HandlerBackend
from hubbub.agents.python.link import AgentLink
from hubbub.agents.runner import GRACE_S, AgentRunner
from hubbub.agents.turn.outbox import Outbox
from hubbub.client import Client
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig
from hubbub.errors import ConfigError, OperationError
from hubbub.loading import construct, load_attribute
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.operations import ThreadPage
from hubbub.protocol.thread_ids import BROADCAST

if TYPE_CHECKING:
    from hubbub.agents.program import AgentProgram, PythonObjects
    from hubbub.agents.prompt.context import Note
    from hubbub.agents.tools.approval import Approver
    from hubbub.agents.tools.call_runner import Perform
    from hubbub.agents.trials import TurnTrials

__all__ = ["greet", "inbox_of", "load_agent_class", "run_agent", "run_backend", "run_python_agent"]

_NO_SERVERS: Mapping[str, McpServerConfig] = MappingProxyType({})

RECENT = 20
"""Broadcasts that are searched for an earlier copy of the greeting."""


async def run_agent(
    config: AgentConfig,
    name: str,
    client: Client,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    *,
    grace_s: float = GRACE_S,
    greet_cid: str | None = None,
    mods: Sequence[Note] = (),
    mcp_servers: Mapping[str, McpServerConfig] = _NO_SERVERS,
    approver: Approver | None = None,
    performer: Perform | None = None,
    objects: PythonObjects | None = None,
    program: AgentProgram | None = None,
) -> None:
    """Run the agent that `client` is connected as (with `turns=True`) until cancelled.

    On cancellation running turns have `grace_s` seconds to end; the next process resumes those that
    do not. Relative paths in the config are relative to `base_dir`. If the hub has already seen
    `greet_cid`, the agent does not greet again. `mods` describes the hub's mods for prompts.
    `approver` decides about calls that need approval; without one, people are asked through the
    hub. `performer` carries out permitted calls.
    `objects` are Python objects in place of config keys, `program` is the program that runs the
    agent.

    Raises `ConfigError` before anything is sent when the config names a file, class, tool or model
    that does not exist, and `ConnectionLost` when the hub closes for good.
    """
    if config.object is not None:
        from hubbub.agents.llm_agent import resolve_agent  # it may be an agent with a model

        whole = resolve_agent(config, name, base_dir, models)
        config, objects, models = whole.config, whole.objects, whole.models
    if config.kind == "python":
        own = objects.agent if objects is not None else None
        agent = own or construct(load_agent_class(config, base_dir))
        await run_python_agent(
            agent, client, config, grace_s=grace_s, greet_cid=greet_cid, program=program
        )
        return
    from hubbub.agents.model_backend import (
        open_backend,  # imported late: prompts, dialects and tools
    )

    inbox = inbox_of(config, name)
    opened = open_backend(
        config,
        name,
        client,
        inbox,
        base_dir,
        models,
        mods=mods,
        mcp_servers=mcp_servers,
        approver=approver,
        performer=performer,
        objects=objects,
        program=program,
    )
    async with opened as (backend, trials):
        await run_backend(client, inbox, backend, config, grace_s, greet_cid, trials, program)


async def run_python_agent(
    agent: Agent,
    client: Client,
    config: AgentConfig | None = None,
    *,
    grace_s: float = GRACE_S,
    greet_cid: str | None = None,
    program: AgentProgram | None = None,
) -> None:
    """Run `agent` on a connected client (with `turns=True`) until cancelled.

    Raises what `on_start` raises, and `ConnectionLost` when the hub closes for good.
    """
    config = config or AgentConfig(kind="python")
    inbox = inbox_of(config, client.participant)
    link = AgentLink(Outbox(client, inbox), inbox)
    agent._join(link, config.settings)
    try:
        backend = agent._backend(client, inbox, config)
        backend = backend or HandlerBackend(agent, link, timeout=config.turn_timeout)
        await run_backend(client, inbox, backend, config, grace_s, greet_cid, program=program)
    finally:
        agent._leave()


def load_agent_class(config: AgentConfig, base_dir: Path) -> type[Agent]:
    """The class of a `python` agent. Raises `ConfigError`."""
    if config.class_ is None:
        raise ConfigError("a python agent needs `class: file.py:ClassName`")
    class_ = load_attribute(config.class_, base_dir)
    if not (isinstance(class_, type) and issubclass(class_, Agent)):
        raise ConfigError(f"{config.class_} is no subclass of hubbub.Agent")
    return class_


async def run_backend(
    client: Client,
    inbox: Inbox,
    backend: AgentBackend,
    config: AgentConfig,
    grace_s: float,
    greet_cid: str | None,
    trials: TurnTrials | None = None,
    program: AgentProgram | None = None,
) -> None:
    """Run the agent whose turns `backend` takes until cancelled; arguments as for `run_agent`.

    Raises `ConnectionLost` when the hub closes for good.
    """
    if config.greet is not None:
        await greet(client, config.greet, greet_cid)
    runner = AgentRunner(
        client,
        inbox,
        backend,
        grace_s=grace_s,
        trials=trials,
        steer="queue" if config.kind == "python" else config.steer,
        debounce_s=config.debounce,
        on_settled=program.turn_settled if program is not None else None,
    )
    await runner.run()


async def greet(client: Client, text: str, cid: str | None = None) -> None:
    """Broadcast `text`, or one short line if `text` is among the last broadcasts already.

    If the hub has already seen `cid`, nothing is sent.
    """
    page = await client.call("read_thread", thread=BROADCAST, limit=RECENT)
    messages = ThreadPage.model_validate(page).messages
    me = client.participant
    if any(m.sender_id == me and m.text == text for m in messages):
        text = f"{me} is here again."
    try:
        await client.call("broadcast_text_message", cid=cid, text=text)
    except OperationError as exc:
        if exc.code != ErrorCode.CID_CONFLICT:
            raise  # otherwise it has already greeted in this network


def inbox_of(config: AgentConfig, name: str) -> Inbox:
    """The inbox for an agent with this config."""
    return Inbox(name, concurrency=config.concurrency, ignore_senders=config.ignore_senders)
