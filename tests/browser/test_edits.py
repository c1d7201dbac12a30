"""Editing and deleting own messages."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.async_api import Locator, expect
from pydantic import JsonValue

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, posted

pytestmark = pytest.mark.behaviour("M-262")

MODS: Sequence[JsonValue] = [{"edits": {"most": 3}}]
THREAD = "channel.general"


def field(desk: Desk) -> Locator:
    return desk.main.get_by_label("New text of the message")


async def said(desk: Desk) -> list[str]:
    """The texts of the shown messages."""
    texts = await desk.conversation.locator("[data-message] .prose").all_inner_texts()
    return [text.strip() for text in texts]


async def test_arrow_up_edits_the_last_own_message_also_after_a_reload(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann", THREAD)
    await desk.says("frist")
    await desk.composer.press("ArrowUp")
    await expect(field(desk)).to_be_focused()
    await expect(field(desk)).to_have_value("frist")
    await field(desk).fill("first")
    await audit(desk.page)
    await field(desk).press("Enter")
    message = await desk.sees("first")
    await expect(message.get_by_role("button", name="edited")).to_be_visible()
    await expect(field(desk)).to_have_count(0)
    await expect(desk.composer).to_be_focused()
    assert await said(desk) == ["first"]
    # An unfinished edit survives a reload, separately from the draft.
    await desk.write("a draft")
    await message.focus()
    await desk.page.keyboard.press("e")
    await field(desk).fill("first, bet")
    await desk.reload()
    await expect(field(desk)).to_have_value("first, bet")
    await field(desk).press("Escape")
    await expect(desk.composer).to_have_value("a draft")
    assert await said(desk) == ["first"]
    # The reason for a refused edit is shown below it.
    await desk.write("")
    for text in ("second", "third", "fourth"):
        await desk.composer.press("ArrowUp")
        await field(desk).fill(text)
        await field(desk).press("Enter")
        if text != "fourth":
            await desk.sees(text)
            await expect(field(desk)).to_have_count(0)
    await expect(desk.main.get_by_role("alert")).to_contain_text("was edited 3 times")
    await expect(field(desk)).to_have_value("fourth")


async def test_an_edit_that_another_tab_has_saved_ends_here_too(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room, "ann", THREAD)
    await desk.says("frist")
    await desk.composer.press("ArrowUp")
    await field(desk).fill("first")
    other = await desk.another_tab(f"{room.page}#/thread/{THREAD}")
    await expect(field(other)).to_have_value("first")
    elsewhere = await desk.another_tab(f"{room.page}#/thread/broadcast")
    await elsewhere.is_joined()
    await field(desk).press("Enter")
    for tab in (other, elsewhere):
        await tab.thread(THREAD).click()
        await tab.sees("first")
        await expect(field(tab)).to_have_count(0)
        await expect(tab.composer).to_have_value("")


async def test_a_change_by_someone_else_shows_everywhere_is_nothing_new_and_has_a_history(
    desks: Desks, room: Room
) -> None:
    bob, desk = await room.join("bob"), await desks.sit(room, "ann", THREAD)
    message = await posted(bob, "@ann old words")
    await posted(bob, "between")
    await desk.sees("between")
    await desk.has_read(THREAD)
    await desk.visit("inbox")
    item = desk.main.get_by_role("listitem").filter(has_text="bob")
    await expect(item).to_contain_text("old words")
    await bob.client.call("edit_message", message_id=message, text="@ann new **words**")
    await expect(item).to_contain_text("new words")
    await bob.tells("ann", "have a look")
    await expect(desk.thread("dm.ann.bob").locator(".badge")).to_be_visible()
    await expect(desk.thread(THREAD).locator(".badge")).to_have_count(0)
    await desk.open_thread(THREAD)
    await desk.sees("new words")
    assert await said(desk) == ["@ann new words", "between"]
    await expect(desk.conversation.get_by_role("separator")).to_have_count(0)
    await bob.client.call("edit_message", message_id=message, text="newer **words**")
    newer = await desk.sees("newer words")
    await posted(bob, "after")
    after = await desk.sees("after")
    await after.focus()  # the keyboard skips messages that only edit another
    for key, reached in (("k", "between"), ("k", "newer words"), ("j", "between")):
        await desk.page.keyboard.press(key)
        await expect(desk.message(reached)).to_be_focused()
    await newer.get_by_role("button", name="edited").click()
    dialog = desk.page.get_by_role("dialog", name="History of the message")
    versions = dialog.get_by_role("listitem")
    await expect(versions).to_have_count(3)
    await expect(versions.nth(0)).to_contain_text("old words")
    await expect(versions.nth(2).locator("strong")).to_have_text("words")
    await audit(desk.page)
    await desk.visit("inbox")
    await bob.client.call("delete_message", message_id=message)
    await expect(item).to_contain_text("This message was deleted.")


async def test_deleting_an_own_message_needs_confirmation(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await posted(bob, "of bob")
    desk = await desks.sit(room, "ann", THREAD)
    await desk.says("too much")
    await desk.act(desk.message("too much"), "More")
    await desk.page.get_by_role("menuitem", name="Delete…").click()
    dialog = desk.page.get_by_role("dialog", name="Delete this message?")
    await expect(dialog).to_contain_text("too much")
    await desk.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await desk.message("too much").focus()
    await desk.page.keyboard.press("Delete")
    await dialog.get_by_role("button", name="Delete").click()
    gone = await desk.sees("This message was deleted.")
    await expect(desk.message("too much")).to_have_count(0)
    for message in (gone, desk.message("of bob")):
        await desk.act(message, "More")
        await expect(desk.page.get_by_role("menu")).to_be_visible()
        await expect(desk.page.get_by_role("menuitem", name="Edit")).to_have_count(0)
        await desk.page.keyboard.press("Escape")
