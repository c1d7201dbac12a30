"""Starts, watches and restarts an agent's MCP servers, and closes them with the agent."""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import JsonValue, ValidationError

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, Confirm, Tool, ToolFailed
from hubbub.agents.tools.mcp.connection import UNKNOWN_EFFECT, connect, list_tools
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.schema import LONGEST_NAME, argument_errors, without_titles
from hubbub.config.tooling import McpServerConfig
from hubbub.errors import ConfigError
from hubbub.loading import missing_extra
from hubbub.logs import get_logger
from hubbub.protocol.messages import Permission
from hubbub.waiting import first_error

if TYPE_CHECKING:
    from anyio import CancelScope
    from anyio.abc import TaskStatus
    from mcp import Client
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as Offered


__all__ = ["McpServers", "McpTool", "spec_of", "text_of", "tool_name", "tool_names"]

# Presents an MCP server's tools and results to a model.


_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`<server>_<tool>` in legal characters; a long name is cut and ends in a hash."""
    name = _ILLEGAL.sub("_", f"{server}_{tool}")
    return name if len(name) <= LONGEST_NAME else _hashed(name, name)


def tool_names(server: str, tools: Sequence[str]) -> list[str]:
    """The names of a server's tools. On a collision, the tool with exactly that name keeps it; the
    others end in a hash.
    """
    plain = [tool_name(server, tool) for tool in tools]
    by_name: dict[str, set[str]] = {}
    for name, tool in zip(plain, tools, strict=True):
        by_name.setdefault(name, set()).add(tool)
    return [
        name if len(by_name[name]) == 1 or name == f"{server}_{tool}" else _hashed(name, tool)
        for name, tool in zip(plain, tools, strict=True)
    ]


def _hashed(name: str, of: str) -> str:
    digest = sha256(of.encode(errors="surrogatepass")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - 9]}_{digest}"


def spec_of(name: str, tool: Offered) -> ToolSpec:
    """The spec of a server's tool under this name."""
    schema: dict[str, JsonValue] = without_titles(tool.input_schema)
    parameters = {"type": "object", "properties": {}, **schema}
    description = tool.description or tool.title or tool.name
    return ToolSpec(name, description, parameters)


def text_of(result: CallToolResult) -> str:
    """The text of a result, with placeholders for other content."""
    parts = [_part(block) for block in result.content]
    if not parts and result.structured_content is not None:
        return json.dumps(result.structured_content, ensure_ascii=False)
    return "\n".join(parts) or "done"


