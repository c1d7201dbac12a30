"""The inbox: mentions, threads, notices."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room


def items(desk: Desk) -> Locator:
    return desk.main.get_by_role("listitem")


async def test_mentions_are_listed_newest_first_link_to_the_message_and_stay_when_read(
    desks: Desks, room: Room
) -> None:
    bob, desk = await room.join("bob"), await desks.sit(room, "ann")
    await desk.page.get_by_role("link", name="Inbox").click()
    kind = desk.page.get_by_role("heading", name="No mentions yet")
    await expect(kind).to_be_visible()
    await bob.posts("general", "@ann the first")
    await bob.posts("general", "not for anybody")
    await bob.tells("ann", "@ann the second")
    await expect(items(desk)).to_have_count(2)
    await expect(items(desk).first).to_contain_text("the second")
    await expect(items(desk).first.locator(".badge")).to_have_text("new")
    await desk.page.reload()
    await expect(items(desk)).to_have_count(2)
    other = await desk.another_tab(room.page)
    await other.open_thread("dm.ann.bob")
    await other.sees("the second")
    await expect(items(desk).first.locator(".badge")).to_have_count(0)
    await expect(items(desk)).to_have_count(2)
    await items(desk).last.get_by_role("link").click()
    await expect(desk.message("the first")).to_be_visible()
    await expect(desk.thread("channel.general")).to_have_attribute("aria-current", "page")


async def test_unread_threads_are_listed_first_and_older_mentions_load_in_pages(
    desks: Desks, room: Room
) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    desk = await desks.sit(room, "ann")
    for n in range(60):
        await bob.posts("general", f"@ann number {n}")
    await desk.page.get_by_role("link", name="Inbox").click()
    await expect(items(desk)).to_have_count(50)
    await desk.page.get_by_role("button", name="Show older").click()
    await expect(items(desk)).to_have_count(60)
    await expect(items(desk).last).to_contain_text("number 0")
    await expect(desk.page.get_by_role("button", name="Show older")).to_have_count(0)
    await desk.page.get_by_role("button", name="Mark all as read").click()
    await bob.tells("ann", "from bob")
    await cyd.tells("ann", "from cyd")
    await desk.open_thread("dm.ann.cyd")
    await desk.sees("from cyd")
    await desk.has_read("dm.ann.cyd")
    await desk.page.get_by_role("link", name="Inbox").click()
    await desk.page.get_by_role("link", name="Notices").click()
    await expect(desk.page.get_by_role("heading", name="No notices")).to_be_visible()
    await desk.page.get_by_role("link", name="My threads").click()
    await expect(items(desk).first).to_contain_text("from bob")
    await expect(items(desk).first).to_contain_text("1 unread")
    await expect(items(desk).nth(1)).not_to_contain_text("unread")
    await items(desk).first.get_by_role("link").click()
    await desk.sees("from bob")
