"""The HTTP side of the hub's port: health, metrics, and the page that people use.

Browsers are told apart from programs by their `Origin`, which must be this very server; and the
`Host` must be an address or a name of this machine, or a page elsewhere could have its own name
point here and talk to the hub as if from the same origin.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Protocol

from websockets.datastructures import Headers
from websockets.http11 import Request, Response

__all__ = ["HttpSide", "Page", "Pages", "refusal"]

TEXT = "text/plain; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


class Page(Protocol):
    """What a request for a page is answered."""

    @property
    def status(self) -> int: ...

    @property
    def headers(self) -> Mapping[str, str]: ...

    @property
    def body(self) -> bytes: ...


class Pages(Protocol):
    """What people see in a browser (`hubbub.web` has it)."""

    def find(self, path: str, headers: Mapping[str, str]) -> Page | None:
        """The answer to a GET of `path`, given the request's headers; None if there is none."""
        ...


class HttpSide:
    """Answers plain requests; `None` lets the WebSocket handshake go on."""

    def __init__(
        self,
        *,
        host: str,
        pages: Pages | None,
        ready: Callable[[], bool],
        metrics: Callable[[], bytes],
    ):
        self._host, self._pages, self._ready, self._metrics = host, pages, ready, metrics

    def respond(self, request: Request) -> Response | None:
        """The response to `request`, or None for a WebSocket handshake that may go on."""
        reason = refusal(request.headers, self._host)
        if reason is not None:
            return _response(HTTPStatus.FORBIDDEN, f"{reason}\n".encode(), TEXT)
        if "websocket" in request.headers.get("Upgrade", "").lower():
            return None
        path = request.path.partition("?")[0]
        if path == "/healthz":
            return _response(HTTPStatus.OK, b"ok\n", TEXT)
        if path == "/readyz":
            ready = self._ready()
            status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
            return _response(status, b"ready\n" if ready else b"stopping\n", TEXT)
        if path == "/metrics":
            return _response(HTTPStatus.OK, self._metrics(), PROMETHEUS)
        page = self._pages.find(path, _plain(request.headers)) if self._pages else None
        if page is not None:
            return _response(HTTPStatus(page.status), page.body, headers=page.headers)
        return _response(HTTPStatus.NOT_FOUND, b"There is nothing here; try /\n", TEXT)


def refusal(headers: Headers, listen_host: str) -> str | None:
    """Why a request must not be served; None if it may."""
    hosts = headers.get_all("Host")
    if len(hosts) != 1 or not _is_ours(hosts[0], listen_host):
        return "Host: open this hub by its address or as localhost"
    origins = headers.get_all("Origin")
    if origins and (len(origins) > 1 or origins[0].partition("://")[2] != hosts[0]):
        return "Origin: pages of other sites may not talk to this hub"
    return None


def _is_ours(host: str, listen_host: str) -> bool:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    name = name.strip("[]").lower()
    if name in ("localhost", listen_host.strip("[]").lower()):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _plain(headers: Headers) -> dict[str, str]:
    """The headers by their usual names; of those that come twice, the last."""
    return {name.title(): value for name, value in headers.raw_items()}


def _response(
    status: HTTPStatus,
    body: bytes,
    content_type: str = TEXT,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """`headers` (those of a page) stand in place of the type, caching and policy of plain text."""
    if headers is None:
        headers = {
            "Content-Type": content_type,
            "Cache-Control": "no-store",
            "Content-Security-Policy": "default-src 'none'",
        }
    made = {
        "Content-Length": str(len(body)),
        "Connection": "close",
        "X-Content-Type-Options": "nosniff",
        **headers,
    }
    return Response(status.value, status.phrase, Headers(made), body)
