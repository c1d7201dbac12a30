"""Messages and other sites cannot attack the page."""

from __future__ import annotations

import re

from playwright.async_api import Dialog, Route, expect

from tests.browser.support.desk import Desk, Desks, Seats
from tests.browser.support.room import Room

HOSTILE = {
    "a script": "<script>window.hit = 1</script>last words",
    "a picture that runs": "<img src=x onerror='window.hit = 1'>last words",
    "a drawing that runs": "<svg><animate onbegin='window.hit=1' attributeName=x></svg>last words",
    "a frame": "<iframe srcdoc='<script>parent.hit = 1</script>'></iframe>last words",
    "a link that runs": "[click](javascript:window.hit=1) last words",
    "a page in a link": "[click](data:text/html,<script>opener.hit=1</script>) last words",
    "a link in disguise": "<a href='&#106;avascript:window.hit=1'>click</a> last words",
    "a style": "<style>body { display: none }</style>last words",
    "an element over everything": "<div style='position:fixed;inset:0'>x</div>last words",
    "a form": "<form action='https://example.org'><button>Join</button></form>last words",
    "another's id": "<textarea name=text id=desk></textarea>last words",
    "turned text": "txt.\u202eexe.\u2066x last words",
    "a word of 64 KiB": "last words" + "w" * 65_000,
    "five thousand emoji": "\U0001f600" * 5000 + "last words",
    "a tower of quotes": "> " * 20_000 + "last words",
    "a tower of lists": "- " * 20_000 + "last words",
    "stacked letters": "Z" + "\u0300\u0301\u0302" * 2000 + "last words",
    "what frameworks fill in": "{{x.constructor('window.hit=1')()}} ${window.hit=1} last words",
    "an open comment": "<!-- last words",
    "broken code": "```<script>window.hit=1</script>\nlast words",
}
_REMAINS = """(log) => [...log.querySelectorAll('[data-message] .prose *')].filter((it) =>
    it.matches('script, style, iframe, object, embed, form, link, meta, base, img, video, svg') ||
    it.matches('[style], [id], [name]') ||
    [...it.attributes].some((each) => /^on/.test(each.name)) ||
    (it.href && !/^(https?:|mailto:)/.test(it.href))
).map((it) => it.outerHTML.slice(0, 200))"""
_SPILLS = "(it) => it.scrollWidth - it.clientWidth"


async def test_hostile_texts_and_json_are_rendered_safely(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room, "ann", "channel.general", new=True)
    dialogs: list[str] = []

    async def note(dialog: Dialog) -> None:
        dialogs.append(dialog.message)
        await dialog.dismiss()

    desk.page.on("dialog", note)
    for n, (what, text) in enumerate(HOSTILE.items()):
        await bob.posts("general", text.replace("last words", f"last words {n}."))
        await _reads_to_the_end(desk, f"last words {n}.")
        assert await desk.conversation.evaluate(_REMAINS) == [], what
        assert await desk.page.locator("html").evaluate(_SPILLS) <= 0, what
        newest = desk.message(f"last words {n}.")
        for link in await newest.get_by_text("click", exact=True).all():
            await link.click()
    await desk.says("I have read it all")
    content = {"__proto__": {"hit": 1}, "constructor": "<img src=x onerror='window.hit=1'>"}
    await bob.client.call("send_message", to="ann", content=content)
    await desk.open_thread("dm.ann.bob")
    await desk.sees("constructor")
    assert await desk.page.evaluate("({}).hit ?? window.hit ?? null") is None
    assert dialogs == []
    assert len(desk.context.pages) == 1


async def _reads_to_the_end(desk: Desk, words: str) -> None:
    """Unfold the newest message if it is long, and wait for its last words."""
    newest = desk.conversation.locator("[data-message]").last
    unfold = newest.get_by_role("button", name="Show all")
    await expect(newest.get_by_text(words).or_(unfold).first).to_be_visible()
    if await unfold.is_visible():
        await unfold.click()
    await expect(newest.get_by_text(words)).to_be_visible()
    await expect(newest.locator(".piece.plain")).to_have_count(
        0
    )  # the placeholder while it is drawn


async def test_other_sites_cannot_embed_the_page_open_its_socket_or_inject_scripts(
    seats: Seats, room: Room
) -> None:
    async def serve(route: Route) -> None:
        body = f"<!doctype html><title>evil</title><iframe src='{room.page}'></iframe>"
        await route.fulfill(body=body, content_type="text/html")

    connect = """(url) => new Promise((resolve) => {
        const socket = new WebSocket(url);
        socket.onopen = () => resolve('open');
        socket.onerror = () => resolve('refused');
    })"""
    async with await seats.browser.new_context() as context:
        await context.route("http://evil.example/**", serve)
        page = await context.new_page()
        await page.goto("http://evil.example/")
        join = page.frame_locator("iframe").get_by_role("button", name="Join")
        await expect(join).to_have_count(0)
        assert await page.evaluate(connect, room.url) == "refused"
        local = room.url.replace("127.0.0.1", "localhost")
        assert await page.evaluate(connect, local) == "refused"
        response = await page.goto(room.page)  # the hub's own page can open it
        assert await page.evaluate(connect, room.url) == "open"
    assert response is not None
    policy = dict(
        part.strip().partition(" ")[::2]
        for part in response.headers["content-security-policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert re.fullmatch(r"'self' 'sha256-[\w+/=]{44}'", policy["script-src"]), "one known script"
    assert "unsafe" not in " ".join(policy.values())
    assert "*" not in " ".join(policy.values())
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
