"""The means of these tests must themselves be able to fail."""

from __future__ import annotations

import asyncio
import sqlite3
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, Route

from hubbub.client import Client, Disconnected, WebSocketTransport
from hubbub.protocol.frames import Ready
from tests.browser.support.accessibility import audit, findings
from tests.browser.support.complaints import Complaints
from tests.browser.support.desk import PATIENCE_S
from tests.browser.support.measuring import heap_bytes, measured, traffic
from tests.browser.support.network import Network, Networks, Plan
from tests.browser.support.png import shrunk
from tests.browser.support.seeding import seed
from tests.browser.support.wire import laid

HEAD = "<!doctype html><html lang=en><title>t</title>"
ORIGIN = "http://localhost/"
POLICY = {"Content-Security-Policy": "default-src 'self'; script-src 'self'; style-src 'self'"}
SPIN = """
    const spin = () => { for (window.n = 0; window.n < 4e8; window.n++); };
    onclick = () => setTimeout(spin); // much to do rather than long: others want the machine too
"""
PIXELS = """async (png) => {
    const bytes = Uint8Array.from(atob(png), (char) => char.charCodeAt(0));
    const bitmap = await createImageBitmap(new Blob([bytes]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    canvas.drawImage(bitmap, 0, 0);
    return canvas.getImageData(0, 0, bitmap.width, bitmap.height).data.join(" ");
}"""
"""Of a PNG in base64: one string, since long lists take playwright seconds."""


@asynccontextmanager
async def page_of(
    browser: Browser, body: str, script: str = ""
) -> AsyncIterator[tuple[Page, Complaints]]:
    """A page with a strict policy and a script of its own."""

    async def serve(route: Route) -> None:
        if route.request.url == ORIGIN:
            html = f"{HEAD}<body>{body}<script src=/s.js></script>"
            await route.fulfill(body=html, content_type="text/html", headers=POLICY)
        elif route.request.url.endswith("/s.js"):
            await route.fulfill(body=script, content_type="text/javascript")
        else:
            await route.fulfill(status=404)

    async with await browser.new_context() as context:
        complaints = Complaints(context)
        await complaints.listen()
        await context.route("**", serve)
        page = await context.new_page()
        await page.goto(ORIGIN)
        yield page, complaints


