"""Builds an agent's system message for a turn from the current state of the agent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pydantic import JsonValue

from hubbub.agents.dialects.base import Dialect
from hubbub.agents.inbox import InboxThread, TurnPlan
from hubbub.agents.knowledge.base import SEARCH_KNOWLEDGE, SearchKnowledge
from hubbub.agents.prompt.context import (
    Note,
    ParticipantSummary,
    PromptContext,
    omitted_value,
    quoted_state,
    summarise_participants,
)
from hubbub.agents.prompt.escape import escaped
from hubbub.agents.prompt.render import select_history, shown_id
from hubbub.agents.prompt.system import SystemPrompt, SystemPrompts
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.prompt_client import described_tools
from hubbub.agents.skills import skills_of
from hubbub.agents.tools.hub import HubCaller
from hubbub.agents.tools.results import fit_result
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.agents import AgentConfig
from hubbub.errors import OperationError
from hubbub.logs import get_logger
from hubbub.protocol.frames import Ready
from hubbub.protocol.memory import Recalled
from hubbub.protocol.messages import Message

__all__ = ["Memory", "SystemPromptBuilder", "has_untrusted_content", "prompt_context"]

# The memory of an agent with a model, as its prompts show it.


log = get_logger(__name__)

MEMORY_TOOLS = ("remember", "recall", "forget")
_CHANGING = frozenset({"remember", "forget"})
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Memory:
    """Forwards an agent's calls to the hub, and caches what the agent remembers.

    Nobody else changes an agent's memory, so it is read once per connection, and again after calls
    that change it. Use it as the `HubCaller` of the agent's tools.
    """

    def __init__(self, caller: HubCaller):
        self._caller = caller
        self._changes = 0
        self._known: tuple[object, int, Mapping[str, str]] | None = None

    async def call(
        self, name: str, /, *, cid: str | None = None, cause: str | None = None, **args: JsonValue
    ) -> JsonValue:
        """As the caller's; raises the same errors."""
        try:
            return await self._caller.call(name, cid=cid, cause=cause, **args)
        finally:
            if name in _CHANGING:  # whatever the outcome: a call that timed out may have worked
                self._changes += 1

    async def shown(self, connection: object) -> Mapping[str, str]:
        """What a prompt shows of the memory, by key; `connection` identifies the connection.

        Empty if the hub does not answer: a turn can do without.
        """
        asked = self._changes
        if self._known is not None and self._known[0] is connection and self._known[1] == asked:
            return self._known[2]
        try:
            recalled = Recalled.model_validate(await self._caller.call("recall"))
        except OperationError as exc:
            log.warning("memory cannot be read", reason=str(exc))
            return _NOTHING
        state = quoted_state({entry.key: entry.value for entry in recalled.entries})
        for entry in recalled.entries:
            if entry.long:
                state[entry.key] = omitted_value(entry.key, entry.size)
        self._known = (connection, asked, state)
        return state


@dataclass(slots=True)
class SystemPromptBuilder:
    """Builds the system messages of one agent."""

    prompts: SystemPrompts
    config: AgentConfig
    network: str
    model: str
    """The model's name at its endpoint."""
    mods: Sequence[Note] = ()
    """Descriptions of the hub's mods."""
    memory: Memory | None = None
    """The agent's memory; None: it has none."""
    _cached_participants: tuple[Ready | None, Sequence[ParticipantSummary]] = (None, ())
    """The other participants, cached by the `ready` that lists them: there may be thousands."""

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
        threads: Iterable[InboxThread],
    ) -> SystemPrompt:
        """The system message of a turn. Raises `ConfigError` when a user's template fails."""
        context = await self.context(plan, toolbox, dialect, ready, threads)
        return (await self.prompts.awaited(context)).of(context, plan.thread_id)

    async def context(
        self,
        plan: TurnPlan,
        toolbox: Toolbox,
        dialect: Dialect,
        ready: Ready,
        threads: Iterable[InboxThread],
    ) -> PromptContext:
        """The data that components of the system message may use."""
        me = ready.participant
        thread = shown_id(plan.thread_id, me)
        shown = select_history(threads, plan, me, self.config.history)
        context = prompt_context(self.config, me, self.network, toolbox, dialect)
        return replace(
            context,
            mods=self.mods,
            model=self.model,
            thread=thread,
            threads=list(dict.fromkeys([thread, *shown])),
            participants=self._participants(ready),
            state=await self._state(toolbox, ready),
            knowledge=await self._knowledge(plan, toolbox),
        )

    async def _knowledge(self, plan: TurnPlan, toolbox: Toolbox) -> Sequence[str]:
        """The passages that match the incoming messages, as many as fit."""
        config, entry = self.config.knowledge, toolbox.registry.get(SEARCH_KNOWLEDGE)
        if not config.auto or entry is None or not isinstance(entry.tool, SearchKnowledge):
            return ()
        query, counter = " ".join(m.text for m in plan.incoming), counter_for(self.model)
        shown, room = list[str](), config.auto_tokens
        for hit in await entry.tool.best(query, config.auto):
            source = escaped(f"{hit.file}:{hit.line} {hit.heading}".strip())
            text = escaped(fit_result(hit.text, room, counter))
            passage = f'<passage source="{source}">{text}</passage>'
            shown.append(passage)
            room -= counter.count(passage)
            if room <= 0:
                break
        return shown

    async def _state(self, toolbox: Toolbox, ready: Ready) -> Mapping[str, str]:
        """The agent's memory, if it has a tool for it."""
        if self.memory is None or not any(name in toolbox.registry for name in MEMORY_TOOLS):
            return {}
        return await self.memory.shown(ready)

    def _participants(self, ready: Ready) -> Sequence[ParticipantSummary]:
        if self._cached_participants[0] is not ready:
            self._cached_participants = (
                ready,
                summarise_participants(ready.participants, ready.participant),
            )
        return self._cached_participants[1]


def prompt_context(
    config: AgentConfig, me: str, network: str, toolbox: Toolbox, dialect: Dialect
) -> PromptContext:
    """What components may use that is the same in all turns of the agent `me` with these tools."""
    return PromptContext(
        agent=me,
        network=network,
        tools=described_tools(toolbox.described, dialect, ()),
        permissions={entry.name: entry.permission for entry in toolbox.registry.entries},
        skills=skills_of(toolbox.registry),
        capabilities=config.card.skills,
        permission_mode=config.permission_mode,
        mode=config.mode,
        final_text=config.final_text,
        dialect=dialect.name,
        write_calls=dialect.calls,
    )


def has_untrusted_content(messages: Iterable[Message], passages: bool, toolbox: Toolbox) -> bool:
    """Whether a prompt with these messages, and perhaps passages, has untrusted content."""
    search = toolbox.registry.get(SEARCH_KNOWLEDGE)
    untrusted = passages and search is not None and search.untrusted
    return untrusted or any(message.untrusted for message in messages)
