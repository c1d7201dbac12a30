"""Requests and bytes for opening the page, counted by Chromium."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Page

from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

MODS = [
    "documents", "edits", "tasks", "polls", "files", "search", "digest", "threads", "reactions",
]  # fmt: skip
"""All mods with features on the page."""
REQUESTS, BYTES = 40, 200 * 1000
SIZES = "performance.getEntriesByType('resource').map((it) => [it.name, it.transferSize])"


class Traffic:
    """The requests of a page, and the bytes of the responses with headers."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self.urls: dict[str, str] = {}

    async def listen(self, page: Page) -> None:
        tools = await page.context.new_cdp_session(page)
        tools.on("Network.requestWillBeSent", self._asked)
        tools.on("Network.loadingFinished", self._came)
        tools.on("Network.webSocketCreated", self._asked)
        await tools.send("Network.enable")

    def _asked(self, event: dict[str, Any]) -> None:
        self.urls[event["requestId"]] = event["request"]["url"] if "request" in event else "socket"

    def _came(self, event: dict[str, Any]) -> None:
        self.sizes[event["requestId"]] = int(event["encodedDataLength"])

    def __str__(self) -> str:
        return "\n".join(f"{self.sizes.get(id, 0):8} {url}" for id, url in self.urls.items())


async def test_the_page_loads_with_few_requests_and_from_cache_the_second_time(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit("about:blank", new=True)
    traffic = Traffic()
    await traffic.listen(desk.page)
    await desk.page.goto(room.page)
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    await desk.page.wait_for_load_state("networkidle")
    assert len(traffic.urls) <= REQUESTS, traffic
    assert sum(traffic.sizes.values()) <= BYTES, traffic
    await desk.reload()
    await desk.page.wait_for_load_state("networkidle")
    sizes: list[tuple[str, int]] = await desk.page.evaluate(SIZES)
    assert [each for each in sizes if each[1] > 0] == []
