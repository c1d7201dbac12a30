"""From an agent's config to its toolbox."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from hubbub.agents.knowledge import KnowledgeBase, SearchKnowledge
from hubbub.agents.skills import LoadSkill, load_skills
from hubbub.agents.tools.approval import Approver
from hubbub.agents.tools.base import Tool, ToolSource
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.function import FunctionTool, as_tools
from hubbub.agents.tools.hub import HubCaller, HubTool, sends_message
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.registry import Groups
from hubbub.agents.tools.standard_tools import (
    ASK_HUMAN,
    CHECK,
    DECLINE,
    WAIT_FOR,
    finish_tool,
    standard_tools,
)
from hubbub.agents.tools.tidy_steps import TidySteps
from hubbub.agents.tools.tool_names import (
    ALWAYS,
    KnownTool,
    forbidden_names,
    implied_names,
    wrong_names,
)
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.config.agents import AgentConfig
from hubbub.config.paths import EVERY
from hubbub.config.problems import nearest, shown_path
from hubbub.config.tooling import McpServerConfig, SandboxLimits, ToolConfig
from hubbub.errors import ConfigError
from hubbub.loading import load_attribute, load_module
from hubbub.protocol.frames import Ready
from hubbub.protocol.messages import OperationInfo

__all__ = ["ToolKit", "servers_of", "tool_policy_of"]


def servers_of(
    config: AgentConfig, name: str, servers: Mapping[str, McpServerConfig]
) -> dict[str, McpServerConfig]:
    """The configs of the agent's MCP servers. Raises `ConfigError` for an unknown name."""
    for server in config.mcp:
        if server not in servers:
            hint = nearest(server, servers) or "; add it to `mcp_servers`"
            raise ConfigError(f"agents.{name}.mcp: there is no MCP server {server!r}{hint}")
    return {server: servers[server] for server in config.mcp}


def tool_policy_of(config: AgentConfig, *, approver: Approver | None = None) -> ToolPolicy:
    """The agent's tool policy."""
    return ToolPolicy(
        timeout=config.tool_timeout,
        mode=config.permission_mode,
        disabled=frozenset(config.disabled_tools),
        overrides={tool: _overrides(settings) for tool, settings in config.tool_settings.items()},
        budget=config.result_budget,
        approver=approver,
        select_over=config.select_over,
    )


def _overrides(settings: ToolConfig) -> ToolOverrides:
    return ToolOverrides(
        permission=settings.permission,
        confirm=settings.confirm,
        timeout=settings.timeout,
        budget=settings.result_budget,
        attempts=settings.attempts,
        backoff=settings.backoff,
        outside=settings.outside,
    )


_NAME = re.compile(r"`([a-z_]+)`|\b([a-z]+(?:_[a-z]+)+)\b")
"""A tool name in a text; single-word names count only between backticks."""
DELEGATE = "delegate"
MOST_NAMED = 20
"""Agents that the description of `delegate` may list; if there are more, none is listed."""
_GROUPS: Groups = MappingProxyType(
    {
        "asking": (ASK_HUMAN, DECLINE),
        "channels": (
            "list_channels", "create_channel", "join_channel", "leave_channel", "post_to_channel",
        ),
        "memory": ("remember", "recall", "forget"),
        "others": ("list_participants", DELEGATE, "report"),
        "sending": ("reply", "broadcast_text_message", "send_message"),
        "threads": ("list_threads", "read_thread", "read_message", "list_mentions"),
    }
)  # fmt: skip
"""Tools of the hub and the runtime that few turns need."""


