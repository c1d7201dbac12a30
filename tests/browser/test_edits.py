"""Messages that are edited and deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Room
from tests.unit.configs.people import Person

pytestmark = pytest.mark.behaviour("M-262")

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["edits"]) as room:
        yield room
        await desks.leave()


async def posted(bob: Person, text: str) -> str:
    said = await bob.client.call("post_to_channel", channel="general", text=text)
    assert isinstance(said, dict)
    return str(said["id"])


async def here(desks: Desks, office: Room, **how: Any) -> Desk:
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await desk.thread(THREAD).click()
    return desk


def field(desk: Desk) -> Locator:
    return desk.main.get_by_label("New text of the message")


async def chooses(desk: Desk, message: Locator, deed: str) -> None:
    """From the menu of a message."""
    await desk.act(message, "More")
    await desk.page.get_by_role("menuitem", name=deed).click()


async def said(desk: Desk) -> list[str]:
    """What the messages say that are shown."""
    texts = await desk.conversation.locator("[data-message] .prose").all_inner_texts()
    return [text.strip() for text in texts]


async def test_arrow_up_edits_ones_last_message_in_its_place(desks: Desks, office: Room) -> None:
    desk = await here(desks, office)
    await desk.says("frist")
    await desk.composer.press("ArrowUp")
    await expect(field(desk)).to_be_focused()
    await expect(field(desk)).to_have_value("frist")
    await field(desk).fill("first")
    await field(desk).press("Enter")
    message = await desk.sees("first")
    await expect(message.get_by_role("button", name="edited")).to_be_visible()
    await expect(field(desk)).to_have_count(0)
    await expect(desk.composer).to_be_focused()
    assert await said(desk) == ["first"]
    await desk.page.reload()
    await desk.is_joined()
    await desk.sees("first")
    assert await said(desk) == ["first"]


async def test_an_edit_of_somebody_else_shows_at_once_and_is_no_news(
    desks: Desks, office: Room
) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "old words")
    await posted(bob, "between")
    desk = await here(desks, office)
    await desk.sees("old words")
    await desk.has_read(THREAD)
    await desk.visit("inbox")
    await bob.client.call("edit_message", message_id=message, text="new words")
    await bob.tells("ann", "have a look")
    await expect(desk.thread("dm.ann.bob").locator(".badge")).to_be_visible()
    await expect(desk.thread(THREAD).locator(".badge")).to_have_count(0)
    await desk.thread(THREAD).click()
    await desk.sees("new words")
    assert await said(desk) == ["new words", "between"]
    await posted(bob, "after")
    await desk.sees("after")
    await bob.client.call("edit_message", message_id=message, text="newer words")
    await desk.sees("newer words")
    assert await said(desk) == ["newer words", "between", "after"]


async def test_the_keyboard_passes_over_what_only_changes_another(
    desks: Desks, office: Room
) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "one")
    for n in range(3):
        await bob.client.call("edit_message", message_id=message, text=f"one, changed {n}")
    await posted(bob, "two")
    desk = await here(desks, office)
    two = await desk.sees("two")
    await two.focus()
    await desk.page.keyboard.press("k")
    await expect(desk.message("one, changed 2")).to_be_focused()
    await desk.page.keyboard.press("ArrowDown")
    await expect(two).to_be_focused()


async def test_the_history_tells_what_was_said_before(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "first words")
    await bob.client.call("edit_message", message_id=message, text="second **words**")
    desk = await here(desks, office)
    shown = await desk.sees("second words")
    await shown.get_by_role("button", name="edited").click()
    dialog = desk.page.get_by_role("dialog", name="History of the message")
    versions = dialog.get_by_role("listitem")
    await expect(versions).to_have_count(2)
    await expect(versions.nth(0)).to_contain_text("first words")
    await expect(versions.nth(1).locator("strong")).to_have_text("words")
    await audit(desk.page)


async def test_one_deletes_ones_own_message_and_is_asked_before(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    await posted(bob, "of bob")
    desk = await here(desks, office)
    await desk.says("too much")
    await chooses(desk, desk.message("too much"), "Delete…")
    dialog = desk.page.get_by_role("dialog", name="Delete this message?")
    await expect(dialog).to_contain_text("too much")
    await audit(desk.page)
    await desk.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await desk.message("too much").focus()
    await desk.page.keyboard.press("Delete")
    await dialog.get_by_role("button", name="Delete").click()
    gone = await desk.sees("This message was deleted.")
    await expect(desk.message("too much")).to_have_count(0)
    await desk.act(gone, "More")
    await expect(desk.page.get_by_role("menuitem", name="Edit")).to_have_count(0)
    await desk.page.keyboard.press("Escape")
    await desk.act(desk.message("of bob"), "More")
    await expect(desk.page.get_by_role("menuitem", name="Copy link")).to_be_visible()
    await expect(desk.page.get_by_role("menuitem", name="Edit")).to_have_count(0)


async def test_what_one_has_begun_to_change_is_there_after_a_reload(
    desks: Desks, office: Room
) -> None:
    desk = await here(desks, office)
    await desk.says("words")
    await desk.write("a draft")
    await desk.message("words").focus()
    await desk.page.keyboard.press("e")
    await field(desk).fill("words, bet")
    await desk.page.reload()
    await desk.is_joined()
    await expect(field(desk)).to_have_value("words, bet")
    await field(desk).press("Escape")
    await expect(desk.composer).to_have_value("a draft")
    await desk.sees("words")
    assert await said(desk) == ["words"]


async def test_why_an_edit_is_refused_stands_below_it(desks: Desks) -> None:
    async with Room.open(mods=[{"edits": {"most": 1}}]) as office:
        desk = await here(desks, office)
        await desk.says("one")
        for text in ("two", "three"):
            await desk.composer.press("ArrowUp")
            await field(desk).fill(text)
            await field(desk).press("Enter")
            if text == "two":
                await desk.sees("two")
        await expect(desk.main.get_by_role("alert")).to_contain_text("was edited 1 times")
        await expect(field(desk)).to_have_value("three")
        await desks.leave()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_editing_is_accessible_and_fits_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    desk = await here(desks, office, color=color, size=NARROW)
    await desk.says("one")
    await desk.composer.press("ArrowUp")
    await field(desk).fill("two")
    await audit(desk.page)
    assert await desk.page.evaluate("document.documentElement.scrollWidth") == 360
    await desk.main.get_by_role("button", name="Save").click()
    await expect((await desk.sees("two")).get_by_role("button", name="edited")).to_be_visible()
    await audit(desk.page)
