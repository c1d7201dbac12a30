"""The HTTP side of the hub's port: health, metrics, and the web page.

Browsers send an `Origin`, which must be this server. The `Host` must be an address or a name of
this hub, or another site could point its own name here and talk to the hub as if from the same
origin (DNS rebinding). Accepted names are the listen address, `localhost` and those in the config;
behind a proxy those in the config are also accepted origins.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Protocol

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

__all__ = ["HttpResponse", "HttpSide", "Pages", "foreign", "is_upgrade", "refusal"]

TEXT = "text/plain; charset=utf-8"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
"""Schemes of web pages."""
_SHOWN = 100
"""Characters of a wrong header that the error quotes."""
_DOORS = {
    "/v1": "the OpenAI API is off: turn it on with `network: {openai: true}`",
    "/mcp": "MCP is off: turn it on with `network: {mcp: true}`",
    "/a2a": "A2A is off: turn it on with `network: {a2a: {agents: [NAME]}}`",
    "/.well-known": "A2A is off: turn it on with `network: {a2a: {agents: [NAME]}}`",
    "/models": "the OpenAI API is at /v1: end the base URL with /v1",
    "/chat": "the OpenAI API is at /v1: end the base URL with /v1",
    "/responses": "the OpenAI API is at /v1: end the base URL with /v1",
}
"""Errors for paths of other protocols by their first part; requests to an open door do not get
here."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class HttpResponse(Protocol):
    """The response to a request for a page."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


class Pages(Protocol):
    """The web page's files (implemented by `hubbub.web`)."""

    def find(self, path: str, headers: Mapping[str, str]) -> HttpResponse | None:
        """The response to a GET of `path` with these request headers; None if there is none."""
        ...


class HttpSide:
    """Answers plain HTTP requests; `None` continues a WebSocket handshake."""

    def __init__(
        self,
        *,
        host: str,
        pages: Pages | None,
        not_ready: Callable[[], Awaitable[str]],
        metrics: Callable[[], bytes],
        names: Sequence[str] = (),
    ):
        self._host, self._pages, self._metrics = host, pages, metrics
        self._not_ready, self._names = not_ready, names

    async def respond(self, request: Request) -> Response | None:
        """The response to `request`, or None for an acceptable WebSocket handshake."""
        reason = refusal(request.headers, self._host, self._names)
        if reason is not None:
            return _response(HTTPStatus.FORBIDDEN, f"{reason}\n".encode(), TEXT)
        if is_upgrade(request.headers):
            return None
        door = _DOORS.get("/" + request.path[1:].partition("/")[0].partition("?")[0])
        method = getattr(request, "method", "GET")  # websockets 16 accepts nothing else
        if method not in ("GET", "HEAD") and door is None:
            response = _response(HTTPStatus.METHOD_NOT_ALLOWED, b"Only GET and HEAD\n", TEXT)
            response.headers["Allow"] = "GET, HEAD"
            return response
        if door is not None:
            response = _response(HTTPStatus.NOT_FOUND, f"{door}\n".encode(), TEXT)
        else:
            response = await self._answer(request)
        if method == "HEAD":
            response.body = b""  # its length stays in the headers
        return response

    async def _answer(self, request: Request) -> Response:
        path = request.path.partition("?")[0]
        if path == "/healthz":
            return _response(HTTPStatus.OK, b"ok\n", TEXT)
        if path == "/readyz":
            reason = await self._not_ready()
            status = HTTPStatus.SERVICE_UNAVAILABLE if reason else HTTPStatus.OK
            return _response(status, f"{reason or 'ready'}\n".encode(), TEXT)
        if path == "/metrics":
            return _response(HTTPStatus.OK, self._metrics(), PROMETHEUS)
        page = self._pages.find(path, _plain(request.headers)) if self._pages else None
        if page is not None:
            return _response(HTTPStatus(page.status), page.body, headers=page.headers)
        return _response(HTTPStatus.NOT_FOUND, b"Not found; try /\n", TEXT)


def is_upgrade(headers: Headers) -> bool:
    """Whether a request begins a WebSocket."""
    return any("websocket" in value.lower() for value in headers.get_all("Upgrade"))


def refusal(headers: Headers, listen_host: str, names: Sequence[str] = ()) -> str | None:
    """Why a request must not be served, or None. `names` are `network.hosts`."""
    hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
    if len(hosts) != 1 or len(origins) > 1:
        return "Host: send exactly one, and at most one Origin"
    return foreign(hosts[0], origins[0] if origins else None, listen_host, names)


def foreign(
    host: str, origin: str | None, listen_host: str, names: Sequence[str] = ()
) -> str | None:
    """As `refusal`, for given header values."""
    if not _is_ours(host, listen_host, names):
        return (
            f"Host: {host[:_SHOWN]!r} is not a name of this hub; open it by its IP address or as "
            "localhost, or list the name under `network.hosts` in its config"
        )
    if origin is not None and not _is_own_page(origin, host, names):
        return (
            f"Origin: pages of {origin[:_SHOWN]!r} are not allowed; if that is this hub's "
            "own name behind a proxy, list it under `network.hosts` in its config"
        )
    return None


def _is_ours(host: str, listen_host: str, names: Sequence[str]) -> bool:
    name = _without_port(host)
    if name in ("localhost", listen_host.strip("[]").lower(), *map(_without_port, names)):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return (name if port.isdigit() else host).strip("[]").lower()


def _is_own_page(origin: str, host: str, names: Sequence[str]) -> bool:
    """Whether `origin` is this hub, by the requested host or a configured name."""
    scheme, _, place = origin.lower().partition("://")
    port = _DEFAULT_PORTS.get(scheme)
    if port is None:
        return False
    return place.removesuffix(port) in (own.lower().removesuffix(port) for own in (host, *names))


def _plain(headers: Headers) -> dict[str, str]:
    """The headers by their canonical names; the last one wins if repeated."""
    return {name.title(): value for name, value in headers.raw_items()}


def _response(
    status: HTTPStatus,
    body: bytes,
    content_type: str = TEXT,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """`headers`, for pages, replace the type, caching and policy of plain text."""
    if headers is None:
        headers = {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'",
        }
    all_headers = {
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Content-Type-Options": "nosniff",
        **headers,
    }
    return Response(status.value, status.phrase, Headers(all_headers), body)
