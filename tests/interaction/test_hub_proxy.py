"""The hub behind a real TLS proxy, configured as docs/how-to/use-tokens.md shows."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from websockets.asyncio.client import unix_connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from hubbub.network.hub import Hub
from hubbub.network.server import serve_hub
from hubbub.network.store import open_store
from hubbub.web.site import About, Site
from tests.doc_pages import ROOT, blocks
from tests.interaction import nginx
from tests.interaction.nginx import Proxy
from tests.interaction.peers import config, soon

NAME = "newsroom.example.org"
PAGE = ROOT / "docs/how-to/use-tokens.md"

pytestmark = [pytest.mark.slow, pytest.mark.behaviour("D-8")]


def server_block(port: int) -> str:
    """The example of the docs, with the socket, certificate and port of the test."""
    (text,) = [block.text for block in blocks(PAGE) if block.language == "nginx"]
    for pattern, replacement in (
        (r"listen 443 ssl;", "listen unix:{socket} ssl;"),
        (r"(ssl_certificate) .*;", r"\1 {certificate};"),
        (r"(ssl_certificate_key) .*;", r"\1 {key};"),
        (r"127\.0\.0\.1:4820", f"127.0.0.1:{port}"),
    ):
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, f"{pattern} is not in the example"
    return text


@pytest.fixture
async def proxy(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Proxy]:
    """A proxy for a hub whose `network.hosts` is the fixture's parameter."""
    program = nginx.find()
    if program is None:
        pytest.skip(nginx.MISSING)
    file = config(network={"auth": "tokens", "hosts": request.param})
    async with (
        Hub(file, open_store("sqlite::memory:")) as hub,
        serve_hub(hub, "127.0.0.1:0", pages=Site(About("town", "tokens"))) as listening,
        nginx.running(program, server_block(listening.port), NAME, tmp_path) as running,
    ):
        yield running


@pytest.mark.parametrize("proxy", [[NAME]], indirect=True)
async def test_the_page_loads_and_connects_through_a_tls_proxy(proxy: Proxy) -> None:
    async with soon():
        status, page = await proxy.get("/")
        assert (status, "<title>town</title>" in page) == (200, True)
        assert f"wss://{NAME}" in (await proxy.get("/join"))[1]
        async with unix_connect(
            str(proxy.socket), f"wss://{NAME}/", ssl=proxy.trust, origin=Origin(f"https://{NAME}")
        ) as socket:
            assert json.loads(await socket.recv())["op"] == "hello"
        with pytest.raises(InvalidStatus) as refused:
            await unix_connect(
                str(proxy.socket),
                f"wss://{NAME}/",
                ssl=proxy.trust,
                origin=Origin("https://evil.example"),
            )
        assert refused.value.response.status_code == 403


@pytest.mark.parametrize("proxy", [[]], indirect=True)
async def test_an_unlisted_host_name_is_refused_with_the_fix(proxy: Proxy) -> None:
    async with soon():
        status, text = await proxy.get("/")
    assert (status, "`network.hosts`" in text) == (403, True)
