"""What a model is told before a turn: from the agent as it stands to its system message."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from hubbub.agents.asking import offered
from hubbub.agents.dialects.base import Dialect
from hubbub.agents.dialects.words import WordDialect
from hubbub.agents.inbox import Thread, TurnPlan
from hubbub.agents.memory import MEMORY_TOOLS, Memory
from hubbub.agents.prompt.context import Companion, Note, PromptContext, companions
from hubbub.agents.prompt.examples import native_calls
from hubbub.agents.prompt.system import SystemPrompt, SystemPrompts
from hubbub.agents.skills.tool import skills_of
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.agents import AgentConfig
from hubbub.protocol import thread_ids
from hubbub.protocol.frames import Ready

__all__ = ["Briefing"]


@dataclass(slots=True)
class Briefing:
    """What stays the same from turn to turn of one agent."""

    prompts: SystemPrompts
    config: AgentConfig
    network: str
    model: str
    """The model's name at its endpoint."""
    mods: Sequence[Note] = ()
    """What extends the hub."""
    memory: Memory | None = None
    """What the agent remembers; None: nothing."""
    _others: tuple[Ready | None, Sequence[Companion]] = (None, ())
    """Who is there besides the agent, by the `ready` that says so: there may be thousands."""

    @property
    def scratchpad(self) -> bool:
        """Whether the model may think in `<scratchpad>` before it acts."""
        return self.prompts.settings.scratchpad

    async def of(
        self,
        plan: TurnPlan,
        toolbox: Toolbox,
        dialect: Dialect,
        ready: Ready,
        threads: Iterable[Thread],
    ) -> SystemPrompt:
        """The system message of a turn. Raises `ConfigError` when a template of the user fails."""
        context = await self.context(plan, toolbox, dialect, ready, threads)
        return self.prompts.of(context, plan.thread_id)

    async def context(
        self,
        plan: TurnPlan,
        toolbox: Toolbox,
        dialect: Dialect,
        ready: Ready,
        threads: Iterable[Thread],
    ) -> PromptContext:
        """What the parts of the system message may look at."""
        me = ready.participant
        shown = islice(threads, self.config.history.threads)
        return PromptContext(
            agent=me,
            network=self.network,
            tools=offered(toolbox, dialect, ()),
            permissions={entry.name: entry.permission for entry in toolbox.registry.entries},
            skills=skills_of(toolbox.registry),
            mods=self.mods,
            capabilities=self.config.card.skills,
            permission_mode=self.config.permission_mode,
            mode=self.config.mode,
            model=self.model,
            dialect=dialect.name,
            write_calls=dialect.calls if isinstance(dialect, WordDialect) else native_calls,
            thread=thread_ids.relative(plan.thread_id, me),
            threads=[thread_ids.relative(thread.id, me) for thread in shown],
            participants=self._companions(ready),
            state=await self._state(toolbox, ready),
        )

    async def _state(self, toolbox: Toolbox, ready: Ready) -> Mapping[str, str]:
        """What the agent remembers, if it has a tool that has to do with it."""
        if self.memory is None or not any(name in toolbox.registry for name in MEMORY_TOOLS):
            return {}
        return await self.memory.shown(ready)

    def _companions(self, ready: Ready) -> Sequence[Companion]:
        if self._others[0] is not ready:
            self._others = (ready, companions(ready.participants, ready.participant))
        return self._others[1]
