"""Titles of threads, resolved, muted and followed threads, and changes by mods."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.async_api import expect
from pydantic import JsonValue

from tests.browser.support.desk import Desks
from tests.browser.support.room import Room, posted

MODS: Sequence[JsonValue] = ["threads", {"moderation": {"secrets": "redact"}}]
THREAD = "channel.general"


@pytest.mark.behaviour("M-335")
async def test_the_title_and_the_resolution_of_a_thread_are_updated_live(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    said = await posted(bob, "who knows why?")
    await bob.client.call("reply", message_id=said, text="I do")
    thread = f"{THREAD}.t{said[1:]}"
    desk = await desks.sit(room, "ann", thread)
    title, row = desk.main.get_by_role("heading", level=1), desk.thread(thread)
    await expect(title).to_have_text("Replies in #general")
    await desk.choose_in_thread_menu("Set the title…")
    dialog = desk.page.get_by_role("dialog", name="Title of the thread")
    await dialog.get_by_label("Title", exact=True).fill("Why it is late")
    await dialog.get_by_role("button", name="Save").click()
    await expect(title).to_have_text("Why it is late")
    await expect(row).to_contain_text("Why it is late")
    await expect(desk.page).to_have_title("Why it is late · test")
    await bob.client.call("set_thread_title", thread=thread, title="Late")
    await expect(title).to_have_text("Late")
    await desk.choose_in_thread_menu("Resolve")
    await expect(desk.main.get_by_title("Resolved by ann")).to_be_visible()
    await expect(row).to_contain_text("resolved")
    await bob.client.call("reopen_thread", thread=thread)
    await expect(desk.main.get_by_title("Resolved by ann")).to_have_count(0)
    await bob.client.call("resolve_thread", thread=thread)
    await expect(desk.main.get_by_title("Resolved by bob")).to_be_visible()
    await desk.says("one more thing")
    await expect(desk.main.get_by_title("Resolved by bob")).to_have_count(0)
    await desk.choose_in_thread_menu("Resolve")
    await desk.choose_in_thread_menu("Reopen")
    await expect(row).not_to_contain_text("resolved")
    await desk.reload()
    await expect(row).to_contain_text("Late")
    await desk.visit("thread", THREAD)
    await expect((await desk.sees("who knows why?")).locator(".replies")).to_contain_text("Late")


@pytest.mark.behaviour("M-336", "M-337")
async def test_a_muted_thread_is_dimmed_and_a_change_by_a_mod_is_announced(
    desks: Desks, room: Room
) -> None:
    desk, bob = await desks.sit(room, "ann"), await room.join("bob")
    await bob.tells("ann", "hello")
    await desk.open_thread("dm.ann.bob")
    await desk.sees("hello")
    await desk.choose_in_thread_menu("Mute")
    row = desk.thread("dm.ann.bob")
    await expect(row).to_have_class("list-row  muted")
    await desk.visit("thread", "broadcast")
    await bob.tells("ann", "are you there")
    await expect(row).to_contain_text("1 unread")
    await expect(desk.page).to_have_title("Everyone · test")
    await bob.tells("ann", "are you there @ann")
    await expect(desk.page).to_have_title("(1) Everyone · test")
    await desk.visit("thread", "dm.ann.bob")
    await desk.choose_in_thread_menu("Unmute")
    await expect(row).not_to_have_class("list-row  muted")
    await desk.choose_in_thread_menu("Follow")
    await expect(desk.main.locator(".label-chip")).to_have_text("Followed")
    await desk.choose_in_thread_menu("Unfollow")
    await expect(desk.main.locator(".label-chip")).to_have_count(0)
    await desk.submit("the key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD")
    await desk.announces("looks like a secret")
