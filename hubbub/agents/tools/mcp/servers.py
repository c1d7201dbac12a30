"""MCP servers of an agent: started, watched, restarted, and closed with it."""

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
from hubbub.agents.tools.mcp.connection import connect, list_tools
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.agents.tools.schema import LONGEST_NAME, argument_errors, without_titles
from hubbub.config.tooling import McpServerConfig
from hubbub.errors import ConfigError
from hubbub.loading import missing_extra
from hubbub.logs import get_logger
from hubbub.protocol.messages import Permission

if TYPE_CHECKING:
    from anyio import CancelScope
    from mcp import Client
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as Offered


__all__ = ["McpServers", "McpTool", "spec_of", "text_of", "tool_name", "tool_names"]

# Tools and results of an MCP server, as a model reads them.


_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")


def tool_name(server: str, tool: str) -> str:
    """`<server>_<tool>` in accepted characters; a name that is too long ends in a hash."""
    name = _ILLEGAL.sub("_", f"{server}_{tool}")
    return name if len(name) <= LONGEST_NAME else _hashed(name, name)


def tool_names(server: str, tools: Sequence[str]) -> list[str]:
    """The names of a server's tools. If several would be the same, the tool with exactly that name
    keeps it; the others end in a hash.
    """
    plain = [tool_name(server, tool) for tool in tools]
    called: dict[str, set[str]] = {}
    for name, tool in zip(plain, tools, strict=True):
        called.setdefault(name, set()).add(tool)
    return [
        name if len(called[name]) == 1 or name == f"{server}_{tool}" else _hashed(name, tool)
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
    """The text of a result. Other content is only mentioned."""
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
            held = block.resource
            text = getattr(held, "text", None)  # otherwise it is binary
            return text if isinstance(text, str) else f"[resource {held.uri}: cannot be shown here]"


_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
_STEADY_S = 60.0
"""After a connection of at least this length, the next pause is the shortest again."""

log = get_logger(__name__)


class McpTool:
    """A tool of a server."""

    ordered = False
    speaks = False

    def __init__(self, server: McpServer, offered: Offered, name: str):
        """Annotations of the server are hints: a tool without them may change anything."""
        self._server, self._offered = server, offered.name
        hints = offered.annotations
        reads = hints is not None and hints.read_only_hint is True
        self.spec: ToolSpec = spec_of(name, offered)
        self.permission: Permission = "read" if reads else "write"
        self.confirm: Confirm = False
        self.overrides = ToolOverrides(outside=True)
        self.idempotent = reads or (hints is not None and hints.idempotent_hint is True)
        self.timeout: float | None = server.config.timeout

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def absent(self) -> str | None:
        why = self._server.absent
        return None if why is None else f"the MCP server {self._server.name} is not there: {why}"

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Raises `ToolFailed` when the server reports a failure, or is gone."""
        return await self._server.call(self._offered, arguments)


class McpServer:
    """One server. `run` keeps it connected; its tools come and go with the connection."""

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
        """Set after the first attempt to connect, successful or not."""
        self._folder, self._pause, self._doubt_s = folder, pause, doubt_s
        self._client: Client | None = None
        self._stir = asyncio.Event()
        self._ended = self._doubted = False
        self._scope: CancelScope | None = None

    async def run(self) -> None:
        """Run until `stop`."""
        from anyio import CancelScope

        pause = _FIRST_PAUSE
        with CancelScope() as self._scope:
            while True:
                began = time.monotonic()
                why = await self._live()
                if time.monotonic() - began > _STEADY_S:
                    pause = _FIRST_PAUSE
                self._lost(why, pause)
                await self._pause(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def stop(self, task: asyncio.Task[None]) -> None:
        """End `run`, which `task` runs. If the server's program is shutting down, that is
        completed: cancelling the task would leave the program running.
        """
        if self._scope is None:
            task.cancel()
        else:
            self._scope.cancel()

    async def _live(self) -> str:
        """One connection, from start to end; returns why it ended."""
        from anyio import fail_after

        self._ended = self._doubted = False
        self._stir.clear()
        try:
            with fail_after(self.config.timeout) as starting:
                async with connect(self.config, self._folder, self._end, self._left_out) as client:
                    self._offer(await list_tools(client))
                    starting.deadline = math.inf
                    self._client, self.absent = client, None
                    self.tried.set()
                    log.info("MCP server is there", server=self.name, tools=len(self.tools))
                    try:
                        return await self._watch(client)
                    finally:  # at once, since closing it may take a while
                        self._client, self.absent = None, self.absent or _ENDED
        except Exception as exc:  # noqa: BLE001 - servers fail in many ways; all mean: absent
            return _why(exc)

    async def _watch(self, client: Client) -> str:
        """Wait until the connection is over."""
        from anyio import fail_after

        while True:
            await self._stir.wait()
            self._stir.clear()
            if self._ended:
                return _ENDED
            if self._doubted:
                self._doubted = False
                with fail_after(self._doubt_s):
                    self._offer(await list_tools(client))

    def _lost(self, why: str, pause: float) -> None:
        self.absent = why
        self.tried.set()
        log.warning("MCP server is not there", server=self.name, reason=why, retry_in_s=pause)

    # Events during a connection -----------------------------------------------------------------

    def _end(self) -> None:
        self._ended, self._client = True, None
        self.absent = self.absent or _ENDED
        self._stir.set()

    def _doubt(self) -> None:
        """A call got no answer: list the tools as a check, and reconnect if that fails."""
        self._doubted = True
        self._stir.set()

    def _offer(self, offered: Sequence[Offered]) -> None:
        wanted = self.config.tools
        chosen = [tool for tool in offered if wanted is None or tool.name in wanted]
        missing = set(wanted or ()) - {tool.name for tool in chosen}
        if missing:
            log.warning("MCP server lacks tools", server=self.name, tools=sorted(missing))
        tools: dict[str, McpTool] = {}
        for tool, name in zip(chosen, tool_names(self.name, [t.name for t in chosen]), strict=True):
            if name in tools:
                self._left_out(name, "there are two tools with this name")
            elif self._usable(made := McpTool(self, tool, name)):
                tools[name] = made
        self.tools = tuple(tools.values())

    def _usable(self, tool: McpTool) -> bool:
        from hubbub.agents.tools.validation import ArgumentCheck  # a slow import

        try:
            ArgumentCheck(tool.spec.parameters)
        except ValueError as exc:
            self._left_out(tool.name, str(exc))
            return False
        return True

    def _left_out(self, tool: str, why: str) -> None:
        log.warning("MCP tool is left out", server=self.name, tool=tool, reason=_line(why))

    # Calls --------------------------------------------------------------------------------------

    async def call(self, tool: str, arguments: Mapping[str, JsonValue]) -> str:
        """Raises `ToolFailed`."""
        from mcp import MCPError

        client = self._client
        if client is None:
            words = f"the MCP server {self.name} is not there: {self.absent}"
            raise ToolFailed(words, error="tool_absent")
        try:
            result = await client.call_tool(tool, dict(arguments))
        except asyncio.CancelledError:
            self._doubt()
            raise
        except MCPError as exc:
            if client is not self._client:  # its code is ambiguous
                words = f"the MCP server {self.name} ended during the call; {_UNKNOWN}"
                raise ToolFailed(words, error="tool_absent") from exc
            self._doubt()
            raise ToolFailed(exc.message or f"error {exc.code}") from exc
        text = text_of(result)
        if result.is_error:
            raise ToolFailed(text)
        return text


class McpServers:
    """The servers of one agent: a context manager within which their tools come and go."""

    def __init__(
        self,
        configs: Mapping[str, McpServerConfig],
        folder: Path,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
        doubt_s: float = 10.0,
    ):
        """Relative folders are relative to `folder`. `pause` sleeps for so many seconds. A server
        that left a call unanswered is restarted if it does not list its tools within `doubt_s`
        seconds.

        Raises `ConfigError` when there are servers and the package `mcp` is missing.
        """
        if configs and (wrong := missing_extra("mcp")) is not None:
            raise ConfigError(wrong)
        self._servers = [
            McpServer(name, config, folder, pause, doubt_s) for name, config in configs.items()
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._told: set[tuple[str, str]] = set()

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
        """The tools of the connected servers; of two with one name, the first."""
        found: dict[str, Tool] = {}
        for server in self._servers:
            for tool in server.tools if server.absent is None else ():
                if found.setdefault(tool.name, tool) is not tool:
                    self._tell_once(server.name, tool.name)
        return tuple(found.values())

    def _tell_once(self, server: str, tool: str) -> None:
        if (server, tool) not in self._told:
            self._told.add((server, tool))
            why = "a server before it has a tool with this name"
            log.warning("MCP tool is left out", server=server, tool=tool, reason=why)

    def absences(self) -> Mapping[str, str]:
        return {s.name: s.absent for s in self._servers if s.absent is not None}


_ENDED = "it has ended"
_MOST_REASON = 300
_UNKNOWN = "what it does may have taken effect"


def _why(exc: BaseException) -> str:
    """The innermost reason, on one line: the library wraps exceptions in groups."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    if isinstance(exc, TimeoutError):
        return "it did not answer in time"
    if isinstance(exc, ValidationError):
        return f"what it says does not conform to the protocol: {_line(argument_errors(exc))}"
    return _line(f"{type(exc).__name__}: {exc}" if str(exc) else type(exc).__name__)


def _line(text: str) -> str:
    return " ".join(text.split())[:_MOST_REASON]
