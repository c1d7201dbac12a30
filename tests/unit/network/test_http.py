from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from hubbub.network.http import HttpSide, refusal

pytestmark = pytest.mark.behaviour("D-7")


def headers(*pairs: tuple[str, str]) -> Headers:
    headers = Headers()
    for name, value in pairs:
        headers[name] = value
    return headers


def test_addresses_localhost_and_the_hubs_own_name_are_accepted_hosts() -> None:
    for host in (
        "127.0.0.1:4820",
        "127.0.0.1",
        "localhost:4820",
        "LOCALHOST",
        "[::1]:4820",
        "192.168.1.7:4820",
        "hub.lan:4820",
        "HUB.lan",
    ):
        assert refusal(headers(("Host", host)), "hub.lan") is None


def test_a_foreign_host_name_is_refused() -> None:
    for host in (
        "example.org",
        "example.org:4820",
        "127.0.0.1.example.org",
        "localhost.example.org:4820",
        "hub.lan.example.org",
        "",
        ":4820",
        "[::1].example.org",
    ):
        reason = refusal(headers(("Host", host)), "hub.lan")
        assert reason is not None
        assert reason.startswith("Host")
        assert "or list the name under `network.hosts`" in reason
    assert refusal(headers(), "hub.lan") is not None
    assert refusal(headers(("Host", "localhost"), ("Host", "localhost")), "hub.lan") is not None


def test_a_foreign_origin_is_refused() -> None:
    for origin in (
        "null",
        "",
        "http://localhost",
        "http://localhost:4821",
        "https://example.org",
        "http://localhost:4820.example.org",
        "http://example.org/localhost:4820",
        "http://localhost:4820/",
        "ftp://localhost:4820",
        "localhost:4820",
        "//localhost:4820",
    ):
        reason = refusal(headers(("Host", "localhost:4820"), ("Origin", origin)), "localhost")
        assert reason is not None
        assert reason.startswith("Origin")
        assert repr(origin) in reason
    host, origin_of_hub = ("Host", "localhost:4820"), ("Origin", "http://localhost:4820")
    assert refusal(headers(host), "localhost") is None, "programs send no origin"
    assert refusal(headers(host, origin_of_hub), "localhost") is None
    assert refusal(headers(host, origin_of_hub, origin_of_hub), "localhost") is not None


NAMED = ("newsroom.example.org", "other.example.org:8443")


def test_a_configured_name_is_accepted_directly_and_behind_a_proxy() -> None:
    cases: list[tuple[str, str]] = [
        ("newsroom.example.org", "https://newsroom.example.org"),
        ("Newsroom.Example.org:4820", "http://newsroom.example.org:4820"),
        ("newsroom.example.org:443", "https://newsroom.example.org"),
        ("newsroom.example.org", "http://newsroom.example.org:80"),
        ("other.example.org", "https://other.example.org:8443"),
        # A proxy that forwards the hub's address as the host.
        ("127.0.0.1:4820", "https://newsroom.example.org"),
        ("127.0.0.1:4820", "https://other.example.org:8443"),
    ]
    for host, origin in cases:
        assert refusal(headers(("Host", host)), "0.0.0.0", NAMED) is None
        assert refusal(headers(("Host", host), ("Origin", origin)), "0.0.0.0", NAMED) is None


def test_a_configured_name_allows_no_other_port_or_site() -> None:
    cases: list[tuple[str, str]] = [
        ("127.0.0.1:4820", "https://newsroom.example.org:8443"),
        ("127.0.0.1:4820", "https://other.example.org"),
        ("127.0.0.1:4820", "https://example.org"),
        ("newsroom.example.org", "https://newsroom.example.org.evil.example"),
        ("newsroom.example.org", "https://newsroom.example.org:8443"),
        ("newsroom.example.org", "ftp://newsroom.example.org"),
    ]
    for host, origin in cases:
        reason = refusal(headers(("Host", host), ("Origin", origin)), "0.0.0.0", NAMED)
        assert reason is not None
        assert "network.hosts" in reason


@dataclass(frozen=True)
class PageFile:
    status: int
    headers: Mapping[str, str]
    body: bytes


class OnePage:
    """A page at `/` that returns the accepted encoding."""

    def find(self, path: str, headers: Mapping[str, str]) -> PageFile | None:
        if path != "/":
            return None
        accepted = headers.get("Accept-Encoding", "nothing")
        return PageFile(200, {"Cache-Control": "no-cache", "X-Asked": accepted}, b"<h1>join</h1>")


async def respond(
    path: str, *, trouble: str = "", method: str = "GET", upgrade: str = "", origin: str = ""
) -> Response | None:
    async def current_trouble() -> str:
        return trouble

    side = HttpSide(
        host="127.0.0.1",
        pages=OnePage(),
        not_ready=current_trouble,
        metrics=lambda: b"hubbub_sessions 0\n",
    )
    sent = headers(("Host", "127.0.0.1:4820"))
    for name, value in (("Upgrade", upgrade), ("Origin", origin)):
        if value:
            sent[name] = value
    return await side.respond(Request(path, sent, method))


OFF = b"the OpenAI API is off: turn it on with `network: {openai: true}`\n"


async def test_only_the_public_paths_are_answered() -> None:
    cases: list[tuple[str, str, int, bytes]] = [
        ("/", "", 200, b"<h1>join</h1>"),
        ("/?from=mail", "", 200, b"<h1>join</h1>"),
        ("/healthz", "", 200, b"ok\n"),
        ("/healthz", "stopping", 200, b"ok\n"),
        ("/readyz", "", 200, b"ready\n"),
        ("/readyz", "stopping", 503, b"stopping\n"),
        ("/metrics", "", 200, b"hubbub_sessions 0\n"),
        ("/admin", "", 404, b"Not found; try /\n"),
        ("/healthz/../metrics", "", 404, b"Not found; try /\n"),
        ("/HEALTHZ", "", 404, b"Not found; try /\n"),
        ("/v1/models", "", 404, OFF),
    ]
    for path, trouble, status, body in cases:
        response = await respond(path, trouble=trouble)
        assert response is not None
        assert (response.status_code, response.body) == (status, body)
        assert response.headers["Content-Length"] == str(len(body))
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        page = path.partition("?")[0] == "/"
        assert response.headers["Cache-Control"] == ("no-cache" if page else "no-store")
        policy = response.headers.get("Content-Security-Policy")
        assert policy == (None if page else "default-src 'none'"), "a page sets its own"
        head = await respond(path, trouble=trouble, method="HEAD")
        assert head is not None
        assert (head.status_code, head.headers, head.body) == (status, response.headers, b"")


async def test_other_protocols_clients_learn_that_their_door_is_off_or_elsewhere() -> None:
    cases = {
        "/v1/chat/completions": OFF,
        "/chat/completions": b"the OpenAI API is at /v1: end the base URL with /v1\n",
        "/mcp/claude": b"MCP is off: turn it on with `network: {mcp: true}`\n",
    }
    for path, body in cases.items():
        response = await respond(path, method="POST")
        assert response is not None
        assert (response.status_code, response.body) == (404, body)


async def test_only_reads_and_handshakes_from_the_hubs_own_pages_are_accepted() -> None:
    response = await respond("/", method="POST")
    assert response is not None
    assert (response.status_code, response.headers["Allow"]) == (405, "GET, HEAD")
    for upgrade in ("websocket", "WebSocket"):
        assert await respond("/anything", upgrade=upgrade) is None
    response = await respond("/", upgrade="websocket", origin="https://example.org")
    assert response is not None
    assert response.status_code == 403
