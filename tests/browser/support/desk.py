"""The page object of the browser tests: a person at a browser tab."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import quote, urlsplit

from playwright.async_api import (
    Browser,
    BrowserContext,
    CDPSession,
    Locator,
    Page,
    ViewportSize,
    expect,
)

from tests.browser.support.complaints import Complaints
from tests.browser.support.room import Room

__all__ = ["NARROW", "PATIENCE_S", "WIDE", "Desk", "Desks", "Seats", "Shown", "becomes", "fact"]

WIDE = ViewportSize(width=1280, height=800)
_DURABLE = re.compile("stored|delivered")
NARROW = ViewportSize(width=360, height=740)
PATIENCE_S = 100.0
"""Maximum seconds until the page shows what a test waits for, on a busy machine."""


_STILL = """async () => {
    await document.fonts.ready;
    const log = () => document.querySelector("[role=log]")?.scrollTop;
    const look = () => [document.body.innerHTML.length, document.body.scrollHeight, log()].join();
    let last = null;
    for (let calm = 0; calm < 10; ) {
        await new Promise((then) => requestAnimationFrame(then));
        const now = look();
        calm = now === last && !document.querySelector("[data-loading]") ? calm + 1 : 0;
        last = now;
    }
}"""


_GO = """(hash) => new Promise((there) => {
    // This listener runs after those of the page; two frames later the page is drawn.
    const frame = (then) => requestAnimationFrame(() => setTimeout(then));
    const drawn = () => frame(() => frame(there));
    const before = location.href;
    addEventListener("hashchange", drawn, {once: true});
    location.hash = hash;
    if (location.href === before) drawn();
})"""


_OPEN = "(url) => void open(url, '', 'popup,noopener')"
"""A separate window: a hidden tab is drawn only once a second."""

_ANNOUNCED = """
window.announced = [];
let last = "";
new MutationObserver(() => {
  const said = document.querySelector(".announcer")?.textContent ?? "";
  if (said && said !== last) announced.push(said);
  last = said;
}).observe(document, {subtree: true, childList: true, characterData: true});
"""
"""Records announcements, which disappear after a few seconds."""

_STROKES = """(keys) => {
    for (const key of keys) document.activeElement.dispatchEvent(
        new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
}"""

_FRAME = "new Promise((then) => requestAnimationFrame(() => then()))"


class Shown(NamedTuple):
    """A message in the conversation."""

    id: str
    text: str


async def becomes(it: Locator, condition: str) -> None:
    """Wait until the JavaScript function `condition` of the element is true; checks each frame."""
    async with asyncio.timeout(PATIENCE_S):
        while not await it.evaluate(condition):
            await it.page.evaluate(_FRAME)


def fact(within: Locator, name: str) -> Locator:
    """The value of a name in a list of facts."""
    return within.locator(f"dt:text-is('{name}') + dd")


class Desk:
    """One tab. `Desks.sit` opens the first, `another_tab` more tabs of the same person."""

    def __init__(self, page: Page, complaints: Complaints):
        self.page, self.complaints, self.context = page, complaints, page.context

    async def another_tab(self, url: str) -> Desk:
        """Open a tab in the same browser, with the same storage."""
        async with self.context.expect_page() as opened:
            await self.page.evaluate(_OPEN, url)
        page = await opened.value
        await page.wait_for_load_state()
        return Desk(page, self.complaints)

    # Joining --------------------------------------------------------------------------------

    async def join_as(self, name: str) -> None:
        """Join an open network."""
        await self.page.get_by_label("Your name").fill(name)
        await self.page.get_by_role("button", name="Join").click()
        await self.is_joined()

    async def join_with_token(self, name: str, token: str) -> None:
        await self.try_token(name, token)
        await self.is_joined()

    async def try_token(self, name: str, token: str) -> None:
        await self.page.get_by_label("Your name").fill(name)
        await self.page.get_by_label("Token").fill(token)
        await self.page.get_by_role("button", name="Join").click()

    async def is_joined(self) -> None:
        """Wait until the page is connected to the hub."""
        await expect(self.threads).to_be_visible()
        await expect(self.page.locator(".connection:not(:empty)")).to_have_count(0)

    async def reload(self) -> None:
        """Reload the page and wait until it is connected again."""
        await self.page.reload()
        await self.is_joined()

    async def choose_in_own_menu(self, item: str) -> None:
        """Choose an item of the menu at the person's own name."""
        await self.page.get_by_role("button", name=": settings, help, leave").click()
        await self.page.get_by_role("menuitem", name=item).click()

    async def next_frame(self) -> None:
        """Wait until the page is drawn once more."""
        await self.page.evaluate(_FRAME)

    async def fits(self) -> None:
        """Wait until the page is exactly as wide as the screen."""
        await becomes(self.page.locator(":root"), "(it) => it.scrollWidth === innerWidth")

    async def press_sequence(self, keys: str) -> None:
        """Press keys that are one command together, within the page's time limit for that."""
        await self.page.evaluate(_STROKES, keys)

    async def announces(self, text: str) -> None:
        """Wait until the page has announced the text since it was loaded."""
        is_announced = "(text) => announced.some((each) => each.includes(text))"
        await self.page.wait_for_function(is_announced, arg=text)

    async def is_drawn(self) -> None:
        """Wait until nothing moves or loads."""
        await self.page.wait_for_load_state("networkidle")
        await self.page.evaluate(_STILL)

    # Threads --------------------------------------------------------------------------------

    @property
    def threads(self) -> Locator:
        """The left column."""
        return self.page.get_by_role("navigation", name="Threads")

    def thread(self, id: str) -> Locator:
        """Its row in the left column."""
        return self.threads.locator(f'[data-thread="{id}"]')

    async def open_thread(self, id: str) -> None:
        """Open a thread from another view, and wait until the composer has the focus."""
        await self.thread(id).click()
        await expect(self.thread(id)).to_have_attribute("aria-current", "page")
        await expect(self.composer).to_be_focused()

    async def has_read(self, id: str) -> None:
        """Wait until a thread has no unread messages."""
        await expect(self.thread(id)).to_be_visible()
        await expect(self.thread(id).locator(".badge")).to_have_count(0)

    async def send_read_markers(self) -> None:
        """Send the read markers to the hub now, as when the page is left."""
        await self.page.evaluate("() => dispatchEvent(new Event('pagehide'))")

    async def choose_in_thread_menu(self, item: str) -> None:
        """Choose an item of the menu of the open thread."""
        await self.main.get_by_role("button", name="More in this thread").click()
        await self.page.get_by_role("menuitem", name=item, exact=True).click()

    async def talk_to(self, name: str) -> None:
        """Open or start the conversation with a present participant."""
        await self.person(name).click()
        await self.details.get_by_role("button", name="Message").click()
        await expect(self.composer).to_have_attribute("aria-label", f"Message {name}")

    def person(self, name: str) -> Locator:
        """A row in the list of people and agents in the left column."""
        people = self.threads.get_by_role("region", name="People and agents")
        return people.get_by_role("listitem").filter(has_text=name)

    async def visit(
        self, view: str, *arguments: str, opened: tuple[str, str] | None = None
    ) -> None:
        """Close dialogs and open a view by its address, as a link does.

        `opened` is the kind and id of the details in the right column.
        """
        for dialog in await self.page.get_by_role("dialog").all():
            await self.page.keyboard.press("Escape")
            await expect(dialog).to_have_count(0)
        path = "/".join(quote(part, safe="") for part in (view, *arguments))
        right = f"?open={opened[0]}:{quote(opened[1])}" if opened else ""
        await self.page.evaluate(_GO, f"#/{path}{right}")

    @property
    def main(self) -> Locator:
        """The middle column."""
        return self.page.get_by_role("main")

    # Conversation ---------------------------------------------------------------------------

    @property
    def conversation(self) -> Locator:
        return self.page.get_by_role("log")

    def message(self, text: str) -> Locator:
        """The messages that contain `text`."""
        return self.conversation.locator("[data-message]").filter(has_text=text)

    async def sees(self, text: str) -> Locator:
        """Wait for a message in the open thread that contains `text`."""
        message = self.message(text).first
        await expect(message).to_be_visible()
        return message

    async def to_the_end(self) -> None:
        """Scroll to the latest message."""
        await self.conversation.press("End")

    async def messages(self) -> list[Shown]:
        """The drawn messages of the open thread, from top to bottom."""
        drawn = await self.conversation.locator("[data-message]").evaluate_all(
            "(all) => all.map((it) => [it.dataset.message, it.innerText])"
        )
        return [Shown(*each) for each in drawn]

    # Writing --------------------------------------------------------------------------------

    @property
    def composer(self) -> Locator:
        return self.page.locator("textarea[name=text]")

    async def write(self, text: str) -> None:
        """Fill in the composer without sending."""
        await self.composer.fill(text)

    async def send(self) -> None:
        await self.composer.press("Enter")

    async def submit(self, text: str) -> None:
        """Write and send, without waiting for the hub."""
        await self.write(text)
        await self.send()

    async def says(self, text: str) -> None:
        """Write, send, and wait until the message is stored."""
        await self.submit(text)
        await self.is_stored(text)

    async def is_stored(self, text: str) -> None:
        own = self.conversation.locator("[data-message][data-state]").filter(has_text=text)
        await expect(own.last).to_have_attribute("data-state", _DURABLE)

    # Details --------------------------------------------------------------------------------

    @property
    def details(self) -> Locator:
        return self.page.get_by_role("complementary")

    def banner(self, text: str, within: Locator | None = None) -> Locator:
        """A banner above the composer or in the details: a stop, a takeover, an approval."""
        return (within or self.main).locator(".banner").filter(has_text=text)

    async def act(
        self, message: Locator, action: str, role: Literal["button", "link"] = "button"
    ) -> None:
        """Use an action that a message offers on hover: "Details", "Reply in a thread", ..."""
        offered = message.get_by_role(role, name=action, exact=True)
        async with asyncio.timeout(PATIENCE_S):
            while True:
                await message.hover()
                if found := await offered.element_handles():
                    await found[0].evaluate("(it) => it.click()")
                    return
                await self.next_frame()  # another message moved this one away from the pointer

    # The connection -------------------------------------------------------------------------

    async def notices_the_loss(self) -> None:
        """Wait until the page shows that it is disconnected."""
        await expect(self.page.locator(".connection[data-state]")).to_be_visible()

    def expect_losses(self) -> None:
        """Expect Chromium's own errors about lost connections."""
        self.complaints.expect(
            "WebSocket connection to .* failed|ERR_(CONNECTION|INTERNET|EMPTY_RESPONSE|SOCKET)"
        )


class Seat:
    """A browser window with its own storage. After a test it is cleared and stays open in the
    lobby, because a new window would fetch and compile the whole page again."""

    def __init__(self, context: BrowserContext, page: Page, tools: CDPSession):
        self.context, self.page, self._tools = context, page, tools
        self.complaints = Complaints(context)
        self._origins: set[str] = set()

    @classmethod
    async def create(cls, browser: Browser) -> Seat:
        context = await browser.new_context(locale="en-GB", timezone_id="Europe/Berlin")
        context.set_default_timeout(PATIENCE_S * 1000)
        await context.add_init_script(_ANNOUNCED)
        page = await context.new_page()
        seat = cls(context, page, await context.new_cdp_session(page))
        await seat.complaints.listen()
        return seat

    async def goto(
        self, url: str, color: Literal["light", "dark"], size: ViewportSize, calm: bool
    ) -> Desk:
        motion: Literal["reduce", "no-preference"] = "reduce" if calm else "no-preference"
        await self.page.emulate_media(color_scheme=color, reduced_motion=motion)
        await self.page.set_viewport_size(size)
        address = urlsplit(url)
        self._origins.add(f"{address.scheme}://{address.netloc}")
        await self.page.goto(url)
        return Desk(self.page, self.complaints)

    async def empty(self, lobby: str) -> bool:
        """Clear everything except the cached files of the page. Returns whether another test can
        use the window."""
        if self.page.is_closed():
            return False
        for page in self.context.pages:
            if page is not self.page:
                await page.close()
        await self.page.evaluate("sessionStorage.clear()")
        await self.page.goto(lobby)
        await self.context.clear_permissions()
        for origin in self._origins:
            await self._tools.send(
                "Storage.clearDataForOrigin",
                {"origin": origin, "storageTypes": "local_storage,indexeddb,cookies"},
            )
        self._origins.clear()
        self.complaints.forget()
        return True


class Seats:
    """The windows of one browser; each test takes one per person.

    `lobby` is the address of an empty page of the same site as the rooms: Chromium keeps a site's
    process, and its compiled scripts, while a window shows a page of that site.
    """

    def __init__(self, browser: Browser, lobby: str):
        self.browser, self._lobby = browser, lobby
        self._free: list[Seat] = []

    @classmethod
    @asynccontextmanager
    async def open(cls, browser: Browser) -> AsyncIterator[Seats]:
        """Serve the lobby within the context."""

        async def lobby(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                await reader.readuntil(b"\r\n\r\n")  # closing with unread data resets the socket
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 0\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(lobby, "127.0.0.1", 0) as server:
            yield cls(browser, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")

    async def take(self, *, new: bool) -> Seat:
        return self._free.pop() if self._free and not new else await Seat.create(self.browser)

    async def give_back(self, seat: Seat, *, again: bool) -> None:
        if again and await seat.empty(self._lobby):
            self._free.append(seat)
        else:
            await seat.context.close()


class Desks:
    """Provides desks to a test, and closes them after it."""

    def __init__(self, seats: Seats, folder: Path, failed: Callable[[], bool]):
        """If `failed` returns True at the end, screenshots are stored in `folder`."""
        self._seats, self._folder, self._failed = seats, folder, failed
        self._all: list[tuple[Seat, bool]] = []

    async def sit(
        self,
        at: Room | str,
        name: str | None = None,
        thread: str | None = None,
        *,
        color: Literal["light", "dark"] = "light",
        size: ViewportSize = WIDE,
        calm: bool = True,
        new: bool = False,
    ) -> Desk:
        """Open the page in an empty browser, join as `name`, and open `thread`.

        `at` can be the URL of a hub. `calm`: the person prefers reduced motion. `new`: the test
        changes the browser itself (scripts, clock, routes), so other tests cannot reuse it.
        """
        seat = await self._seats.take(new=new)
        self._all.append((seat, new))
        url = at.page if isinstance(at, Room) else re.sub("^ws", "http", at)
        desk = await seat.goto(url, color, size, calm)
        if name is not None:
            await desk.join_as(name)
        if thread is not None:
            await desk.open_thread(thread)
        return desk

    async def leave(self) -> None:
        """Close all. Raises AssertionError for unexpected errors of a browser; after a failed test,
        it prints the contents of all pages instead."""
        sat, self._all = self._all, []
        failed = self._failed()
        try:
            for number, (seat, _) in enumerate(sat):
                if failed:
                    await self._describe(number, seat)
                else:
                    seat.complaints.check()
        finally:
            for seat, new in sat:
                await self._seats.give_back(seat, again=not new and not failed)

    async def _describe(self, number: int, seat: Seat) -> None:
        for page in seat.context.pages:
            picture = self._folder / f"page-{number}.png"
            await page.screenshot(path=picture)
            print(f"--- {page.url} (picture: {picture})")
            for line in (await page.locator("body").aria_snapshot()).splitlines():
                print(line[:200])
        print("\n".join(seat.complaints.unexpected()))
