"""How an agent elsewhere is asked: its card, and messages to it, by the SDK's client.

It was named by the operator, and is trusted with its token and with nothing else: it is asked where
its card is and nowhere else, redirects are not followed, and what it answers has an end.
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

MOST_BYTES = 8 * 1024 * 1024
"""Of one answer, or of all events of a stream."""
CONNECT_S = 10.0
SILENCE_S = 120.0
"""Seconds in which nothing comes: then the task is looked at by another request."""
BINDINGS = ["JSONRPC", "HTTP+JSON"]


class PeerFailed(Exception):
    """It could not be asked, or what it has answered is not A2A."""


class TaskUnknown(PeerFailed):
    """It refuses what was said, for example since it does not know the task or context any more."""


class Peer:
    """A context, in which the agent can be asked. All methods raise `PeerFailed`."""

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
        """Its card, with the interfaces where it may be asked."""
        path = "" if self._url.path.endswith(".json") else AGENT_CARD_WELL_KNOWN_PATH
        with _failures():
            resolver = A2ACardResolver(self._http, self._config.url, path)
            card = await resolver.get_agent_card()
        places = list(card.supported_interfaces)
        allowed = [place for place in places if self._may_be_asked(place.url)]
        if places and not allowed:
            raise PeerFailed(
                f"its card says that it is asked at {places[0].url[:200]}, which is not at "
                f"{self._url.host}: if that is right, name the host in a2a.hosts"
            )
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(allowed)
        return card

    def _may_be_asked(self, place: str) -> bool:
        try:
            url = httpx.URL(place)
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

    async def _asked(self) -> A2aClient:
        if self._client is None:
            card = await self.card()
            config = ClientConfig(httpx_client=self._http, supported_protocol_bindings=BINDINGS)
            with _failures():
                self._client = ClientFactory(config).create(card)
            self._streams = card.capabilities.streaming
        return self._client

    async def send(self, asked: SendMessageRequest) -> AsyncIterator[StreamResponse]:
        """What becomes of a message, as far as this one answer tells."""
        client = await self._asked()
        with _failures():
            async for event in client.send_message(asked):
                yield event

    async def follow(self, task: str) -> AsyncIterator[StreamResponse]:
        """The task as it is, and what becomes of it where the agent streams."""
        client = await self._asked()
        with _failures():
            now = await client.get_task(GetTaskRequest(id=task))
            yield StreamResponse(task=now)
            if self._streams:
                async for event in client.subscribe(SubscribeToTaskRequest(id=task)):
                    yield event

    async def cancel(self, task: str) -> None:
        """Ask it to stop its work."""
        client = await self._asked()
        with _failures():
            await client.cancel_task(CancelTaskRequest(id=task))


async def probe(config: A2aPeerConfig) -> str:
    """What its card says, as a sentence. Raises `PeerFailed`."""
    async with Peer(config) as peer:
        card = await peer.card()
    how = ", ".join(sorted({place.protocol_binding for place in card.supported_interfaces}))
    streams = "streams" if card.capabilities.streaming else "does not stream"
    return f"{card.name[:100]!r} ({how or 'no interface'}; {streams}): {card.description[:200]}"


@contextmanager
def _failures() -> Iterator[None]:
    """What the SDK and its libraries raise for an answer that is none."""
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
        RecursionError,
    ) as error:
        raise PeerFailed(str(error)[:500] or type(error).__name__) from error


class _Bounded(httpx.AsyncHTTPTransport):
    """Answers that have an end, and come from where they were asked for."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        wrong = None
        if response.is_redirect:
            where = response.headers.get("location", "")[:200]
            wrong = f"it redirects to {where!r}, which is not followed"
        elif response.headers.get("content-encoding", "identity") != "identity":
            wrong = "its answer is compressed, though none was asked for"
        if wrong is not None:
            await response.aclose()
            raise httpx.ReadError(wrong, request=request)
        assert isinstance(response.stream, httpx.AsyncByteStream), "it was asked asynchronously"
        response.stream = _Counted(response.stream, request)
        return response


class _Counted(httpx.AsyncByteStream):
    def __init__(self, stream: httpx.AsyncByteStream, request: httpx.Request):
        self._stream, self._request = stream, request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        got = 0
        async for chunk in self._stream:
            got += len(chunk)
            if got > MOST_BYTES:
                raise httpx.ReadError(
                    f"it answers more than {MOST_BYTES} bytes", request=self._request
                )
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
