"""Keyboard shortcuts and focus."""

from __future__ import annotations

import asyncio

from playwright.async_api import Route, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room

GENERAL = "channel.general"
# Escape before the newly focused panel is painted.
ESCAPE_AT_ONCE = """() => document.addEventListener("focusin", ({target}) => {
  target.dispatchEvent(new KeyboardEvent("keydown", {key: "Escape", bubbles: true}));
}, {once: true})"""


async def is_at(desk: Desk, thread: str) -> None:
    await expect(desk.thread(thread)).to_have_attribute("aria-current", "page")


async def leaves_the_composer(desk: Desk) -> None:
    """Move the focus away, so that letters are commands."""
    await expect(desk.composer).to_be_focused()  # otherwise it gets the focus later
    await desk.page.locator("#middle").focus()


async def test_keys_switch_between_threads_and_to_the_next_unread_one(
    desks: Desks, room: Room
) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    desk = await desks.sit(room, "ann")
    await bob.tells("ann", "hello")
    await desk.open_thread("dm.ann.bob")
    await desk.has_read("dm.ann.bob")
    await desk.open_thread(GENERAL)
    for thread in ("dm.ann.bob", "broadcast", GENERAL):
        await desk.page.keyboard.press("Alt+ArrowDown")
        await is_at(desk, thread)
        await expect(desk.composer).to_be_focused()
    await desk.page.keyboard.press("Alt+ArrowUp")
    await is_at(desk, "broadcast")
    await cyd.tells("ann", "something new")
    await expect(desk.thread("dm.ann.cyd").locator(".badge")).to_be_visible()
    await desk.page.keyboard.press("Alt+Shift+ArrowDown")
    await is_at(desk, "dm.ann.cyd")
    await desk.sees("something new")
    await desk.has_read("dm.ann.cyd")
    await desk.page.keyboard.press("Alt+Shift+ArrowDown")
    await desk.announces("Nothing is unread.")
    await is_at(desk, "dm.ann.cyd")


async def test_letters_are_commands_outside_of_text_fields_and_focus_returns_to_where_it_was(
    desks: Desks, room: Room
) -> None:
    await room.join("bob")
    desk = await desks.sit(room, "ann", GENERAL)
    await desk.composer.press_sequentially("gi [?]/")
    await expect(desk.composer).to_have_value("gi [?]/")
    await is_at(desk, GENERAL)
    await expect(desk.page.get_by_role("dialog")).to_have_count(0)
    await desk.write("")
    await leaves_the_composer(desk)
    await desk.page.keyboard.press("?")
    dialog = desk.page.get_by_role("dialog", name="Keyboard shortcuts")
    item = dialog.get_by_role("listitem").filter(has_text="Next unread thread")
    await expect(item.locator("kbd")).to_have_text(["Alt", "Shift", "↓"])
    await desk.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await desk.page.keyboard.press("[")
    await expect(desk.threads).to_be_hidden()
    await desk.page.reload()
    await expect(desk.composer).to_be_focused()
    await expect(desk.threads).to_be_hidden()
    await leaves_the_composer(desk)
    await desk.page.keyboard.press("[")
    await expect(desk.threads).to_be_visible()
    await desk.page.keyboard.press("]")
    await expect(desk.details).to_contain_text("general")
    await desk.page.keyboard.press("]")
    await expect(desk.details).to_have_count(0)
    for keys, heading in (("gi", "Inbox"), ("gn", "The network"), ("gh", "test")):
        await desk.press_sequence(keys)
        await expect(desk.page.get_by_role("heading", name=heading, exact=True)).to_be_visible()
    # Panels, menus and skip links.
    await desk.open_thread(GENERAL)
    person = desk.page.locator('[data-participant="bob"]')
    await person.focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.details.get_by_role("heading", name="Participant")).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(desk.details).to_have_count(0)
    await expect(person).to_be_focused()
    await desk.page.evaluate(ESCAPE_AT_ONCE)
    await person.press("Enter")
    await expect(desk.details).to_have_count(0)
    await expect(person).to_be_focused()
    button = desk.page.get_by_role("button", name="ann: settings, help, leave")
    await button.focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(desk.page.get_by_role("menuitem").first).to_be_focused()
    await desk.page.keyboard.press("k")
    await expect(desk.page.get_by_role("menuitem", name="Keyboard shortcuts")).to_be_focused()
    await desk.page.keyboard.press("End")
    await expect(desk.page.get_by_role("menuitem", name="Leave the network")).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(desk.page.get_by_role("menu")).to_have_count(0)
    await expect(button).to_be_focused()
    skip = desk.page.get_by_role("link", name="To the conversation")
    await skip.focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.page.locator("#middle")).to_be_focused()
    await is_at(desk, GENERAL)


async def test_a_dialog_does_not_stay_over_another_place_or_for_another_person(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann", GENERAL)
    await desk.visit("inbox")
    await desk.choose_in_own_menu("Settings")
    dialog = desk.page.get_by_role("dialog", name="Settings")
    await expect(dialog).to_be_visible()
    await desk.page.go_back()
    await expect(desk.composer).to_be_focused()
    await expect(dialog).to_have_count(0)
    await desk.choose_in_own_menu("Settings")
    await expect(dialog).to_be_visible()
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await other.choose_in_own_menu("Leave the network")
    await desk.join_as("bob")
    await expect(dialog).to_have_count(0)


async def test_a_view_that_loads_late_gets_the_focus(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room, "ann", GENERAL, new=True)
    arriving = asyncio.Event()

    async def late(route: Route) -> None:
        await arriving.wait()
        await route.continue_()

    await desk.page.route("**/features/inbox/inbox.js", late)
    await leaves_the_composer(desk)
    await desk.press_sequence("gi")
    await expect(desk.main).to_be_focused()
    arriving.set()
    await expect(desk.page.get_by_role("heading", name="Inbox")).to_be_focused()