def _part(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            size = len(block.data) * 3 // 4
            return f"[{block.type}, {block.mime_type}, {size} bytes: cannot be shown here]"
        case "resource_link":
            return f"[resource {block.name}: {block.uri}]"
        case "resource":
            content = block.resource
            text = getattr(content, "text", None)  # otherwise it is binary
            if isinstance(text, str):
                return text
            return f"[resource {content.uri}: cannot be shown here]"


_MIN_PAUSE_S, _MAX_PAUSE_S = 1.0, 60.0
_STABLE_S = 60.0
"""A longer connection resets the pause before the next attempt to `_MIN_PAUSE_S`."""

log = get_logger(__name__)


class McpTool:
    """A tool of a server."""

    ordered = False
    speaks = False

    def __init__(self, server: McpServer, offered: Offered, name: str):
        """The server's annotations are hints: without them a tool counts as a write."""
        self._server, self._offered = server, offered.name
        hints = offered.annotations
        reads = hints is not None and hints.read_only_hint is True
        self.spec: ToolSpec = spec_of(name, offered)
        self.permission: Permission = "read" if reads else "write"
        self.confirm: Confirm = False
        self.overrides = ToolOverrides(untrusted=True)
        self.idempotent = reads or (hints is not None and hints.idempotent_hint is True)
        self.timeout: float | None = server.config.timeout

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def absent(self) -> str | None:
        reason = self._server.absent
        if reason is None:
            return None
        return f"the MCP server {self._server.name} is unavailable: {reason}"

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Raises `ToolFailed` if the server reports a failure, or is unavailable."""
        return await self._server.call(self._offered, arguments)


class McpServer:
    """One server. `run` keeps it connected; its tools exist while it is connected."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        folder: Path,
        pause: Callable[[float], Awaitable[None]],
        doubt_s: float,
    ):
        self.name, self.config = name, config
        self.tools: tuple[McpTool, ...] = ()
        self.absent: str | None = "it has not started yet"
        self.tried = asyncio.Event()
        """Set after the first connection attempt, successful or not."""
        self._folder, self._pause, self._doubt_s = folder, pause, doubt_s
        self._client: Client | None = None
        self._wake_up = asyncio.Event()
        self._is_current = asyncio.Event()
        """Cleared when the server's tools have changed, until they are listed."""
        self._is_current.set()
        self._has_ended = self._is_suspect = self._has_strayed = False
        self._scope: CancelScope | None = None

    async def run(self) -> None:
        """Run until `stop`."""
        from anyio import CancelScope

        pause = _MIN_PAUSE_S
        with CancelScope() as self._scope:
            while True:
                began = time.monotonic()
                reason = await self._connect()
                if time.monotonic() - began > _STABLE_S:
                    pause = _MIN_PAUSE_S
                self._report_absence(reason, pause)
                await self._pause(pause)
                pause = min(pause * 2, _MAX_PAUSE_S)

    def stop(self, task: asyncio.Task[None]) -> None:
        """End `run`, which runs as `task`. Lets a server's program shut down: cancelling the task
        would leave the program running.
        """
        if self._scope is None:
            task.cancel()
        else:
            self._scope.cancel()

    async def _connect(self) -> str:
        """Connect, and serve until the connection ends; returns the reason."""
        from anyio import create_task_group, fail_after, move_on_after

        self._has_ended = self._is_suspect = self._has_strayed = False
        self._wake_up.clear()
        try:
            with fail_after(self.config.timeout) as starting:
                async with (
                    connect(self.config, self._folder, self) as client,
                    create_task_group() as tasks,
                ):
                    with move_on_after(self.config.timeout / 2):
                        await tasks.start(self._listen, client)
                    self._set_tools(await list_tools(client))
                    starting.deadline = math.inf
                    self._client, self.absent = client, None
                    self.tried.set()
                    log.info("MCP server connected", server=self.name, tools=len(self.tools))
                    try:
                        await self._watch(client)
                    finally:  # immediately, since closing the connection can take a while
                        tasks.cancel_scope.cancel()
                        self._client, self.absent = None, self.absent or _ENDED
                        self._is_current.set()
            return _ENDED
        except Exception as exc:  # noqa: BLE001 - any failure makes the server unavailable
            return _reason(exc, self.config.command)

    async def _listen(self, client: Client, *, task_status: TaskStatus[None]) -> None:
        """Subscribe to changes of the tools: servers since protocol 2026-07-28 report them only to
        subscribers. `connect` calls `on_change` for each.
        """
        from mcp import MCPError
        from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost

        is_first = True
        while not self._has_ended:
            try:
                async with client.listen(tools_list_changed=True) as changes:
                    if is_first:
                        task_status.started()
                    else:  # what changed while it was interrupted was not reported
                        self.on_change()
                    is_first = False
                    if not changes.honored.tools_list_changed:
                        break
                    async for _ in changes:
                        pass
            except (ListenNotSupportedError, MCPError):
                break
            except SubscriptionLost:
                if is_first:
                    break
            if not self._has_ended:
                await self._pause(_MIN_PAUSE_S)
        if is_first:
            task_status.started()

    async def _watch(self, client: Client) -> None:
        """Wait until the connection ends."""
        from anyio import fail_after

        while True:
            await self._wake_up.wait()
            self._wake_up.clear()
            if self._has_ended:
                return
            if self._is_suspect:
                self._is_suspect = False
                with fail_after(self._doubt_s):
                    self._set_tools(await list_tools(client))
                if not self._is_suspect:
                    self._is_current.set()

    def _report_absence(self, reason: str, pause: float) -> None:
        self.absent = reason
        self.tried.set()
        log.warning("MCP server unavailable", server=self.name, reason=reason, retry_in_s=pause)

    # Events during a connection -----------------------------------------------------------------

    def on_end(self) -> None:
        self._has_ended, self._client = True, None
        self.absent = self.absent or _ENDED
        self._wake_up.set()

    def on_change(self) -> None:
        self._is_current.clear()
        self._suspect()

    def on_stray(self, text: str) -> None:
        if not self._has_strayed:  # a program that prints to stdout does so often
            self._has_strayed = True
            log.warning("MCP server sent what is no message", server=self.name, text=_line(text))

    def on_skip(self, tool: str, reason: str) -> None:
        log.warning("MCP tool skipped", server=self.name, tool=tool, reason=_line(reason))

    def _suspect(self) -> None:
        """After an unanswered call or a change: list the server's tools, and reconnect if that
        fails.
        """
        self._is_suspect = True
        self._wake_up.set()

    def _set_tools(self, offered: Sequence[Offered]) -> None:
        selected = self.config.tools
        chosen = [tool for tool in offered if selected is None or tool.name in selected]
        missing = set(selected or ()) - {tool.name for tool in chosen}
        if missing:
            log.warning("MCP server lacks tools", server=self.name, tools=sorted(missing))
        tools: dict[str, McpTool] = {}
        for tool, name in zip(chosen, tool_names(self.name, [t.name for t in chosen]), strict=True):
            if name in tools:
                self.on_skip(name, "there are two tools with this name")
            elif self._is_usable(mcp_tool := McpTool(self, tool, name)):
                tools[name] = mcp_tool
        self.tools = tuple(tools.values())

    def _is_usable(self, tool: McpTool) -> bool:
        from hubbub.agents.tools.validation import ArgumentCheck  # slow to import

        try:
            ArgumentCheck(tool.spec.parameters)
        except ValueError as exc:
            self.on_skip(tool.name, str(exc))
            return False
        return True

    # Calls --------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Raises `ToolFailed`."""
        from mcp import MCPError

        client = self._client
        if client is None:
            message = f"the MCP server {self.name} is unavailable: {self.absent}"
            raise ToolFailed(message, error="tool_absent")
        try:
            result = await client.call_tool(tool, dict(arguments))
            await self._is_current.wait()  # the next turn has the tools that the call added
        except asyncio.CancelledError:
            self._suspect()
            raise
        except MCPError as exc:
            if client is not self._client:  # the error's code does not show this
                message = f"the MCP server {self.name} ended during the call; {UNKNOWN_EFFECT}"
                raise ToolFailed(message, error="tool_absent") from exc
            self._suspect()
            raise ToolFailed(exc.message or f"error {exc.code}") from exc
        except (ValidationError, RuntimeError) as exc:  # what the library raises for such a result
            reason = argument_errors(exc) if isinstance(exc, ValidationError) else str(exc)
            raise ToolFailed(f"the result is invalid: {_line(reason)}; {UNKNOWN_EFFECT}") from exc
        text = text_of(result)
        if result.is_error:
            raise ToolFailed(text)
        return text


