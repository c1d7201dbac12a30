"""Parts of the page that could not be fetched come by themselves when the hub is back."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.support.desk import Desks
from tests.browser.support.network import Room
from tests.browser.support.wire import laid

pytestmark = pytest.mark.behaviour("U-9")

PAGE_ONLY = 20_000
"""Bytes: more than the page itself, far less than its style sheets and modules."""
TRIED_AGAIN = "It is tried again"


async def test_a_page_whose_hub_goes_away_while_it_loads_comes_by_itself(
    desks: Desks, room: Room
) -> None:
    async with laid(room.port) as wire:
        desk = await desks.sit("about:blank")
        desk.expect_losses()
        wire.cut_after(PAGE_ONLY)
        await desk.page.goto(wire.url)
        await expect(desk.page.get_by_role("status")).to_contain_text(TRIED_AGAIN)
        wire.mend()
        await desk.join_as("ann")


@pytest.mark.parametrize("view", ["network", "control"])
async def test_a_view_that_could_not_be_fetched_comes_by_itself(
    desks: Desks, room: Room, view: str
) -> None:
    async with laid(room.port) as wire:
        desk = await desks.sit(wire.url)
        desk.expect_losses()
        await desk.join_as("ann")
        wire.cut()
        await desk.notices_the_loss()
        await desk.visit(view)
        await expect(desk.main.get_by_role("status")).to_contain_text(TRIED_AGAIN)
        wire.mend()
        await expect(desk.main.get_by_role("heading", level=1)).to_be_visible()
