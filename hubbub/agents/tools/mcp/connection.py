"""One connection to an MCP server."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from pydantic import JsonValue, ValidationError

from hubbub.agents.tools.schema import argument_errors
from hubbub.config.tooling import McpServerConfig

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage
    from mcp.types import Tool


__all__ = ["UNKNOWN_EFFECT", "Observer", "WatchedStream", "connect", "list_tools", "repaired"]

# Filters a server's list of tools. The library accepts or rejects a list as a whole, so invalid
# tools are removed from the incoming message before the library sees it.


_MAX_DEPTH = 100
"""Maximum nesting of a tool's schema; no endpoint accepts more."""


def remove_invalid_tools(
    incoming: SessionMessage, version: str | None, on_skip: Callable[[str, str], None]
) -> None:
    """Remove from a message the tools that do not conform to `version` of the protocol, and call
    `on_skip` with the name and the reason for each. Other messages are unchanged.
    """
    from mcp.types import JSONRPCResponse

    if not isinstance(incoming.message, JSONRPCResponse):
        return
    result: dict[str, JsonValue] = incoming.message.result
    tools = result.get("tools")
    if not isinstance(tools, list) or _violation({**result, "tools": []}, version) is not None:
        return
    valid: list[JsonValue] = []
    for tool in tools:
        problem = (
            _TOO_DEEP if _is_too_deep(tool) else _violation({**result, "tools": [tool]}, version)
        )
        if problem is None:
            valid.append(tool)
        else:
            on_skip(_name(tool), problem)
    incoming.message.result = {**result, "tools": valid}


_TOO_DEEP = f"it is nested too deep (more than {_MAX_DEPTH} levels)"


def _violation(result: Mapping[str, JsonValue], version: str | None) -> str | None:
    """How a list of tools violates the protocol; None if it conforms."""
    from mcp.types.methods import validate_server_result

    try:
        validate_server_result("tools/list", version or "2025-11-25", result)
    except ValidationError as exc:
        return argument_errors(exc).removeprefix("tools.0.")
    return None


def _is_too_deep(tool: JsonValue) -> bool:
    level = [tool]
    for _ in range(_MAX_DEPTH):
        level = [child for value in level for child in _children(value)]
        if not level:
            return False
    return True


def _children(value: JsonValue) -> list[JsonValue]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _name(tool: JsonValue) -> str:
    return str(tool.get("name", "?"))[:100] if isinstance(tool, dict) else "?"


_MAX_PAGES = 100
UNKNOWN_EFFECT = "the call may have taken effect"
T = TypeVar("T")


class WatchedStream(Generic[T]):
    """A stream of what `inspect` makes of each message. Calls `on_end` when reading stops, normally
    or because of an error.
    """

    def __init__(
        self, stream: ReadStream[T], inspect: Callable[[T], T], on_end: Callable[[], None]
    ):
        self._stream, self._inspect, self._on_end = stream, inspect, on_end

    async def receive(self) -> T:
        return self._inspect(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> WatchedStream[T]:
        return self

    async def __anext__(self) -> T:
        return self._inspect(await self._stream.__anext__())

    async def __aenter__(self) -> WatchedStream[T]:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        self._on_end()
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


class Observer(Protocol):
    """Learns what happens on a connection."""

    def on_end(self) -> None:
        """The connection has ended."""

    def on_skip(self, tool: str, reason: str) -> None:
        """The server lists an invalid tool."""

    def on_change(self) -> None:
        """The server says that its tools have changed."""

    def on_stray(self, text: str) -> None:
        """The server sent something other than a message."""


@asynccontextmanager
async def connect(
    config: McpServerConfig, folder: Path, observer: Observer
) -> AsyncIterator[Client]:
    """Connect a client; a server with a `command` runs for the duration of the context.

    Raises OSError, and any error that a broken server causes in the library.
    """
    from mcp import Client

    clients: list[Client] = []

    def inspect(incoming: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(incoming, Exception):
            incoming = repaired(incoming)
        if isinstance(incoming, Exception):
            observer.on_stray(str(_received(incoming)))
        elif getattr(incoming.message, "method", None) == "notifications/tools/list_changed":
            observer.on_change()
        else:
            version = clients[0].protocol_version if clients else None
            remove_invalid_tools(incoming, version, observer.on_skip)
        return incoming

    @asynccontextmanager
    async def watched() -> AsyncIterator[TransportStreams]:
        async with _transport(config, folder) as (read, write):
            yield WatchedStream(read, inspect, observer.on_end), write

    async with Client(watched(), cache=None) as client:
        clients.append(client)
        yield client


def _received(exc: Exception) -> object:
    """What was no message, or the error of reading it."""
    return exc.errors()[0]["input"] if isinstance(exc, ValidationError) else exc


def repaired(exc: Exception) -> SessionMessage | Exception:
    """A message with half of a surrogate pair without it, and any other invalid answer as an error:
    a call whose message is dropped would wait for its timeout.
    """
    from mcp.shared.message import SessionMessage
    from mcp.types import INTERNAL_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter

    message = _received(exc)
    with suppress(ValueError, RecursionError):
        message = json.loads(message) if isinstance(message, str) else message
    if not isinstance(message, dict):
        return exc
    try:
        whole = json.dumps(message, ensure_ascii=False).encode(errors="replace")
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    except ValidationError:
        id_ = message.get("id")
        if "method" in message or not isinstance(id_, int | str):
            return exc
        problem = ErrorData(code=INTERNAL_ERROR, message=f"the answer is invalid; {UNKNOWN_EFFECT}")
        return SessionMessage(JSONRPCError(jsonrpc="2.0", id=id_, error=problem))


async def list_tools(client: Client) -> list[Tool]:
    """All tools of the server."""
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
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
    server = StdioServerParameters(
        command=program,
        args=arguments,
        env=config.env,
        cwd=cwd,
        encoding_error_handler="replace",  # a line that is no message must not end the connection
    )
    logging.getLogger("mcp.client.stdio").disabled = True  # what it logs is reported here
    # Its stderr goes to this process's file descriptor 2, even if sys.stderr is replaced.
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
