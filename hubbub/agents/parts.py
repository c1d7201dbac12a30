"""The parts that every agent with models is assembled from, whatever its kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hubbub.agents.inbox import Inbox
from hubbub.agents.program import AgentProgram, PythonObjects
from hubbub.agents.prompt.context import Note
from hubbub.agents.prompt.render import ConversationTemplate
from hubbub.agents.prompt.system import SystemPrompts, load_system_prompts
from hubbub.agents.system_prompt import Memory, SystemPromptBuilder
from hubbub.agents.tools.assembly import ToolKit
from hubbub.agents.tools.base import Tool, ToolSource
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.tool_chooser import ToolChooser
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.hooks import Hooks
from hubbub.agents.turn.outbox import Outbox
from hubbub.client import Client
from hubbub.config.models import AgentConfig, ModelConfig
from hubbub.protocol.frames import Ready

__all__ = ["AgentParts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentParts:
    """Made once per agent, from its config and its connection."""

    config: AgentConfig
    name: str
    base_dir: Path
    """Relative paths in the config are relative to it."""
    models: Mapping[str, ModelConfig]
    client: Client
    inbox: Inbox
    outbox: Outbox
    memory: Memory
    template: ConversationTemplate
    tool_policy: ToolPolicy
    source: ToolSource | None = None
    """Tools that come and go."""
    hooks: Sequence[Hooks] = ()
    mods: Sequence[Note] = ()
    """Descriptions of the hub's mods, for prompts."""
    objects: PythonObjects = field(default_factory=PythonObjects)
    program: AgentProgram | None = None
    chooser: ToolChooser | None = None
    """Chooses among many tools."""

    def prompts(self) -> SystemPrompts:
        """The agent's system prompts. Raises `ConfigError`."""
        own = self.objects
        return load_system_prompts(
            self.config, self.name, self.base_dir, own.builder, own.instruction
        )

    def prompt_builder(self, prompts: SystemPrompts, model: str = "") -> SystemPromptBuilder:
        network, memory = self.client.network, self.memory
        return SystemPromptBuilder(
            prompts, self.config, network, model, mods=self.mods, memory=memory
        )

    def tools(
        self, tool_policy: ToolPolicy, more: Sequence[Tool] = (), words: str = ""
    ) -> Callable[[Ready], Toolbox]:
        """A function that makes the toolbox from what the hub offers. `more` and `words` as for
        `ToolKit`.

        Raises `ConfigError` for a wrong name, before the model's library is imported.
        """
        kit = ToolKit(
            self.config,
            self.name,
            self.base_dir,
            tool_policy=tool_policy,
            source=self.source,
            more=more,
            words=words,
            own=self.objects.tools,
        )

        def toolbox(ready: Ready) -> Toolbox:
            return kit.toolbox(ready, self.memory)

        toolbox(self.client.ready)
        return toolbox
