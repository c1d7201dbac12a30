"""An MCP server in this process that gives a program the network's tools.

Each session has its own key. A connection with that key acts for the turn whose prompt runs in the
session, and fails if none runs. The program starts `relay.py` as its MCP server, which connects to
a socket here, in a folder only this user can enter.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import anyio
from acp.schema import McpServerStdio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    TextContent,
    Tool,
    ToolAnnotations,
    jsonrpc_message_adapter,
)
from pydantic import JsonValue, ValidationError

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.turn.loop import CallResult
from hubbub.interop.acp.progress import SERVER
from hubbub.waiting import cancel

__all__ = ["NetworkCaller", "NetworkTools", "OfferedTool"]

_RELAY = Path(__file__).with_name("relay.py")
_MAX_LINE = 1024 * 1024
"""Bytes of a message from the program's MCP client."""
_NO_TURN = "no turn runs in this session: the network's tools work only during a prompt"


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool offered to the program."""

    spec: ToolSpec
    is_read_only: bool


class NetworkCaller(Protocol):
    """A running prompt: `Prompting`."""

    async def network_call(self, name: str, arguments: dict[str, JsonValue]) -> CallResult: ...


class NetworkTools:
    """A context in which programs can connect. `offered` can change; programs list the tools when
    they open a session."""

    def __init__(self) -> None:
        self.offered: Sequence[OfferedTool] = ()
        self.callers: dict[str, NetworkCaller] = {}
        """The running prompts, by the key of their session."""
        self._keys: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> NetworkTools:
        self._folder = tempfile.TemporaryDirectory(prefix="hubbub-acp-")  # mode 0700
        self._path = Path(self._folder.name) / "mcp"
        self._server = await asyncio.start_unix_server(self._connected, self._path, limit=_MAX_LINE)
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        await cancel(*self._tasks)
        self._folder.cleanup()

    def server(self) -> tuple[str, McpServerStdio]:
        """A new session's key, and the MCP server for it."""
        key = secrets.token_hex(16)
        self._keys.add(key)
        arguments = ["-I", str(_RELAY), str(self._path), key]
        return key, McpServerStdio(name=SERVER, command=sys.executable, args=arguments, env=[])

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            key = (await reader.readline()).decode(errors="replace").strip()
            if key in self._keys:
                await self._run_server(key, reader, writer)
        except (ConnectionError, ValueError):
            pass  # the program disconnected, or sent a line longer than any call needs
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _run_server(
        self, key: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        to_server, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        write, from_server = anyio.create_memory_object_stream[SessionMessage](0)
        server = self._mcp_server(key)

        async def receive() -> None:
            async with to_server:
                while line := await reader.readline():
                    try:
                        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                    except ValidationError as exc:
                        await to_server.send(exc)
                    else:
                        await to_server.send(SessionMessage(message))

        async def send() -> None:
            async with from_server:
                async for item in from_server:
                    text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                    writer.write(text.encode() + b"\n")
                    await writer.drain()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(receive())
                group.create_task(send())
                await server.run(read, write, server.create_initialization_options())
                await write.aclose()
        except* (ConnectionError, ValueError, anyio.BrokenResourceError):
            pass

    def _mcp_server(self, key: str) -> Server[Any]:
        async def list_tools(context: object, params: object) -> ListToolsResult:
            return ListToolsResult(tools=[_listed(tool) for tool in self.offered])

        async def call_tool(context: object, params: CallToolRequestParams) -> CallToolResult:
            caller = self.callers.get(key)
            if caller is None:
                return _result(_NO_TURN, failed=True)
            if not any(tool.spec.name == params.name for tool in self.offered):
                return _result(f"there is no tool {params.name!r}", failed=True)
            result = await caller.network_call(params.name, params.arguments or {})
            return _result(result.result, failed=result.error is not None)

        return Server(SERVER, on_list_tools=list_tools, on_call_tool=call_tool)


def _listed(tool: OfferedTool) -> Tool:
    spec = tool.spec
    annotations = ToolAnnotations(read_only_hint=tool.is_read_only)
    return Tool(
        name=spec.name,
        description=spec.description,
        input_schema=spec.offered,
        annotations=annotations,
    )


def _result(text: str, *, failed: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=failed)
