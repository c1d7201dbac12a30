"""How the page looks: themes, density, and what of that lasts."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import expect

from tests.browser.support.desk import Desk, Desks, becomes
from tests.browser.support.network import Room


async def is_dark(desk: Desk, dark: bool = True) -> None:
    """Waits until the page's ground is that, or light."""
    brightness = (
        "getComputedStyle(it).backgroundColor.match(/\\d+/g).slice(0, 3)"
        ".reduce((sum, each) => sum + Number(each), 0) / 3"
    )
    await becomes(desk.page.locator("body"), f"(it) => {brightness} {'<' if dark else '>'} 128")


async def settings(desk: Desk) -> None:
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Settings").click()


@pytest.mark.parametrize(("color", "dark"), [("light", False), ("dark", True)])
async def test_the_theme_is_that_of_the_system(
    desks: Desks, room: Room, color: Literal["light", "dark"], dark: bool
) -> None:
    desk = await desks.sit(room.page, color=color)
    await desk.join_as("ann")
    await is_dark(desk, dark)


async def test_a_theme_of_ones_own_lasts_and_holds_in_all_tabs(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await settings(desk)
    await desk.page.get_by_role("radio", name="Dark").check(force=True)
    for each in (desk, other):
        await expect(each.page.locator(":root")).to_have_attribute("data-theme", "dark")
        await is_dark(each)
    await desk.page.reload()
    await desk.is_joined()
    await is_dark(desk)
    await settings(desk)
    await desk.page.get_by_role("radio", name="System").check(force=True)
    await expect(desk.page.locator(":root[data-theme]")).to_have_count(0)
    await is_dark(desk, False)


async def test_rows_stand_closer_when_that_is_wanted(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    row = desk.thread("broadcast")
    before = await row.evaluate("(it) => it.offsetHeight")
    await settings(desk)
    await desk.page.get_by_role("radio", name="Compact").check(force=True)
    await becomes(row, f"(it) => it.offsetHeight < {before}")


async def test_nothing_moves_for_those_who_want_it_calm(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page, calm=True)
    await desk.join_as("ann")
    await settings(desk)
    await expect(desk.page.get_by_role("dialog")).to_be_visible()
    moving = await desk.page.evaluate("document.getAnimations().length")
    assert moving == 0


async def test_the_title_follows_the_view(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await expect(desk.page).to_have_title("test")
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    await expect(desk.page).to_have_title("#general · test")
    await desk.page.get_by_role("link", name="Inbox").click()
    await expect(desk.page).to_have_title("Inbox · test")
