"""Delivery modes of messages to agents at work."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.room import Room
from tests.browser.support.worker import at_work

pytestmark = pytest.mark.behaviour("H-142")


def mode(desk: Desk) -> Locator:
    return desk.main.get_by_role("button", name="How your next message reaches agents at work")


async def chooses(desk: Desk, name: str) -> None:
    await mode(desk).click()
    await desk.page.get_by_role("menuitemradio", name=name).click()


async def test_a_delivery_mode_applies_to_the_next_message_and_only_while_an_agent_works(
    desks: Desks, room: Room
) -> None:
    async with at_work(desks, room) as (desk, clerk):
        for way in ("queue", "steer", "interrupt"):
            await chooses(desk, way.capitalize())
            await desk.says(f"first with {way}")
            assert (await clerk.hears(f"first with {way}")).mode == way
            await expect(mode(desk)).to_have_text("Deliver as usual")
            await desk.says(f"then without {way}")
            assert (await clerk.hears(f"then without {way}")).mode is None
        await desk.submit("/steer look into the cellar")
        assert (await clerk.hears("look into the cellar")).mode == "steer"
        await desk.submit("/queue")
        await expect(desk.main.get_by_role("alert")).to_have_text("What do you want to say?")
        await desk.write("")
        await desk.page.set_viewport_size(NARROW)
        await chooses(desk, "Queue")
        await expect(mode(desk)).to_contain_text("Wait for the next turn")
        await expect(mode(desk)).to_be_in_viewport(ratio=1)
        await mode(desk).click()
        await expect(desk.page.get_by_role("menu")).to_be_in_viewport(ratio=1)
        await desk.page.keyboard.press("Escape")
        await desk.page.set_viewport_size(WIDE)
        await clerk.ends()
        await expect(mode(desk)).to_have_count(0)
        await desk.says("thank you")
        assert (await clerk.hears("thank you")).mode is None
