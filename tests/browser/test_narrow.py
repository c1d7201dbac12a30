"""The page on a telephone: 360 pixels, one column at a time."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.browser.support.desk import NARROW, Desk, Desks, becomes
from tests.browser.support.network import Network, Room

SMALLEST = 28
"""Pixels that something to be pressed has at least, in both directions."""
VIEWS = (("",), ("thread", "channel.general"), ("inbox",), ("inbox", "threads"))
OPENED = (None, ("participant", "bob"), ("thread", "channel.general"))
TOO_SMALL = """(smallest) => [...document.querySelectorAll("button, a, input, [role=menuitem]")]
  .filter((it) => it.checkVisibility({visibilityProperty: true, opacityProperty: true}))
  .filter((it) => !it.closest("[role=log], p, .skip") && it.type !== "radio")
  .map((it) => [it.outerHTML.slice(0, 90), it.getBoundingClientRect()])
  .filter(([, box]) => box.bottom > 0 && (box.width < smallest || box.height < smallest))
  .map(([html, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${html}`)"""

FITS = """(it) => {
    const {left, right, bottom} = it.getBoundingClientRect();
    return left >= 0 && right <= innerWidth && bottom <= innerHeight;
}"""


def left(desk: Desk) -> Locator:
    return desk.page.get_by_role("navigation", name="Threads")


async def joined(desks: Desks, network: Network | Room) -> Desk:
    desk = await desks.sit(network.page, size=NARROW)
    await desk.join_as("ann")
    return desk


async def test_threads_come_first_and_one_fills_the_screen(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await expect(left(desk)).to_be_in_viewport()
    await expect(desk.composer).to_have_count(0)
    await desk.thread("channel.general").click()
    await expect(left(desk)).to_be_hidden()
    await desk.says("from the train")
    await desk.page.get_by_role("link", name="Back").click()
    await expect(left(desk)).to_be_visible()


async def test_details_lie_over_the_thread_and_back_leads_to_it(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.thread("channel.general").click()
    await desk.page.get_by_role("button", name="Details of the thread").click()
    await expect(desk.details).to_be_in_viewport()
    await expect(desk.composer).to_be_hidden()
    await desk.page.get_by_role("button", name="Back").click()
    await expect(desk.details).to_have_count(0)
    await expect(desk.composer).to_be_visible()


@pytest.mark.parametrize("view", VIEWS, ids="/".join)
async def test_nothing_is_wider_than_the_screen_and_all_can_be_pressed(
    desks: Desks, room: Room, view: tuple[str, ...]
) -> None:
    desk = await joined(desks, room)
    bob = await room.join("bob")
    await bob.posts("general", f"@ann {'w' * 300} and some words")
    await bob.client.call("create_channel", name="a-channel-with-quite-a-long-name")
    await expect(left(desk).locator(".badge.mention").first).to_be_visible()
    for opened in OPENED:
        await desk.visit(*view, opened=opened)
        await expect(desk.details).to_have_count(1 if opened else 0)
        await desk.is_drawn()
        assert await desk.page.evaluate("document.documentElement.scrollWidth") == 360
        assert await desk.page.evaluate(TOO_SMALL, SMALLEST) == []


@pytest.mark.parametrize(
    "button",
    ["Browse channels", "Create a channel", "Start a conversation", "Go to or do anything"],
)
async def test_dialogs_fit(desks: Desks, room: Room, button: str) -> None:
    desk = await joined(desks, room)
    await desk.page.get_by_role("button", name=button).first.click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await desk.is_drawn()
    await becomes(dialog, FITS)


async def test_a_column_hidden_on_a_wide_screen_is_there_on_a_narrow_one(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.page.get_by_role("button", name="Left column").click()
    await expect(left(desk)).to_be_hidden()
    await desk.page.set_viewport_size(NARROW)
    await expect(left(desk)).to_be_visible()
