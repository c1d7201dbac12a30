"""Titles of threads; what is resolved, followed and muted; what mods let a sender know."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import expect

from hubbub.client import Client
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Room

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["threads", {"moderation": {"secrets": "redact"}}]) as room:
        yield room
        await desks.leave()


async def replied(client: Client) -> str:
    """A message with one reply; the reply thread."""
    said = await client.call("post_to_channel", channel="general", text="who knows why?")
    assert isinstance(said, dict)
    await client.call("reply", message_id=said["id"], text="I do")
    return f"{THREAD}.t{said['seq']}"


async def in_thread(desks: Desks, office: Room, thread: str, **how: Any) -> Desk:
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await desk.visit("thread", thread)
    return desk


async def chooses(desk: Desk, deed: str) -> None:
    """From the menu of the thread in the middle, when the mod has put it there."""
    await desk.main.get_by_role("button", name="More in this thread").click()
    await desk.page.get_by_role("menuitem", name=deed, exact=True).click()


@pytest.mark.behaviour("M-335")
async def test_a_title_is_set_and_shows_wherever_the_thread_does(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    thread = await replied(bob)
    desk = await in_thread(desks, office, thread)
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Replies in #general")
    await chooses(desk, "Set the title…")
    dialog = desk.page.get_by_role("dialog", name="Title of the thread")
    await dialog.get_by_label("Title", exact=True).fill("Why it is late")
    await dialog.get_by_role("button", name="Save").click()
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Why it is late")
    await expect(desk.thread(thread)).to_contain_text("Why it is late")
    await expect(desk.page).to_have_title("Why it is late · test")
    await bob.call("set_thread_title", thread=thread, title="Late")
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Late")
    await desk.page.reload()
    await desk.is_joined()
    await expect(desk.thread(thread)).to_contain_text("Late")
    await desk.visit("thread", THREAD)
    await expect((await desk.sees("who knows why?")).locator(".replies")).to_contain_text("Late")


@pytest.mark.behaviour("M-335")
async def test_a_thread_is_resolved_and_opened_again_live(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    thread = await replied(bob)
    desk = await in_thread(desks, office, thread)
    await chooses(desk, "Resolve")
    chip = desk.main.get_by_title("Resolved by ann")
    await expect(chip).to_be_visible()
    await expect(desk.thread(thread)).to_contain_text("resolved")
    await bob.call("reopen_thread", thread=thread)
    await expect(chip).to_have_count(0)
    await bob.call("resolve_thread", thread=thread)
    await expect(desk.main.get_by_title("Resolved by bob")).to_be_visible()
    await desk.says("one more thing")
    await expect(desk.main.get_by_title("Resolved by bob")).to_have_count(0)
    await chooses(desk, "Resolve")
    await chooses(desk, "Open again")
    await expect(desk.thread(thread)).not_to_contain_text("resolved")


@pytest.mark.behaviour("M-336")
async def test_a_muted_thread_is_dimmed_with_its_replies_until_one_is_followed(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    desk = await in_thread(desks, office, "dm.ann.bob")
    await bob.call("send_text_message", to="ann", text="hello")
    await desk.sees("hello")
    await chooses(desk, "Mute")
    row = desk.thread("dm.ann.bob")
    await expect(row).to_have_class("list-row  muted")
    await desk.visit("thread", "broadcast")
    await bob.call("send_text_message", to="ann", text="are you there")
    await expect(row).to_contain_text("1 unread")
    await expect(desk.page).to_have_title("Everyone · test")
    await bob.call("send_text_message", to="ann", text="are you there @ann")
    await expect(desk.page).to_have_title("(1) Everyone · test")
    await desk.visit("thread", "dm.ann.bob")
    await chooses(desk, "Do not mute any more")
    await expect(row).not_to_have_class("muted")
    await chooses(desk, "Follow")
    await expect(desk.main.locator(".label-chip")).to_have_text("Followed")
    await chooses(desk, "Do not follow any more")
    await expect(desk.main.locator(".label-chip")).to_have_count(0)


@pytest.mark.behaviour("M-337")
async def test_what_a_mod_changes_of_a_message_is_told_to_its_sender(
    desks: Desks, office: Room
) -> None:
    desk = await in_thread(desks, office, THREAD)
    await desk.write("the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    await desk.send()
    await expect(desk.page.locator(".toast")).to_contain_text("looks like a secret")


@pytest.mark.behaviour("M-335")
@pytest.mark.parametrize("color", ["light", "dark"])
async def test_labels_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    thread = await replied(bob)
    await bob.call("set_thread_title", thread=thread, title="w" * 120)
    await bob.call("resolve_thread", thread=thread)
    desk = await in_thread(desks, office, thread, color=color)
    await chooses(desk, "Mute")
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        for where in (thread, THREAD):
            await desk.visit("thread", where)
            await desk.is_drawn()
            await audit(desk.page)
            assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
    await desk.visit("thread", thread)
    await chooses(desk, "Set the title…")
    await audit(desk.page)
