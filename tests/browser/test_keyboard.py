"""The page without a mouse."""

from __future__ import annotations

import asyncio

from playwright.async_api import Route, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room


async def at_a_thread(desks: Desks, network: Network | Room) -> Desk:
    """ann, with three threads in the column: general, bob and everyone."""
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    bob = await network.join("bob")
    await bob.tells("ann", "hello")
    await desk.open_thread("dm.ann.bob")
    await desk.sees("hello")
    await desk.has_read("dm.ann.bob")
    await desk.open_thread("channel.general")
    return desk


async def is_at(desk: Desk, thread: str) -> None:
    await expect(desk.thread(thread)).to_have_attribute("aria-current", "page")


async def leave_the_composer(desk: Desk) -> None:
    """Letters are commands again."""
    await expect(desk.composer).to_be_focused()  # else the keyboard is still to go there
    await desk.page.locator("#middle").focus()


async def test_opening_a_thread_puts_the_keyboard_where_one_writes(
    desks: Desks, room: Room
) -> None:
    desk = await at_a_thread(desks, room)
    await expect(desk.composer).to_be_focused()


async def test_alt_and_the_arrows_go_from_thread_to_thread(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    for thread in ("dm.ann.bob", "broadcast", "channel.general"):
        await desk.page.keyboard.press("Alt+ArrowDown")
        await is_at(desk, thread)
        await expect(desk.composer).to_be_focused()
    await desk.page.keyboard.press("Alt+ArrowUp")
    await is_at(desk, "broadcast")


async def test_alt_shift_and_the_arrows_go_to_what_is_unread(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    cyd = await room.join("cyd")
    await cyd.tells("ann", "something new")
    await expect(desk.thread("dm.ann.cyd").locator(".badge")).to_be_visible()
    await desk.page.keyboard.press("Alt+Shift+ArrowDown")
    await is_at(desk, "dm.ann.cyd")
    await desk.sees("something new")
    await expect(desk.thread("dm.ann.cyd").locator(".badge")).to_have_count(0)
    await desk.page.keyboard.press("Alt+Shift+ArrowDown")
    await expect(desk.page.locator(".announcer")).to_have_text("Nothing is unread.")
    await is_at(desk, "dm.ann.cyd")


async def test_two_letters_go_to_the_inbox_and_home(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await leave_the_composer(desk)
    await desk.page.keyboard.type("gi")
    await expect(desk.page.get_by_role("heading", name="Inbox")).to_be_focused()
    await desk.page.keyboard.type("gh")
    await expect(desk.page.get_by_role("heading", name="test")).to_be_visible()


async def test_letters_that_are_written_are_no_commands(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.composer.press_sequentially("gi [?]/")
    await expect(desk.composer).to_have_value("gi [?]/")
    await is_at(desk, "channel.general")
    await expect(desk.page.get_by_role("dialog")).to_have_count(0)


async def test_brackets_show_and_hide_the_columns(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    left = desk.page.get_by_role("navigation", name="Threads")
    await leave_the_composer(desk)
    await desk.page.keyboard.press("[")
    await expect(left).to_be_hidden()
    await desk.page.reload()
    await expect(desk.composer).to_be_focused()
    await expect(left).to_be_hidden()
    await leave_the_composer(desk)
    await desk.page.keyboard.press("[")
    await expect(left).to_be_visible()
    await desk.page.keyboard.press("]")
    await expect(desk.details).to_contain_text("general")
    await desk.page.keyboard.press("]")
    await expect(desk.details).to_have_count(0)


async def test_escape_closes_the_details_and_leads_back(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    person = desk.page.locator('[data-participant="bob"]')
    await person.focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.details.get_by_role("heading", name="Participant")).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(desk.details).to_have_count(0)
    await expect(person).to_be_focused()


async def test_a_question_mark_shows_all_keys(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await leave_the_composer(desk)
    await desk.page.keyboard.press("?")
    dialog = desk.page.get_by_role("dialog", name="Keys")
    item = dialog.get_by_role("listitem").filter(has_text="Next unread thread")
    await expect(item.locator("kbd")).to_have_text(["Alt", "Shift", "↓"])
    await desk.page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)


async def test_a_menu_is_used_with_arrows_letters_and_escape(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    button = desk.page.get_by_role("button", name="ann: settings, help, leave")
    await button.focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(desk.page.get_by_role("menuitem").first).to_be_focused()
    await desk.page.keyboard.press("k")
    await expect(desk.page.get_by_role("menuitem", name="Keys")).to_be_focused()
    await desk.page.keyboard.press("End")
    await expect(desk.page.get_by_role("menuitem", name="Leave the network")).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(desk.page.get_by_role("menu")).to_have_count(0)
    await expect(button).to_be_focused()


async def test_the_first_tab_stop_leads_past_the_columns(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.page.reload()
    await desk.is_joined()
    await expect(desk.composer).to_be_focused()
    skip = desk.page.get_by_role("link", name="To the conversation")
    await skip.focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.page.locator("#middle")).to_be_focused()
    await is_at(desk, "channel.general")


async def test_leaving_ends_it_and_forgets_the_token(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await desk.page.get_by_role("button", name="ann: settings, help, leave").click()
    await desk.page.get_by_role("menuitem", name="Leave the network").click()
    for each in (desk, other):
        await expect(each.page.get_by_label("Your name")).to_have_value("ann")
    for each in (desk, other):
        await each.page.reload()
        await expect(each.page.get_by_role("button", name="Join")).to_be_focused()


async def test_a_view_that_arrives_late_gets_the_keyboard(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    arriving = asyncio.Event()

    async def late(route: Route) -> None:
        await arriving.wait()
        await route.continue_()

    await desk.page.route("**/features/inbox/inbox.js", late)
    await leave_the_composer(desk)
    await desk.page.keyboard.type("gi")
    await expect(desk.main).to_be_focused()
    arriving.set()
    await expect(desk.page.get_by_role("heading", name="Inbox")).to_be_focused()
