"""What happened since the last visit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Room

pytestmark = pytest.mark.behaviour("M-334")

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["digest"]) as room:
        yield room
        await desks.leave()


async def posted(client: Client, text: str) -> None:
    await client.call("post_to_channel", channel="general", text=text)


async def ann(desks: Desks, office: Room, **how: Any) -> Desk:
    """Has been here, and comes back when others have said something."""
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await expect(desk.threads.get_by_role("link", name="What happened")).to_be_attached()
    return desk


def thread(desk: Desk, title: str) -> Locator:
    return desk.main.get_by_role("article", name=title)


async def test_what_is_new_is_told_by_thread_and_leads_there(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    desk = await ann(desks, office)
    await posted(bob, "The release is out")
    await posted(bob, "@ann can you look?")
    await bob.call("send_text_message", to="ann", text="Hello ann")
    await desk.threads.get_by_role("link", name="What happened").click()
    general = thread(desk, "#general")
    await expect(general).to_contain_text("2 new")
    await expect(general).to_contain_text("1 mention of you")
    await expect(general).to_contain_text("bob 2")
    await expect(thread(desk, "bob")).to_contain_text("Hello ann")
    waiting = desk.main.get_by_role("region", name="Waits for you")
    await expect(waiting).to_contain_text("can you look?")
    await general.get_by_role("link", name="The release is out").click()
    await expect(desk.conversation.locator("[data-marked=true]")).to_contain_text("The release")


async def test_what_was_seen_is_not_told_again(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    desk = await ann(desks, office)
    await posted(bob, "The release is out")
    await desk.visit("digest")
    await expect(thread(desk, "#general")).to_be_visible()
    await desk.main.get_by_role("button", name="I have seen it").click()
    await expect(desk.main).to_contain_text("Nothing new")
    await posted(bob, "And now the next")
    await desk.main.get_by_role("button", name="Look again").click()
    await expect(thread(desk, "#general")).to_contain_text("1 new")
    await desk.main.get_by_label("Since").select_option("a week ago")
    await expect(thread(desk, "#general")).to_contain_text("2 new")


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_the_digest_is_accessible_and_fits_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    desk = await ann(desks, office, color=color)
    await posted(bob, f"@ann {'w' * 300}?")
    await posted(bob, "**the end**")
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        await desk.visit("digest")
        await expect(thread(desk, "#general")).to_be_visible()
        await desk.is_drawn()
        await audit(desk.page)
        assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
