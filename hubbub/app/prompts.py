"""The prompts of a network's agents as in a turn, without running anything."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self

from pydantic import JsonValue

from hubbub.agents.fork import ForkTool
from hubbub.agents.llm_agent import resolve_agent
from hubbub.agents.program import PythonObjects
from hubbub.agents.prompt.context import Note, PromptContext, summarise_participants
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.prompt.system import (
    SystemPrompts,
    load_system_prompts,
    template_variables,
)
from hubbub.agents.prompt.versions import PromptLibrary, PromptTemplate
from hubbub.agents.prompt_client import DIALECTS
from hubbub.agents.skills import load_skills
from hubbub.agents.system_prompt import prompt_context
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.loader import LoadedConfig
from hubbub.config.models import AgentConfig, NetworkFile
from hubbub.errors import ConfigError
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import OperationInfo, Participant

__all__ = [
    "AgentPrompt",
    "agent_prompts",
    "check_prompts",
    "check_skills",
    "libraries",
    "library_with",
    "mod_notes",
    "operations",
]


def mod_notes(entries: Sequence[str | Mapping[str, object]]) -> tuple[Note, ...]:
    """The mods of a config for prompts: name, and the first line of their docs."""
    names = [entry if isinstance(entry, str) else next(iter(entry), "") for entry in entries]
    if not names:
        return ()
    from hubbub.mods.loader import docs_of, find_mod  # imports the mods

    kinds = [find_mod(name).kind for name in names if name]
    return tuple(Note(kind.name, docs_of(kind)) for kind in kinds)


def operations(file: NetworkFile) -> tuple[OperationInfo, ...]:
    """The operations that the config's hub offers. Raises `UserError` for unknown mods."""
    from hubbub.mods.loader import operations_of
    from hubbub.network.operations import CORE_OPERATIONS

    return tuple(operation.info() for operation in (*CORE_OPERATIONS, *operations_of(file)))


_WITHOUT_PROMPT = ("python", "program")


@dataclass(frozen=True)
class AgentPrompt:
    """The prompt of one agent of a config."""

    loaded: LoadedConfig
    name: str
    config: AgentConfig
    prompts: SystemPrompts
    objects: PythonObjects

    @classmethod
    def of(cls, loaded: LoadedConfig, name: str, config: AgentConfig) -> Self:
        """The prompt of an agent with this section. Raises `ConfigError` for problems in its
        files."""
        folder = loaded.path.parent
        agent = resolve_agent(config, name, folder, loaded.file.models)
        own = agent.objects
        prompts = load_system_prompts(agent.config, name, folder, own.builder, own.instruction)
        return cls(loaded, name, agent.config, prompts, agent.objects)

    @cached_property
    def toolbox(self) -> Toolbox:
        """The agent's tools, which cannot be run here. Does not include those of MCP servers, which
        are known only when the servers run.

        Raises `ConfigError` for unknown tools.
        """
        fork = self.config.fork if self.config.kind == "llm" else None
        more = [ForkTool(fork)] if fork is not None else []
        text = self.prompts.operator_text
        folder, own = self.loaded.path.parent, self.objects.tools
        kit = ToolKit(self.config, self.name, folder, more=more, operator_text=text, own=own)
        return kit.toolbox(self.ready, _UnreachableHub())

    @cached_property
    def ready(self) -> Ready:
        """The `ready` that the hub would send the agent."""
        return Ready(
            participant=self.name,
            kind="agent",
            resumed=False,
            head=0,
            cursor=0,
            participants=tuple(_participants(self.loaded.file)),
            operations=operations(self.loaded.file),
        )

    @cached_property
    def mods(self) -> tuple[Note, ...]:
        """The network's mods for the prompt."""
        return mod_notes(self.loaded.file.mods)

    def context(self, thread: str) -> PromptContext:
        """A turn in this thread (canonical id), with all participants of the config present."""
        file = self.loaded.file
        model = file.models.get(self.config.model)
        dialect = DIALECTS[(model.dialect if model else None) or "native"]
        context = prompt_context(self.config, self.name, file.network.name, self.toolbox, dialect)
        return replace(
            context,
            instruction=self.config.instruction,
            mods=self.mods,
            model=model.model if model else self.config.model,
            thread=thread_ids.relative(thread, self.name),
            threads=(thread_ids.relative(thread, self.name),),
            participants=summarise_participants(self.ready.participants, self.name),
        )

    def awaited(self, context: PromptContext) -> SystemPrompts:
        """The parts of this turn's system message with `async` ones awaited; in another OS thread,
        since this one may be running a loop."""
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, self.prompts.awaited(context)).result()

    def thread(self) -> str:
        """The direct thread with the config's first person, or with `ann`."""
        return thread_ids.direct([self.name, next(iter(self.loaded.file.humans), "ann")])

    def render(self, template: PromptTemplate) -> str:
        """A version of the agent's prompt with the agent's variables."""
        context = self.context(self.thread())
        return template.render(template_variables(context, self.prompts.settings))

    @property
    def library(self) -> PromptLibrary:
        """The agent's versioned prompts."""
        return PromptLibrary(self.loaded.path.parent / self.prompts.settings.folder)


def agent_prompts(loaded: LoadedConfig) -> dict[str, AgentPrompt]:
    """The prompts of all agents with models, by agent. Raises `ConfigError`."""
    return {
        name: AgentPrompt.of(loaded, name, loaded.file.agent(name))
        for name, agent in loaded.file.agents.items()
        if agent.kind not in _WITHOUT_PROMPT
    }


def check_prompts(loaded: LoadedConfig) -> list[ConfigError]:
    """Problems with the prompts of agents: files, versions, variables, templates."""
    problems: list[ConfigError] = []
    for name, agent in loaded.file.agents.items():
        try:
            if agent.kind not in _WITHOUT_PROMPT:
                load_system_prompts(agent, name, loaded.path.parent)
            if agent.template is not None:
                ConversationTemplate.load(loaded.path.parent / agent.template)
        except ConfigError as error:
            here = ("agents", name, "prompt")
            problems.append(error if error.path else loaded.problem(here, error.message))
    return problems


def check_skills(loaded: LoadedConfig) -> list[ConfigError]:
    """Problems with the skill files of agents."""
    problems: list[ConfigError] = []
    for agent in loaded.file.agents.values():
        if agent.kind == "llm" and agent.skills:
            try:
                load_skills([loaded.path.parent / place for place in agent.skills])
            except ConfigError as error:
                problems.append(error)
    return problems


def libraries(loaded: LoadedConfig) -> dict[Path, PromptLibrary]:
    """The libraries of versioned prompts in a config, including `prompts` next to it."""
    settings = [agent.prompt for agent in loaded.file.agents.values() if agent.prompt]
    folders = ["prompts", *(prompt.folder for prompt in settings)]
    base = loaded.path.parent
    return {base / folder: PromptLibrary(base / folder) for folder in folders}


def library_with(libraries: Iterable[PromptLibrary], name: str) -> PromptLibrary:
    """The library that has the prompt; the first one if none does."""
    candidates = list(libraries)
    return next((library for library in candidates if library.versions(name)), candidates[0])


def _participants(file: NetworkFile) -> list[Participant]:
    agents = [
        Participant(id=name, kind="agent", present=True, card=agent.card)
        for name, agent in file.agents.items()
    ]
    humans = [
        Participant(id=name, kind="human", present=True, card=human.card)
        for name, human in file.humans.items()
    ]
    return agents + humans


class _UnreachableHub:
    """Replaces the hub for tools that are only described."""

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        raise RuntimeError(f"{name} is only described here, and cannot be called ({cid}, {cause})")
