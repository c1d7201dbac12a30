"""What calls for somebody who looks elsewhere."""

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
"""A desktop: headless browsers have none. What it would show is in `shown`."""
GENERAL = "channel.general"


async def sits(desks: Desks, room: Room) -> tuple[Desk, asyncio.Queue[str]]:
    """ann, before that desktop, and what all of her tabs show on it."""
    told = asyncio.Queue[str]()
    desk = await desks.sit("about:blank", new=True)
    await desk.context.expose_function("tell", told.put_nowait)
    await desk.context.add_init_script(RECORDER)
    await desk.page.goto(room.page)
    await desk.join_as("ann")
    return desk, told


async def settings(desk: Desk) -> None:
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Settings").click()


async def looks_elsewhere(*desks: Desk) -> None:
    for desk in desks:
        await desk.page.evaluate("window.away = true")


async def is_counted(desk: Desk, count: int) -> None:
    await expect(desk.page).to_have_title(re.compile(rf"^\({count}\) "))


async def test_the_title_and_the_icon_tell_of_what_waits(desks: Desks, room: Room) -> None:
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


async def test_who_allows_it_by_a_button_is_told_of_mentions_and_direct_messages_when_away(
    desks: Desks, room: Room
) -> None:
    (desk, told), bob = await sits(desks, room), await room.join("bob")
    assert await desk.page.evaluate("window.asked") == 0
    await settings(desk)
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
    shown = sorted([await told.get(), await told.get()])
    assert shown == ["bob in #general: @ann a mention", "bob: a message"]
    await desk.page.evaluate(
        "window.away = false; window.shown.find((it) => it.body.includes('mention')).onclick()"
    )
    await desk.sees("a mention")
    await settings(desk)
    await wanted.uncheck()
    await desk.page.reload()
    await desk.is_joined()
    await looks_elsewhere(desk)
    await bob.tells("ann", "psst")
    await is_counted(desk, 3)
    assert told.empty()


async def test_of_several_hidden_tabs_one_tells_and_none_while_one_is_seen(
    desks: Desks, room: Room
) -> None:
    (desk, told), bob = await sits(desks, room), await room.join("bob")
    await desk.page.evaluate("localStorage.setItem('permission', 'granted')")
    await desk.page.reload()
    await desk.is_joined()
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await looks_elsewhere(other)
    await bob.tells("ann", "seen in the first tab")
    for each in (desk, other):
        await is_counted(each, 1)
    # Both have decided when what came later is told.
    await looks_elsewhere(desk)
    for n in range(2):
        await bob.tells("ann", f"message {n}")
    for each in (desk, other):
        await is_counted(each, 3)
    shown = sorted([await told.get(), await told.get()])  # each by one of the tabs
    assert shown == ["bob: message 0", "bob: message 1"]
    await desk.next_frame()
    assert told.empty()
