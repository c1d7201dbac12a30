"""Errors in the tool names in an agent's config. Pure.

A misspelled name must not leave a tool enabled, and tools that the agent's kind requires must not
be disabled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from hubbub.agents.knowledge import SEARCH_KNOWLEDGE
from hubbub.agents.skills import LOAD_SKILL
from hubbub.agents.tools.ask_agent import ASK_AGENT
from hubbub.agents.tools.policy import Refuse, decide
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.standard_tools import (
    ASK_HUMAN,
    CHECK,
    DECLINE,
    FORK,
    REPLY,
    SHOW_PLAN,
    WAIT_FOR,
)
from hubbub.agents.tools.tidy_steps import TIDY_STEPS
from hubbub.agents.turn.loop import FINISH
from hubbub.config.agents import ROLES_OF, AgentConfig
from hubbub.config.problems import nearest
from hubbub.protocol.messages import Permission

__all__ = ["ALWAYS", "KnownTool", "WrongName", "forbidden_names", "implied_names", "wrong_names"]

ALWAYS = frozenset({FINISH, ASK_HUMAN, DECLINE, SHOW_PLAN, TIDY_STEPS})
"""Tools that every agent with a model has; `tools` may name them."""
_UNTUNED = ALWAYS | {SELECT}


@dataclass(frozen=True, slots=True)
class WrongName:
    """A wrong name below `key` of the agent's section."""

    key: str
    at: int | str | None
    """Its index in that list, or its key in that mapping."""
    message: str


@dataclass(frozen=True, slots=True)
class KnownTool:
    """What is known of a tool before it is created."""

    name: str
    permission: Permission
    speaks: bool = False
    confirm: bool = False


def forbidden_names(config: AgentConfig, tools: Iterable[KnownTool]) -> frozenset[str]:
    """The tools that the agent's permission mode forbids, given its `tool_settings`."""
    settings = config.tool_settings
    permissions = {
        name: tool.permission for name, tool in settings.items() if tool.permission is not None
    }
    tuned = (
        replace(tool, permission=permissions.get(tool.name, tool.permission)) for tool in tools
    )
    mode = config.permission_mode
    return frozenset(tool.name for tool in tuned if isinstance(decide(tool, mode), Refuse))


def implied_names(config: AgentConfig) -> frozenset[str]:
    """The tools that come with sections other than `tools`."""
    given = {SEARCH_KNOWLEDGE} if config.knowledge.folders else set()
    if config.kind == "llm":
        given |= {LOAD_SKILL} if config.skills else set()
        given |= {FORK, WAIT_FOR, CHECK} if config.fork is not None else set()
    return frozenset(given | ({ASK_AGENT, REPLY} if config.kind in ROLES_OF else set()))


def wrong_names(
    config: AgentConfig,
    offered: Collection[str],
    own: Mapping[str, str] | None,
    refused: Collection[str] = (),
) -> Iterator[WrongName]:
    """Errors in `tools`, `disabled_tools`, `tool_settings` and `begin_with`.

    `offered` are the tools of the hub, `own` those of the agent's functions, by `file.py:function`;
    None: not known yet, so any name may be one of them. The same goes for names with the prefix of
    one of the agent's MCP servers. `refused` are those of both that the permission mode forbids:
    see `forbidden_names`.
    """
    common = {*implied_names(config), *ALWAYS}
    yield from _wrong_tools(config, {*offered, *common})
    yield from _twice(config, common, own or {})
    names = None if own is None else {*offered, *common, *own.values()}
    for n, name in enumerate(config.disabled_tools):
        needed = _needed(config, name)
        if needed is not None:
            yield WrongName("disabled_tools", n, f"'{name}' cannot be disabled: {needed}")
        elif _is_unknown(config, name, names):
            yield WrongName("disabled_tools", n, _no_tool(name, names))
    for name in config.tool_settings:
        if name in _UNTUNED:
            message = f"'{name}' is a tool of the runtime: there is nothing to set"
            yield WrongName("tool_settings", name, message)
        elif _is_unknown(config, name, names):
            yield WrongName("tool_settings", name, _no_tool(name, names))
    yield from _wrong_beginning(config, names, _chosen(config, own, common), refused)


def _wrong_tools(config: AgentConfig, names: Collection[str]) -> Iterator[WrongName]:
    for n, name in enumerate(config.tools or ()):
        if ":" in name or name in names:
            continue
        server = _server(config, name)
        if server is None:
            yield WrongName("tools", n, _no_tool(name, names))
        else:
            message = f"'{name}' is a tool of the MCP server {server}, and those come on top of"
            choose = f"`tools`: leave it out, or choose in mcp_servers.{server}.tools"
            yield WrongName("tools", n, f"{message} {choose}")


def _twice(
    config: AgentConfig, common: Collection[str], own: Mapping[str, str]
) -> Iterator[WrongName]:
    """Tools with the same name. A tool that every agent has may be named, but not redefined."""
    taken = {*common, SELECT}
    for n, place in enumerate(config.tools or ()):
        name = own.get(place, place)
        if name in taken and place not in common:
            yield WrongName("tools", n, f"there are two tools called '{name}'")
        taken.add(name)


def _chosen(
    config: AgentConfig, own: Mapping[str, str] | None, common: Collection[str]
) -> Collection[str] | None:
    """The tools that the agent has chosen; None: all, or not known yet."""
    if config.tools is None or own is None:
        return None
    return {*common, *(own.get(place, place) for place in config.tools)}


def _wrong_beginning(
    config: AgentConfig,
    names: Collection[str] | None,
    chosen: Collection[str] | None,
    refused: Collection[str],
) -> Iterator[WrongName]:
    name = config.begin_with
    if name is None or config.kind != "llm":
        return
    if name == FINISH:
        yield WrongName("begin_with", None, "a turn that begins with 'finish' ends at once")
    elif name in config.disabled_tools:
        yield WrongName("begin_with", None, f"'{name}' is disabled by disabled_tools")
    elif _is_unknown(config, name, names):
        yield WrongName("begin_with", None, _no_tool(name, names))
    elif _is_unknown(config, name, chosen):
        yield WrongName("begin_with", None, f"'{name}' is none of this agent's `tools`")
    elif name in refused:
        message = f"'{name}' changes something, which `permission_mode: {config.permission_mode}`"
        yield WrongName("begin_with", None, f"{message} forbids")


def _needed(config: AgentConfig, name: str) -> str | None:
    """Why the agent needs the tool; None: it does not."""
    role = config.kind in ROLES_OF
    if name == FINISH:
        return "it is how a turn ends"
    if name == SELECT:
        return "it is there when there are more tools than `select_over`; raise that instead"
    if name == ASK_HUMAN and config.mode == "interactive" and not role:
        return "the mode interactive asks with it"
    if name in (ASK_HUMAN, REPLY) and role:
        return f"an agent of the kind {config.kind} speaks with it"
    if name == ASK_AGENT and role:
        return "set `roles.targets` to [] for one that hands on no work"
    return None


def _server(config: AgentConfig, name: str) -> str | None:
    """The agent's MCP server whose prefix the name has."""
    return next((server for server in config.mcp if name.startswith(f"{server}_")), None)


def _is_unknown(config: AgentConfig, name: str, names: Collection[str] | None) -> bool:
    return names is not None and name not in names and _server(config, name) is None


def _no_tool(name: str, names: Collection[str] | None) -> str:
    return f"there is no tool '{name}'{nearest(name, names or ())}"
