"""One connection to an MCP server."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

from pydantic import JsonValue, ValidationError

from hubbub.agents.tools.schema import argument_errors
from hubbub.config.tooling import McpServerConfig

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp.types import Tool


__all__ = ["connect", "list_tools"]

# Filtering a server's list of tools. The library accepts a list only as a whole, so invalid tools
# are removed from the incoming message before the library sees it.


_MOST_LEVELS = 100
"""Nesting depth of a tool's schema; no endpoint accepts more."""


def remove_invalid_tools(
    incoming: SessionMessage | Exception, version: str | None, left_out: Callable[[str, str], None]
) -> None:
    """Remove the tools that do not conform to `version` of the protocol from a message; `left_out`
    is called with each name and the reason. Other messages stay unchanged.
    """
    from mcp.types import JSONRPCResponse

    if isinstance(incoming, Exception) or not isinstance(incoming.message, JSONRPCResponse):
        return
    result: dict[str, JsonValue] = incoming.message.result
    tools = result.get("tools")
    if not isinstance(tools, list) or _wrong({**result, "tools": []}, version) is not None:
        return
    kept: list[JsonValue] = []
    for tool in tools:
        why = _TOO_DEEP if _deeper(tool) else _wrong({**result, "tools": [tool]}, version)
        if why is None:
            kept.append(tool)
        else:
            left_out(_name(tool), why)
    incoming.message.result = {**result, "tools": kept}


_TOO_DEEP = f"it is nested too deep (more than {_MOST_LEVELS} levels)"


def _wrong(result: Mapping[str, JsonValue], version: str | None) -> str | None:
    """What is wrong with a list of tools; None: nothing."""
    from mcp.types.methods import validate_server_result

    try:
        validate_server_result("tools/list", version or "2025-11-25", result)
    except ValidationError as exc:
        return argument_errors(exc).removeprefix("tools.0.")
    return None


def _deeper(tool: JsonValue) -> bool:
    level = [tool]
    for _ in range(_MOST_LEVELS):
        level = [inner for value in level for inner in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _name(tool: JsonValue) -> str:
    return str(tool.get("name", "?"))[:100] if isinstance(tool, dict) else "?"


_MOST_PAGES = 100
T = TypeVar("T")


class _WatchedStream(Generic[T]):
    """A stream that passes each message to `look` first, and calls `ended` when reading stops,
    normally or because of an error.
    """

    def __init__(self, stream: ReadStream[T], look: Callable[[T], None], ended: Callable[[], None]):
        self._stream, self._look, self._ended = stream, look, ended

    async def receive(self) -> T:
        return self._looked_at(await self._stream.receive())

    def _looked_at(self, item: T) -> T:
        self._look(item)
        return item

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> _WatchedStream[T]:
        return self

    async def __anext__(self) -> T:
        return self._looked_at(await self._stream.__anext__())

    async def __aenter__(self) -> _WatchedStream[T]:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        self._ended()
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


@asynccontextmanager
async def connect(
    config: McpServerConfig,
    folder: Path,
    ended: Callable[[], None],
    left_out: Callable[[str, str], None],
) -> AsyncIterator[Client]:
    """A client of the server; a server with a `command` runs as long as the context.

    `ended` is called when the connection is over, `left_out` with name and reason for each invalid
    tool. Raises OSError, and whatever else a broken server makes the library raise.
    """
    from mcp import Client

    made: list[Client] = []

    def look(incoming: SessionMessage | Exception) -> None:
        remove_invalid_tools(incoming, made[0].protocol_version if made else None, left_out)

    @asynccontextmanager
    async def watched() -> AsyncIterator[TransportStreams]:
        async with _transport(config, folder) as (read, write):
            yield _WatchedStream(read, look, ended), write

    async with Client(watched(), cache=None) as client:
        made.append(client)
        yield client


async def list_tools(client: Client) -> list[Tool]:
    """All tools of the server."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.list_tools(cursor=cursor, cache_mode="refresh")
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _transport(
    config: McpServerConfig, folder: Path
) -> AbstractAsyncContextManager[TransportStreams]:
    return _program(config, folder) if config.command else _http(config)


@asynccontextmanager
async def _program(config: McpServerConfig, folder: Path) -> AsyncIterator[TransportStreams]:
    from mcp import StdioServerParameters, stdio_client

    assert config.command is not None
    program, *arguments = config.command
    cwd = folder / config.cwd if config.cwd else folder
    server = StdioServerParameters(command=program, args=arguments, env=config.env, cwd=cwd)
    # Its stderr goes to this process's stderr, whatever sys.stderr is here.
    with os.fdopen(2, "w", encoding="utf-8", errors="replace", closefd=False) as errors:
        async with stdio_client(server, errlog=errors) as streams:
            yield streams


@asynccontextmanager
async def _http(config: McpServerConfig) -> AsyncIterator[TransportStreams]:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    assert config.url is not None
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(create_mcp_http_client(dict(config.headers)))
        yield await stack.enter_async_context(streamable_http_client(config.url, http_client=http))
