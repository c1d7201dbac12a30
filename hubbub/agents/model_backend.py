"""Assembles agents with a model. Imported late: a Python agent without a model does not need it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from hubbub.agents.backend import AgentBackend
from hubbub.agents.inbox import Inbox
from hubbub.agents.llm import llm_backend
from hubbub.agents.parts import AgentParts
from hubbub.agents.program import AgentProgram, PythonObjects
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.roles.backend import role_backend
from hubbub.agents.system_prompt import Memory
from hubbub.agents.tools.approval import Approver, HubApprover
from hubbub.agents.tools.assembly import servers_of, tool_policy_of
from hubbub.agents.tools.call_runner import Perform, perform
from hubbub.agents.tools.mcp.servers import McpServers
from hubbub.agents.trials import TurnTrials
from hubbub.agents.turn.hooks import Hooks
from hubbub.agents.turn.outbox import Outbox
from hubbub.client import Client
from hubbub.config.models import AgentConfig, McpServerConfig, ModelConfig
from hubbub.errors import ConfigError
from hubbub.loading import construct, load_attribute

__all__ = ["conversation_template", "load_hooks", "open_backend"]


@asynccontextmanager
async def open_backend(
    config: AgentConfig,
    name: str,
    client: Client,
    inbox: Inbox,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    *,
    mods: Sequence[Note],
    mcp_servers: Mapping[str, McpServerConfig],
    approver: Approver | None,
    performer: Perform | None,
    objects: PythonObjects | None,
    program: AgentProgram | None,
) -> AsyncIterator[tuple[AgentBackend, TurnTrials | None]]:
    """The agent's backend and its trials; arguments as for `run_agent`. Raises `ConfigError`."""
    objects = objects or PythonObjects()
    outbox = Outbox(client, inbox)
    servers = McpServers(servers_of(config, name, mcp_servers), base_dir)
    tool_policy = tool_policy_of(config, approver=approver or HubApprover(client))
    parts = AgentParts(
        config=config,
        name=name,
        base_dir=base_dir,
        models=models,
        client=client,
        inbox=inbox,
        outbox=outbox,
        memory=Memory(outbox),
        template=conversation_template(config, base_dir),
        tool_policy=replace(tool_policy, perform=performer or perform),
        source=servers if config.mcp else None,
        hooks=[*load_hooks(config, base_dir), *objects.hooks],
        mods=mods,
        objects=objects,
        program=program,
    )
    opened = llm_backend(parts) if config.kind == "llm" else role_backend(parts)
    async with opened as (backend, trials), servers:
        yield backend, trials


def load_hooks(config: AgentConfig, base_dir: Path) -> list[Hooks]:
    """Instances of the hooks in the config. Raises `ConfigError`."""
    hooks: list[Hooks] = []
    for place in config.hooks:
        class_ = load_attribute(place, base_dir)
        if not (isinstance(class_, type) and issubclass(class_, Hooks)):
            raise ConfigError(f"{place} is no subclass of hubbub.Hooks")
        hooks.append(construct(class_))
    return hooks


def conversation_template(config: AgentConfig, base_dir: Path) -> ConversationTemplate:
    """The shipped template, or the agent's own. Raises `ConfigError`."""
    if config.template is None:
        return ConversationTemplate.shipped()
    return ConversationTemplate.load(base_dir / config.template)
