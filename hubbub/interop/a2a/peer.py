"""The client for a remote agent: its card, and messages to it, with the SDK's client.

The operator chose the agent, which is trusted with its token and nothing else: requests go only to
the host of its card, redirects are not followed, and responses are limited in size.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client import Client as A2aClient
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
)
from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
from a2a.utils.errors import A2AError, InvalidParamsError, TaskNotFoundError
from google.protobuf.json_format import ParseError

from hubbub.config.agents import A2aPeerConfig

__all__ = ["Peer", "PeerFailed", "TaskUnknown", "probe"]

MAX_BYTES = 8 * 1024 * 1024
"""Size of one response, or of all events of a stream."""
CONNECT_S = 10.0
SILENCE_S = 120.0
"""Seconds without data until a request fails; the task is then read with another request."""
BINDINGS = ["JSONRPC", "HTTP+JSON"]


class PeerFailed(Exception):
    """The agent could not be reached, or its response is not A2A."""


class TaskUnknown(PeerFailed):
    """The agent refuses the request, for example because it no longer has the task or context."""


class Peer:
    """A context in which the remote agent can be called. All methods raise `PeerFailed`."""

    def __init__(self, config: A2aPeerConfig):
        self._config, self._url = config, httpx.URL(config.url)
        self._client: A2aClient | None = None
        self._streams = False

    async def __aenter__(self) -> Peer:
        headers = {"accept-encoding": "identity", **self._config.headers}
        if self._config.token:
            headers["authorization"] = f"Bearer {self._config.token}"
        timeout = httpx.Timeout(SILENCE_S, connect=CONNECT_S)
        self._http = httpx.AsyncClient(transport=_Bounded(), headers=headers, timeout=timeout)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.aclose()

    async def card(self) -> AgentCard:
        """The agent's card, with only the interfaces that may be called."""
        path = "" if self._url.path.endswith(".json") else AGENT_CARD_WELL_KNOWN_PATH
        with _failures():
            resolver = A2ACardResolver(self._http, self._config.url, path)
            card = await resolver.get_agent_card()
        interfaces = list(card.supported_interfaces)
        allowed = [interface for interface in interfaces if self._is_allowed(interface.url)]
        if interfaces and not allowed:
            raise PeerFailed(
                f"its card has the address {interfaces[0].url[:200]}, which is not at "
                f"{self._url.host}: if that is right, name the host in a2a.hosts"
            )
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(allowed)
        return card

    def _is_allowed(self, address: str) -> bool:
        try:
            url = httpx.URL(address)
        except httpx.InvalidURL:
            return False
        if url.scheme not in ("http", "https"):
            return False
        same = (url.scheme, url.host, url.port) == (
            self._url.scheme,
            self._url.host,
            self._url.port,
        )
        return same or url.host in self._config.hosts

    async def _connected(self) -> A2aClient:
        if self._client is None:
            card = await self.card()
            config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=BINDINGS)
            with _failures():
                self._client = ClientFactory(config).create(card)
            self._streams = card.capabilities.streaming
        return self._client

    async def send(self, request: SendMessageRequest) -> AsyncIterator[StreamResponse]:
        """Send a message, and yield the events of the response."""
        client = await self._connected()
        with _failures():
            async for event in client.send_message(request):
                yield event

    async def follow(self, task: str) -> AsyncIterator[StreamResponse]:
        """The task's current state, then its events if the agent streams."""
        client = await self._connected()
        with _failures():
            yield StreamResponse(task=await client.get_task(GetTaskRequest(id=task)))
            if self._streams:
                async for event in client.subscribe(SubscribeToTaskRequest(id=task)):
                    yield event

    async def cancel(self, task: str) -> None:
        """Ask the agent to stop working on a task."""
        client = await self._connected()
        with _failures():
            await client.cancel_task(CancelTaskRequest(id=task))


async def probe(config: A2aPeerConfig) -> str:
    """The agent's card as a sentence. Raises `PeerFailed`."""
    async with Peer(config) as peer:
        card = await peer.card()
    bindings = ", ".join(sorted({each.protocol_binding for each in card.supported_interfaces}))
    streams = "streams" if card.capabilities.streaming else "does not stream"
    return (
        f"{card.name[:100]!r} ({bindings or 'no interface'}; {streams}): {card.description[:200]}"
    )


@contextmanager
def _failures() -> Iterator[None]:
    """Convert exceptions of the SDK and its libraries to `PeerFailed`."""
    try:
        yield
    except (TaskNotFoundError, InvalidParamsError) as error:
        raise TaskUnknown(str(error)[:500]) from error
    except (
        A2AError,
        httpx.HTTPError,
        httpx.InvalidURL,
        httpx.StreamError,
        ParseError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        what, _, _ = str(error).partition("\nFor more information check: ")  # httpx, of a status
        raise PeerFailed(what[:500] or type(error).__name__) from error


class _Bounded(httpx.AsyncHTTPTransport):
    """Limits the size of responses and refuses redirects."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        error = None
        if response.is_redirect:
            location = response.headers.get("location", "")[:200]
            error = f"it redirects to {location!r}, which is not followed"
        elif response.headers.get("content-encoding", "identity") != "identity":
            error = "its response is compressed without being asked to"
        if error is not None:
            await response.aclose()
            raise httpx.ReadError(error, request=request)
        assert isinstance(response.stream, httpx.AsyncByteStream), "the request was asynchronous"
        response.stream = _Counted(response.stream, request)
        return response


class _Counted(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, request: httpx.Request):
        self._stream, self._request = stream, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_BYTES:
                raise httpx.ReadError(
                    f"its response has more than {MAX_BYTES} bytes", request=self._request
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