class McpServers:
    """The servers of one agent, running within this context manager."""

    def __init__(
        self,
        configs: Mapping[str, McpServerConfig],
        folder: Path,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        doubt_s: float = 10.0,
    ):
        """Working directories are relative to `folder`. `pause` sleeps for the given seconds. After
        an unanswered call, a server is restarted unless it lists its tools within `doubt_s`
        seconds.

        Raises `ConfigError` if there are servers and the package `mcp` is missing.
        """
        if configs and (problem := missing_extra("mcp")) is not None:
            raise ConfigError(problem)
        self._servers = [
            McpServer(name, config, folder, pause, doubt_s) for name, config in configs.items()
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._reported: set[tuple[str, str]] = set()

    async def __aenter__(self) -> McpServers:
        """Start all servers, and wait until each is connected or has failed once."""
        self._tasks = [
            asyncio.create_task(server.run(), name=f"mcp {server.name}") for server in self._servers
        ]
        try:
            for server in self._servers:
                await server.tried.wait()
        except BaseException:
            await self._stop()
            raise
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stop()

    async def _stop(self) -> None:
        for server, task in zip(self._servers, self._tasks, strict=True):
            server.stop(task)
        if self._tasks:
            await asyncio.wait(self._tasks)

    def tools(self) -> Sequence[Tool]:
        """The tools of the connected servers; on a name collision, the first server's."""
        tools: dict[str, Tool] = {}
        for server in self._servers:
            for tool in server.tools if server.absent is None else ():
                if tools.setdefault(tool.name, tool) is not tool:
                    self._report_once(server.name, tool.name)
        return tuple(tools.values())

    def _report_once(self, server: str, tool: str) -> None:
        if (server, tool) not in self._reported:
            self._reported.add((server, tool))
            reason = "an earlier server has a tool with this name"
            log.warning("MCP tool skipped", server=server, tool=tool, reason=reason)

    def absences(self) -> Mapping[str, str]:
        """The reason by name of each unavailable server."""
        return {s.name: s.absent for s in self._servers if s.absent is not None}


_ENDED = "it has ended"
_MAX_REASON = 300


def _reason(exc: BaseException, command: Sequence[str] | None) -> str:
    """The innermost cause, on one line: the library wraps exceptions in groups."""
    exc = first_error(exc)
    if isinstance(exc, TimeoutError):
        return "it did not answer in time"
    if isinstance(exc, FileNotFoundError | PermissionError) and command:
        return _line(f"{command[0]} cannot be started: {exc.strerror}")
    if isinstance(exc, ValidationError):
        return f"its messages do not conform to the protocol: {_line(argument_errors(exc))}"
    return _line(f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MAX_REASON]
