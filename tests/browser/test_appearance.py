"""How the page looks: themes, density, and what of that lasts."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Room


async def brightness(desk: Desk) -> float:
    """Of the page's ground, 0 to 255."""
    return float(
        await desk.page.evaluate(
            "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3)"
            ".reduce((sum, each) => sum + Number(each), 0) / 3"
        )
    )


async def settings(desk: Desk) -> None:
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Settings").click()


@pytest.mark.parametrize(("color", "dark"), [("light", False), ("dark", True)])
async def test_the_theme_is_that_of_the_system(
    desks: Desks, room: Room, color: Literal["light", "dark"], dark: bool
) -> None:
    desk = await desks.sit(room.page, color=color)
    await desk.join_as("ann")
    assert (await brightness(desk) < 128) is dark


async def test_a_theme_of_ones_own_lasts_and_holds_in_all_tabs(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await settings(desk)
    await desk.page.get_by_role("radio", name="Dark").check(force=True)
    for each in (desk, other):
        await expect(each.page.locator(":root")).to_have_attribute("data-theme", "dark")
        assert await brightness(each) < 128
    await desk.page.reload()
    await desk.is_joined()
    assert await brightness(desk) < 128
    await settings(desk)
    await desk.page.get_by_role("radio", name="System").check(force=True)
    await expect(desk.page.locator(":root[data-theme]")).to_have_count(0)
    assert await brightness(desk) > 128


async def test_rows_stand_closer_when_that_is_wanted(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    before = await desk.thread("broadcast").bounding_box()
    await settings(desk)
    await desk.page.get_by_role("radio", name="Compact").check(force=True)
    after = await desk.thread("broadcast").bounding_box()
    assert before is not None
    assert after is not None
    assert after["height"] < before["height"]


async def test_nothing_moves_for_those_who_want_it_calm(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page, calm=True)
    await desk.join_as("ann")
    await settings(desk)
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
