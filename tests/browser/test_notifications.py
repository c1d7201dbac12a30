"""Telling people who look elsewhere: the tab's title and icon, and the desktop."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import Page, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room
from tests.unit.configs.people import PATIENCE_S

RECORDER = """
  window.away = false;
  Object.defineProperty(document, 'hidden', {get: () => window.away});
  window.shown = [];
  window.asked = 0;
  window.Notification = class {
    static permission = (origin !== 'null' && localStorage.getItem('permission')) || 'default';
    static requestPermission() {
      window.asked++;
      localStorage.setItem('permission', 'granted');
      return Promise.resolve(Notification.permission = 'granted');
    }
    constructor(title, options) {
      Object.assign(this, {title, ...options});
      window.shown.push(this);
    }
    close() { this.closed = true; }
  };
"""
"""A desktop: headless browsers have none. What it would show is in `shown`."""


async def sits(desks: Desks, network: Network | Room, *, allowed: bool = True) -> Desk:
    """ann, whose browser has been asked before if `allowed`."""
    desk = await desks.sit(network.page)
    await desk.context.add_init_script(RECORDER)
    if allowed:
        await desk.page.evaluate("localStorage.setItem('permission', 'granted')")
    await desk.page.reload()
    await desk.join_as("ann")
    return desk


async def look_elsewhere(*pages: Page) -> None:
    for page in pages:
        await page.evaluate("window.away = true")


async def shown(page: Page) -> list[str]:
    found = await page.evaluate("window.shown.map((it) => `${it.title}: ${it.body}`)")
    return [str(each) for each in found]


async def told_by(*desks: Desk, count: int) -> list[str]:
    """What the tabs have shown, once that is `count` notifications."""
    async with asyncio.timeout(PATIENCE_S):
        while len(told := [each for desk in desks for each in await shown(desk.page)]) < count:
            await desks[0].page.evaluate("new Promise(requestAnimationFrame)")
    return told


async def is_counted(desk: Desk, count: int) -> None:
    await expect(desk.page).to_have_title(re.compile(rf"^\({count}\) "))


async def test_the_title_and_the_icon_tell_of_what_waits(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    icon = desk.page.locator("link[rel=icon]")
    await expect(icon).to_have_attribute("href", re.compile(r"/icon\.svg$"))
    bob = await room.join("bob")
    await bob.tells("ann", "one")
    await bob.posts("general", "not for you alone")
    await bob.posts("general", "@ann two")
    await is_counted(desk, 2)
    await expect(icon).to_have_attribute("href", re.compile(r"/icon-dot\.svg$"))
    await desk.open_thread("dm.ann.bob")
    await is_counted(desk, 1)
    await desk.open_thread("channel.general")
    await expect(desk.page).to_have_title("#general · test")
    await expect(icon).to_have_attribute("href", re.compile(r"/icon\.svg$"))


async def test_the_permission_is_asked_for_by_a_button_only(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room, allowed=False)
    assert await desk.page.evaluate("window.asked") == 0
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Settings").click()
    await desk.page.get_by_role("button", name="Allow").click()
    await expect(desk.page.get_by_role("checkbox", name="Tell me")).to_be_checked()
    assert await desk.page.evaluate("window.asked") == 1


async def test_mentions_and_direct_messages_are_told_while_one_looks_elsewhere(
    desks: Desks, room: Room
) -> None:
    desk = await sits(desks, room)
    bob = await room.join("bob")
    await bob.tells("ann", "seen")
    await is_counted(desk, 1)
    await look_elsewhere(desk.page)
    await bob.posts("general", "for everybody")
    await bob.posts("general", "@ann a mention")
    await bob.tells("ann", "a message")
    told = await told_by(desk, count=2)
    assert sorted(told) == ["bob in #general: @ann a mention", "bob: a message"]


async def test_a_click_leads_to_the_message(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    bob = await room.join("bob")
    await look_elsewhere(desk.page)
    await bob.posts("general", "@ann come here")
    await told_by(desk, count=1)
    await desk.page.evaluate("window.away = false; window.shown[0].onclick()")
    await desk.sees("come here")
    assert await desk.page.evaluate("window.shown[0].closed")


async def test_of_several_hidden_tabs_one_tells(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    other = await desk.another_tab(room.page)
    await other.is_joined()
    bob = await room.join("bob")
    await look_elsewhere(desk.page, other.page)
    for n in range(3):
        await bob.tells("ann", f"message {n}")
    for each in (desk, other):
        await is_counted(each, 3)
    told = await told_by(desk, other, count=3)
    assert sorted(told) == [f"bob: message {n}" for n in range(3)]


async def test_hidden_tabs_say_nothing_while_one_is_seen(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    other = await desk.another_tab(room.page)
    await other.is_joined()
    bob = await room.join("bob")
    await look_elsewhere(other.page)
    await bob.tells("ann", "seen in the first tab")
    for each in (desk, other):
        await is_counted(each, 1)
    # Both have decided when what came later is told.
    await look_elsewhere(desk.page)
    await bob.tells("ann", "seen nowhere")
    assert await told_by(desk, other, count=1) == ["bob: seen nowhere"]


async def test_who_does_not_want_it_is_left_alone(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Settings").click()
    await desk.page.get_by_role("checkbox", name="Tell me").uncheck()
    await desk.page.reload()
    await desk.is_joined()
    bob = await room.join("bob")
    await look_elsewhere(desk.page)
    await bob.tells("ann", "psst")
    await is_counted(desk, 1)
    assert await shown(desk.page) == []
