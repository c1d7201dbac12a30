"""Builds an agent's toolbox from its config."""

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
        untrusted=settings.untrusted,
    )


_NAME = re.compile(r"`([a-z_]+)`|\b([a-z]+(?:_[a-z]+)+)\b")
"""A tool name in a text; single-word names count only in backticks."""
DELEGATE = "delegate"
_MAX_LISTED = 20
"""Maximum agents listed in the description of `delegate`; if there are more, none is listed."""
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
"""Tools of the hub and the runtime that turns rarely need."""


class ToolKit:
    """The tools of one agent: its own functions, and those that the hub offers per connection.

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
        operator_text: str = "",
        own: Mapping[str, Tool] = MappingProxyType({}),
    ):
        """`more` are runtime tools outside of the config. `source` provides tools that come and go.
        `words` is the text of the operator's prompts: tools named in it are described from the
        start. `own` maps placeholders, which replace files in the config, to their tools.
        """
        self._own: dict[str, Tool] = {}
        names: list[str] = []
        for place in config.tools or ():
            if ":" in place:
                tools = {place: own[place]} if place in own else self._load(config, place, base_dir)
                self._own |= tools
                names += tools
            else:
                names.append(place)
        if config.tools is not None:
            config = config.model_copy(update={"tools": names})
        self._named = {
            config.begin_with,
            *names,
            *(a or b for a, b in _NAME.findall(operator_text)),
        }
        self._config, self._name = config, name
        self._tool_policy, self._source = tool_policy or tool_policy_of(config), source
        self._more = (*more, *_implied_tools(config, base_dir))

    @property
    def own_names(self) -> dict[str, str]:
        """Tool names of the agent's functions, by `file.py:function`."""
        return {place: tool.name for place, tool in self._own.items()}

    def toolbox(self, ready: Ready, caller: HubCaller) -> Toolbox:
        """Combine the tools with the hub's operations. Raises `ConfigError` for unknown names."""
        offered = {o.name: o for o in ready.operations if o.tool and o.permission != "admin"}
        self._check_names(offered)
        others = self._other_agents(ready)
        if DELEGATE in offered and 0 < len(others) <= _MAX_LISTED:
            description = f"{offered[DELEGATE].description} Agents here: {', '.join(others)}."
            offered[DELEGATE] = offered[DELEGATE].model_copy(update={"description": description})
        chosen = self._config.tools if self._config.tools is not None else list(offered)
        provided = {tool.name for tool in self._more}
        provided |= (implied_names(self._config) | ALWAYS) - set(offered)
        tools: list[Tool] = [
            self._own.get(place) or HubTool(offered[place], caller, self._name)
            for place in chosen
            if place not in provided
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
        """The tools that are described only when the model selects them, by group; without those
        that the operator names anywhere.
        """
        named = self._named | ({DELEGATE} if self._other_agents(ready) else set())
        rest = ((g, [n for n in names if n not in named]) for g, names in _GROUPS.items())
        return {group: names for group, names in rest if names}

    def _check_names(self, offered: Mapping[str, OperationInfo]) -> None:
        tools = [KnownTool(tool.name, tool.permission) for tool in self._own.values()]
        tools += [KnownTool(o.name, o.permission, sends_message(o)) for o in offered.values()]
        for alias, name in self._config.aliases.all_names.items():
            if alias in {tool.name for tool in tools} | ALWAYS:
                conflict = f"'{alias}' is both a tool of this agent and an alias of '{name}'"
                raise ConfigError(f"agents.{self._name}.aliases: {conflict}; rename the alias")
        refused = forbidden_names(self._config, tools)
        for problem in wrong_names(self._config, offered, self.own_names, refused):
            raise ConfigError(f"agents.{self._name}.{problem.key}: {problem.message}")

    def _load(self, config: AgentConfig, place: str, base_dir: Path) -> dict[str, Tool]:
        """Load the tools of an entry in the config, by their names in the config."""
        file, _, name = place.rpartition(":")
        every = name == EVERY
        loaded = (
            load_module((base_dir / file).resolve()) if every else load_attribute(place, base_dir)
        )
        try:
            tools = [self._sandbox(config, tool, base_dir) for tool in as_tools(loaded)]
        except TypeError as exc:
            raise ConfigError(f"{place} cannot be a tool: {exc}") from exc
        if not tools:
            raise ConfigError(f"{place} is not a function, and has no `@tool`")
        if len(tools) == 1 and not every:
            return {place: tools[0]}
        return {f"{place}.{tool.name}": tool for tool in tools}

    def _sandbox(
        self, config: AgentConfig, tool: FunctionTool[..., object], base_dir: Path
    ) -> Tool:
        settings = config.tool_settings.get(tool.name)
        sandbox = settings.sandbox if settings is not None else None
        if isinstance(sandbox, SandboxLimits):
            return tool.sandboxed(_limits(sandbox, base_dir))
        if sandbox == "process" or tool.sandbox == "process":
            return tool.sandboxed(_limits(config.sandbox, base_dir))
        return tool


def _implied_tools(config: AgentConfig, base_dir: Path) -> list[Tool]:
    """The tools for the agent's knowledge and skills. Raises `ConfigError`."""
    tools: list[Tool] = []
    knowledge = config.knowledge
    if knowledge.folders:
        folders = [base_dir / folder for folder in knowledge.folders]
        tools.append(SearchKnowledge(KnowledgeBase(folders, knowledge)))
    if config.skills and config.kind == "llm":
        tools.append(LoadSkill(load_skills([base_dir / place for place in config.skills])))
    return tools


def _limits(sandbox: SandboxLimits, base_dir: Path) -> SandboxLimits:
    """Make the paths absolute. Raises `ConfigError` for one that does not exist."""
    if sandbox.read is None:
        return sandbox
    places = [base_dir / place for place in sandbox.read]
    for place in places:
        if not place.exists():
            shown = shown_path(place)
            raise ConfigError(f"sandbox.read: {shown} does not exist: remove or create it")
    return sandbox.model_copy(update={"read": [str(place) for place in places]})
