"""axe-core looks at every view and dialog of the desk, light and dark, wide and narrow."""

from __future__ import annotations

from typing import Literal

import pytest
from playwright.async_api import ViewportSize, expect

from hubbub.client import Client, WebSocketTransport
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Network, Networks, Room

THREAD = ("thread", "channel.general")
Place = tuple[tuple[str, ...], tuple[str, str] | None, str]
PLACES: tuple[Place, ...] = (
    (("",), None, ""),
    (("inbox",), None, "and all"),
    (("inbox", "threads"), None, "hello"),
    (("inbox", "notices"), None, "All is well"),
    (THREAD, ("participant", "bob"), "Person"),
    (THREAD, ("thread", "channel.general"), "members"),
)
"""A view, what is opened beside it, and words of the latter, else of the view if it has some."""
BUTTONS = ("Browse channels", "Create a channel", "Start a conversation", "Go to or do anything")
COLORS = pytest.mark.parametrize("color", ["light", "dark"])


async def busy(desks: Desks, network: Network | Room, color: Literal["light", "dark"]) -> Desk:
    """ann, with unread messages and mentions from bob and a reply thread."""
    desk = await desks.sit(network.page, color=color)
    await desk.join_as("ann")
    bob = await network.join("bob")
    said = await bob.client.call("post_to_channel", channel="general", text="@ann and all")
    assert isinstance(said, dict)
    await bob.client.call("reply", message_id=said["id"], text="@ann under it")
    await bob.tells("ann", "hello")
    await expect(desk.thread("dm.ann.bob").locator(".badge")).to_be_visible()
    return desk


@COLORS
async def test_the_first_screen_is_accessible(
    desks: Desks, networks: Networks, color: Literal["light", "dark"]
) -> None:
    network = await networks.start({"humans": {"ann": {}}}, auth="tokens")
    desk = await desks.sit(network.page, color=color)
    await audit(desk.page)
    await desk.try_token("ann", "none")
    await expect(desk.page.get_by_role("alert")).to_be_visible()
    await audit(desk.page)


@COLORS
async def test_all_views_and_details_are_accessible(
    desks: Desks, room: Room, color: Literal["light", "dark"]
) -> None:
    desk = await busy(desks, room, color)
    async with Client(WebSocketTransport(room.url), "scout", "agent") as scout:
        await scout.signal("activity", "channel.general", {"state": "thinking"})
        await expect(desk.page.locator(".activity").first).to_be_visible()
        for size in (WIDE, NARROW):
            await desk.page.set_viewport_size(size)
            for view, opened, words in PLACES:
                await desk.visit(*view, opened=opened)
                if words:
                    await expect(desk.details if opened else desk.main).to_contain_text(words)
                await audit(desk.page)


@COLORS
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_all_dialogs_are_accessible(
    desks: Desks, room: Room, color: Literal["light", "dark"], size: ViewportSize
) -> None:
    desk = await busy(desks, room, color)
    await desk.page.set_viewport_size(size)
    for name in BUTTONS:
        await desk.page.get_by_role("button", name=name).first.click()
        await audit_dialog(desk)
    for name in ("Settings", "Keys"):
        await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
        await expect(desk.page.get_by_role("menu")).to_be_visible()
        await audit(desk.page)
        await desk.page.get_by_role("menuitem", name=name).click()
        await audit_dialog(desk)


async def audit_dialog(desk: Desk) -> None:
    """Waits for it, and has it closed afterwards."""
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    await audit(desk.page)
    await desk.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
