"""From the YAML of a role or a pipeline to its brain."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

from hubbub.agents.briefing import Briefing
from hubbub.agents.dialects.choice import DialectChoice
from hubbub.agents.inbox import Inbox
from hubbub.agents.memory import Memory
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.prompt.scratchpad import ThinkingModel
from hubbub.agents.prompt.system import load_system_prompts
from hubbub.agents.python.link import Link
from hubbub.agents.roles.brain import RoleBrain
from hubbub.agents.roles.desk import RoleModel
from hubbub.agents.roles.pipeline import Kind
from hubbub.agents.tools.absence import ToolSource
from hubbub.agents.tools.asking_agents import AskAgent
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.conduct import Conduct
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.tools.ways_out import replying
from hubbub.agents.turn.hooks import Hooks
from hubbub.agents.turn.leasing import Terms
from hubbub.agents.turn.voice import Voice
from hubbub.agents.window import context_rules
from hubbub.client import Client
from hubbub.config.agents import AgentConfig, ModelConfig
from hubbub.config.problems import nearest
from hubbub.errors import ConfigError
from hubbub.protocol.frames import Ready
from hubbub.protocol.turns import Role

__all__ = ["KINDS", "role_brain"]

KINDS: Mapping[str, Kind] = {kind: kind for kind in get_args(Kind)}
"""The kinds of agents that have roles, by what a config calls them."""


@contextlib.asynccontextmanager
async def role_brain(
    config: AgentConfig,
    name: str,
    client: Client,
    inbox: Inbox,
    voice: Voice,
    base_dir: Path,
    models: Mapping[str, ModelConfig],
    template: ConversationTemplate,
    source: ToolSource,
    conduct: Conduct,
    hooks: Sequence[Hooks] = (),
    mods: Sequence[Note] = (),
) -> AsyncIterator[RoleBrain]:
    """The brain of an agent of one of the kinds with roles, for as long as the block runs.

    Raises `ConfigError` when a tool, a model or a file of its prompt does not exist.
    """
    link = Link(voice, inbox)
    more = (AskAgent(link, config.roles.request_timeout), replying(voice))
    kit = ToolKit(config, name, base_dir, conduct=conduct, source=source, more=more)
    memory, prompts = Memory(voice), load_system_prompts(config, name, base_dir)
    briefing = Briefing(prompts, config, client.network, "", mods=mods, memory=memory)

    def tools(ready: Ready) -> Toolbox:
        return kit.toolbox(ready, memory)

    tools(client.ready)  # a wrong name is told before the model's library is imported
    kind = KINDS[config.kind]
    async with _role_models(config, name, models, briefing.scratchpad) as answering:
        yield RoleBrain(
            client, inbox, config, kind, answering, template, briefing, link, tools, hooks
        )


@contextlib.asynccontextmanager
async def _role_models(
    config: AgentConfig, name: str, models: Mapping[str, ModelConfig], scratchpad: bool
) -> AsyncIterator[dict[Role, RoleModel]]:
    chosen = config.role_models
    for role, model in chosen.items():
        if model not in models:
            where = f"agents.{name}.models.{role}" if role in config.models else f"agents.{name}"
            hint = nearest(model, models) or "; add it to `models`"
            raise ConfigError(f"{where}: there is no model {model!r}{hint}")
    from hubbub.agents.models.openai import OpenAIModel

    async with contextlib.AsyncExitStack() as stack:
        made: dict[str, RoleModel] = {}
        for model in dict.fromkeys(chosen.values()):
            endpoint = OpenAIModel(models[model], model)
            stack.push_async_callback(endpoint.close)
            rules = await context_rules(
                config.model_copy(update={"model": model}), name, models[model]
            )
            answers = ThinkingModel(endpoint) if scratchpad else endpoint
            terms = Terms.of(models[model], rules.reserve)
            made[model] = RoleModel(answers, DialectChoice(models[model]), rules, terms)
        yield {role: made[model] for role, model in chosen.items()}
