"""Notifications, and the page's title and icon."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room

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
      window.tell(`${this.title}: ${this.body}`);
    }
    close() { this.closed = true; }
  };
"""
"""Replaces desktop notifications, which headless browsers lack; `shown` has those displayed."""
GENERAL = "channel.general"


async def sits(desks: Desks, room: Room) -> tuple[Desk, asyncio.Queue[str]]:
    """Ann, and the notifications of all her tabs."""
    shown = asyncio.Queue[str]()
    desk = await desks.sit("about:blank", new=True)
    await desk.context.expose_function("tell", shown.put_nowait)
    await desk.context.add_init_script(RECORDER)
    await desk.page.goto(room.page)
    await desk.join_as("ann")
    return desk, shown


async def looks_elsewhere(*desks: Desk) -> None:
    for desk in desks:
        await desk.page.evaluate("window.away = true")


async def is_counted(desk: Desk, count: int) -> None:
    await expect(desk.page).to_have_title(re.compile(rf"^\({count}\) "))


async def test_the_title_and_the_icon_show_unread_messages(desks: Desks, room: Room) -> None:
    desk, bob = await desks.sit(room, "ann"), await room.join("bob")
    icon = desk.page.locator("link[rel=icon]")
    await expect(icon).to_have_attribute("href", re.compile(r"/icon\.svg$"))
    await bob.tells("ann", "one")
    await bob.posts("general", "not for you alone")
    await bob.posts("general", "@ann two")
    await is_counted(desk, 2)
    await expect(icon).to_have_attribute("href", re.compile(r"/icon-dot\.svg$"))
    await desk.open_thread("dm.ann.bob")
    await is_counted(desk, 1)
    await desk.open_thread(GENERAL)
    await expect(desk.page).to_have_title("#general · test")
    await expect(icon).to_have_attribute("href", re.compile(r"/icon\.svg$"))


async def test_allowed_notifications_show_mentions_and_direct_messages_when_away(
    desks: Desks, room: Room
) -> None:
    (desk, shown), bob = await sits(desks, room), await room.join("bob")
    assert await desk.page.evaluate("window.asked") == 0
    await desk.choose_in_own_menu("Settings")
    await desk.page.get_by_role("button", name="Allow").click()
    wanted = desk.page.get_by_role("checkbox", name="Notify me")
    await expect(wanted).to_be_checked()
    assert await desk.page.evaluate("window.asked") == 1
    await desk.page.keyboard.press("Escape")
    await bob.tells("ann", "seen")
    await is_counted(desk, 1)
    await looks_elsewhere(desk)
    await bob.posts("general", "for everybody")
    await bob.posts("general", "@ann a mention")
    await bob.tells("ann", "a message")
    texts = sorted([await shown.get(), await shown.get()])
    assert texts == ["bob in #general: @ann a mention", "bob: a message"]
    await desk.page.evaluate(
        "window.away = false; window.shown.find((it) => it.body.includes('mention')).onclick()"
    )
    await desk.sees("a mention")
    await desk.choose_in_own_menu("Settings")
    await wanted.uncheck()
    await desk.reload()
    await looks_elsewhere(desk)
    await bob.tells("ann", "psst")
    await is_counted(desk, 3)
    assert shown.empty()


async def test_one_hidden_tab_notifies_and_none_while_a_tab_is_visible(
    desks: Desks, room: Room
) -> None:
    (desk, shown), bob = await sits(desks, room), await room.join("bob")
    await desk.page.evaluate("localStorage.setItem('permission', 'granted')")
    await desk.reload()
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await looks_elsewhere(other)
    await bob.tells("ann", "seen in the first tab")
    for each in (desk, other):
        await is_counted(each, 1)
    # Both tabs have handled it once the later messages are counted.
    await looks_elsewhere(desk)
    for n in range(2):
        await bob.tells("ann", f"message {n}")
    for each in (desk, other):
        await is_counted(each, 3)
    texts = sorted([await shown.get(), await shown.get()])  # each by one of the tabs
    assert texts == ["bob: message 0", "bob: message 1"]
    await desk.next_frame()
    assert shown.empty()