class ToolKit:
    """The tools of one agent: its own functions, and what the hub offers on each connection.

    Raises `ConfigError` for a function that does not exist or cannot be a tool.
    """

    def __init__(
        self,
        config: AgentConfig,
        name: str,
        base_dir: Path,
        *,
        tool_policy: ToolPolicy | None = None,
        source: ToolSource | None = None,
        more: Sequence[Tool] = (),
        words: str = "",
        own: Mapping[str, Tool] = MappingProxyType({}),
    ):
        """`more` are tools of the runtime that the config does not name, `source` has those that
        come and go. `words` are the operator's prompts: tools named in them are described from the
        start. `own` are tools by the placeholders that stand for them in the config, which are no
        files.
        """
        self._own: dict[str, Tool] = {}
        names: list[str] = []
        for place in config.tools or ():
            if ":" in place:
                found = (
                    {place: own[place]} if place in own else self._loaded(config, place, base_dir)
                )
                self._own |= found
                names += found
            else:
                names.append(place)
        if config.tools is not None:
            config = config.model_copy(update={"tools": names})
        self._named = {
            config.begin_with,
            *names,
            *(a or b for a, b in _NAME.findall(words)),
        }
        self._config, self._name = config, name
        self._tool_policy, self._source = tool_policy or tool_policy_of(config), source
        self._more = (*more, *_given(config, base_dir))

    @property
    def own_names(self) -> dict[str, str]:
        """Tool names of the agent's functions, by `file.py:function`."""
        return {place: tool.name for place, tool in self._own.items()}

    def toolbox(self, ready: Ready, caller: HubCaller) -> Toolbox:
        """The tools, given what the hub offers. Raises `ConfigError` for unknown names."""
        offered = {o.name: o for o in ready.operations if o.tool and o.permission != "admin"}
        self._check_names(offered)
        others = self._other_agents(ready)
        if DELEGATE in offered and 0 < len(others) <= MOST_NAMED:
            description = f"{offered[DELEGATE].description} Agents here: {', '.join(others)}."
            offered[DELEGATE] = offered[DELEGATE].model_copy(update={"description": description})
        chosen = self._config.tools if self._config.tools is not None else list(offered)
        given = {tool.name for tool in self._more}
        given |= (implied_names(self._config) | ALWAYS) - set(offered)
        tools: list[Tool] = [
            self._own.get(place) or HubTool(offered[place], caller, self._name)
            for place in chosen
            if place not in given
        ]
        tools += self._more
        always = (*standard_tools(caller), TidySteps(), finish_tool(caller))
        groups = self._groups(ready)
        hidden = {WAIT_FOR, CHECK}
        hidden |= set(groups.pop("asking", ())) if self._config.tools is not None else set()
        try:
            return Toolbox(
                tools,
                self._tool_policy,
                source=self._source,
                always=always,
                groups=groups,
                hidden=hidden,
            )
        except ValueError as exc:
            raise ConfigError(f"agents.{self._name}.tools: {exc}") from exc

    def _other_agents(self, ready: Ready) -> Sequence[str]:
        return [p.id for p in ready.participants if p.kind == "agent" and p.id != self._name]

    def _groups(self, ready: Ready) -> dict[str, Sequence[str]]:
        """The groups of tools that are described once the model picks them, without those that the
        operator names anywhere.
        """
        named = self._named | ({DELEGATE} if self._other_agents(ready) else set())
        rest = ((g, [n for n in names if n not in named]) for g, names in _GROUPS.items())
        return {group: names for group, names in rest if names}

    def _check_names(self, offered: Mapping[str, OperationInfo]) -> None:
        known = [KnownTool(tool.name, tool.permission) for tool in self._own.values()]
        known += [KnownTool(o.name, o.permission, sends_message(o)) for o in offered.values()]
        for alias, meant in self._config.aliases.all_names.items():
            if alias in {tool.name for tool in known} | ALWAYS:
                what = f"'{alias}' is a tool of this agent, and an alias of '{meant}'"
                raise ConfigError(
                    f"agents.{self._name}.aliases: {what}: it means one thing; rename the alias"
                )
        refused = forbidden_names(self._config, known)
        for wrong in wrong_names(self._config, offered, self.own_names, refused):
            raise ConfigError(f"agents.{self._name}.{wrong.key}: {wrong.message}")

    def _loaded(self, config: AgentConfig, place: str, base_dir: Path) -> dict[str, Tool]:
        """The tools at a place of the config, by their names in the config."""
        file, _, name = place.rpartition(":")
        every = name == EVERY
        found = (
            load_module((base_dir / file).resolve()) if every else load_attribute(place, base_dir)
        )
        try:
            tools = [self._confined(config, tool, base_dir) for tool in as_tools(found)]
        except TypeError as exc:
            raise ConfigError(f"{place} cannot be a tool: {exc}") from exc
        if not tools:
            raise ConfigError(f"{place} is no function, and has no `@tool`")
        if len(tools) == 1 and not every:
            return {place: tools[0]}
        return {f"{place}.{tool.name}": tool for tool in tools}

    def _confined(
        self, config: AgentConfig, tool: FunctionTool[..., object], base_dir: Path
    ) -> Tool:
        settings = config.tool_settings.get(tool.name)
        wanted = settings.sandbox if settings is not None else None
        if isinstance(wanted, SandboxLimits):
            return tool.sandboxed(_limits(wanted, base_dir))
        if wanted == "process" or tool.sandbox == "process":
            return tool.sandboxed(_limits(config.sandbox, base_dir))
        return tool


def _given(config: AgentConfig, base_dir: Path) -> list[Tool]:
    """The tools that come with the agent's knowledge and skills. Raises `ConfigError`."""
    tools: list[Tool] = []
    knowledge = config.knowledge
    if knowledge.folders:
        folders = [base_dir / folder for folder in knowledge.folders]
        tools.append(SearchKnowledge(KnowledgeBase(folders, knowledge)))
    if config.skills and config.kind == "llm":
        tools.append(LoadSkill(load_skills([base_dir / place for place in config.skills])))
    return tools


def _limits(sandbox: SandboxLimits, base_dir: Path) -> SandboxLimits:
    """With absolute paths. Raises `ConfigError` for one that does not exist."""
    if sandbox.read is None:
        return sandbox
    places = [base_dir / place for place in sandbox.read]
    for place in places:
        if not place.exists():
            shown = shown_path(place)
            raise ConfigError(f"sandbox.read: there is no {shown}: take it out, or make it")
    return sandbox.model_copy(update={"read": [str(place) for place in places]})