async def until(page: Page, condition: Callable[[], bool]) -> None:
    """What the browser tells comes in its time."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await page.evaluate("1")


@pytest.mark.parametrize(
    ("body", "script", "complaint"),
    [
        ("", "console.error('went wrong')", "console error: went wrong"),
        ("", "null.x", "uncaught: TypeError"),
        ("", "Promise.reject(new Error('nobody waits'))", "uncaught: Error: nobody waits"),
        ("<script>1</script>", "", "CSP script-src-elem forbids inline"),
        ("<p style='color:red'>x</p>", "", "CSP style-src-attr forbids inline"),
        ("<img src=/nothing.png>", "", "404 for http://localhost/nothing.png"),
        ("", "fetch('http://example.org/').catch(() => 0)", "CSP connect-src"),
        ("<a href='http://example.org/'>go</a>", "document.links[0].click()", "another host"),
    ],
)
async def test_what_a_browser_complains_about_is_noticed(
    browser: Browser, body: str, script: str, complaint: str
) -> None:
    async with page_of(browser, body, script) as (page, complaints):
        await until(page, lambda: any(complaint in it for it in complaints.unexpected()))
        with pytest.raises(AssertionError, match="the browser complains"):
            complaints.check()


async def test_an_expected_complaint_is_none(browser: Browser) -> None:
    async with page_of(browser, "", "console.error('went wrong')") as (_, complaints):
        complaints.expect("went w.ong")
        complaints.check()


async def test_an_audit_names_the_element_and_the_reason(browser: Browser) -> None:
    async with page_of(browser, "<main><h1>t</h1><button></button></main>") as (page, complaints):
        with pytest.raises(AssertionError, match=r"critical: .*button-name") as told:
            await audit(page)
        assert "<button></button>" in str(told.value)
        complaints.check()  # axe itself keeps to the policy


async def test_an_audit_passes_what_is_only_moderate(browser: Browser) -> None:
    async with page_of(browser, "<h1>t</h1>outside of every landmark") as (page, _):
        assert {each.impact for each in await findings(page)} == {"moderate"}
        await audit(page)


async def test_scripts_and_long_tasks_are_measured(browser: Browser) -> None:
    async with page_of(browser, "<button>x</button>", SPIN) as (page, _):
        async with measured(page) as idle:
            await page.evaluate("1")
        async with measured(page) as cost:
            await page.click("button")
            await page.evaluate("new Promise((resolve) => setTimeout(resolve, 10))")
        assert list(idle.long_tasks) == []
        assert len(cost.long_tasks) == 1
        assert cost.scripting > idle.scripting
        assert "scripting" in str(cost)


async def test_the_heap_shows_what_is_still_held(browser: Browser) -> None:
    async with page_of(browser, "<p>x</p>") as (page, _):
        empty = await heap_bytes(page)
        await page.evaluate("void (window.held = Array.from({length: 500_000}, (_, n) => ({n})))")
        full = await heap_bytes(page)
        await page.evaluate("void delete window.held")
        after = await heap_bytes(page)
        assert full > empty + 4_000_000
        assert after < empty + 1_000_000


async def test_transferred_bytes_are_counted(browser: Browser, network: Network) -> None:
    async with await browser.new_context() as context:
        page = await context.new_page()
        counted = await traffic(page)
        await page.goto(network.page)
        await until(page, lambda: counted.by_url.get(network.page, 0) > 500)
        await page.evaluate(
            "(url) => new Promise((then) => { new WebSocket(url).onmessage = then; })", network.url
        )
        await until(page, lambda: counted.frames > 100)
        assert counted.total == counted.files + counted.frames
        assert network.page in str(counted)


async def test_a_cut_wire_ends_connections_until_it_is_mended(network: Network) -> None:
    async with laid(network.port) as wire:
        url = wire.url.replace("http", "ws", 1)
        async with Client(WebSocketTransport(url), "ann", "human") as ann:
            events = ann.events()
            assert isinstance(await anext(events), Ready)
            wire.cut()
            assert isinstance(await anext(events), Disconnected)
            wire.mend()
            async with asyncio.timeout(PATIENCE_S):
                async for item in events:
                    if isinstance(item, Ready):
                        break
            assert await ann.call("list_channels")


async def test_a_silent_wire_holds_everything_back(network: Network) -> None:
    async with laid(network.port) as wire:
        url = wire.url.replace("http", "ws", 1)
        async with Client(WebSocketTransport(url), "ann", "human") as ann:
            wire.silence()
            posted = ann.post("post_to_channel", channel="general", text="hello")
            # Somebody else's round trips show that time has passed for the hub.
            bob = await network.join("bob")
            for n in range(5):
                await bob.posts("general", f"{n}")
            assert not posted.done()
            wire.mend()
            assert await asyncio.wait_for(posted, PATIENCE_S)


async def test_a_network_survives_kill_with_its_port_tokens_and_messages(
    networks: Networks,
) -> None:
    plan: Plan = {"channels": {"general": {}}, "humans": {"ann": {}}}
    network = await networks.start(plan, auth="tokens")
    token, port = await network.token("ann"), network.port
    ann = await network.join("ann")
    await ann.posts("general", "before")
    await network.kill()
    await network.start()
    assert network.port == port
    async with Client(WebSocketTransport(network.url), "ann", "human", token=token) as again:
        page = await again.call("read_thread", thread="channel_general")
    assert "before" in str(page)


async def test_a_seeded_database_has_what_was_asked_for(tmp_path: Path) -> None:
    database = tmp_path / "network.db"
    await seed(database, messages=120, threads=7)
    with closing(sqlite3.connect(database)) as db:
        counts = db.execute(
            "SELECT json_extract(body, '$.thread_id') AS thread, count(*),"
            " count(DISTINCT json_extract(body, '$.sent_at')) FROM message GROUP BY thread"
        ).fetchall()
    assert counts[0][:2] == ("channel.general", 120)
    assert counts[0][2] > 1, "not all at the same moment"
    assert [thread for thread, *_ in counts[1:]] == [f"dm.ann.p{n:03}" for n in range(7)]


async def test_a_picture_is_shrunk_without_changing_a_pixel(browser: Browser) -> None:
    body = "".join(
        f"<p style='color: hsl({n * 9} 80% 50%)'>{n} {'word ' * n}</p>" for n in range(40)
    )
    async with await browser.new_context(viewport={"width": 300, "height": 200}) as context:
        page = await context.new_page()
        await page.set_content(f"{body}")
        png = await page.screenshot()
        small = shrunk(png)
        assert len(small) < len(png)
        one, other = [
            await page.evaluate(PIXELS, b64encode(each).decode()) for each in (png, small)
        ]
        assert one == other
        assert len(one.split()) == 300 * 200 * 4


def test_what_is_no_such_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="no PNG"):
        shrunk(b"GIF89a")
