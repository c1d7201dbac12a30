"""The command palette."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room


def ask(desk: Desk) -> Locator:
    return desk.page.get_by_role("combobox", name="Go to or do anything")


def chosen(desk: Desk) -> Locator:
    return desk.page.get_by_role("option", selected=True)


async def at_a_thread(desks: Desks, network: Network | Room) -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    await desk.open_thread("channel.general")
    return desk


async def test_it_opens_while_one_writes_and_escape_leads_back(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.composer.focus()
    await desk.page.keyboard.press("Control+k")
    await expect(ask(desk)).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(ask(desk)).to_have_count(0)
    await expect(desk.composer).to_be_focused()


async def test_a_few_letters_and_enter_lead_to_somebody(desks: Desks, room: Room) -> None:
    await room.join("bartholomew")
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially("btmw")
    await expect(chosen(desk)).to_contain_text("bartholomew")
    await desk.page.keyboard.press("Enter")
    await expect(desk.thread("dm.ann.bartholomew")).to_have_attribute("aria-current", "page")
    await expect(desk.composer).to_be_focused()


async def test_the_arrows_move_the_choice_round_and_round(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially(">")
    options = desk.page.get_by_role("option")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await desk.page.keyboard.press("ArrowUp")
    await expect(options.last).to_have_attribute("aria-selected", "true")
    named = await options.last.get_attribute("id")
    await expect(ask(desk)).to_have_attribute("aria-activedescendant", named or "")
    await desk.page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")


async def test_commands_show_their_keys_and_run(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially(">inbox")
    await expect(chosen(desk).locator("kbd")).to_have_text(["G", "I"])
    await desk.page.keyboard.press("Enter")
    await expect(desk.page.get_by_role("heading", name="Inbox")).to_be_focused()


async def test_a_command_is_about_the_thread_where_it_was_asked_for(
    desks: Desks, room: Room
) -> None:
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially("leave the channel")
    await desk.page.keyboard.press("Enter")
    await expect(desk.thread("channel.general")).to_have_count(0)


async def test_what_was_chosen_last_comes_first_next_time(desks: Desks, room: Room) -> None:
    for name in ("bob", "cyd"):
        await room.join(name)
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially("cyd")
    await desk.page.keyboard.press("Enter")
    await expect(desk.thread("dm.ann.cyd")).to_have_attribute("aria-current", "page")
    await desk.page.reload()
    await desk.is_joined()
    await desk.page.keyboard.press("Control+k")
    await expect(chosen(desk)).to_contain_text("cyd")


async def test_a_click_chooses_and_a_click_beside_it_closes(desks: Desks, room: Room) -> None:
    await room.join("bob")
    desk = await at_a_thread(desks, room)
    await desk.page.get_by_role("button", name="Go to or do anything").click()
    await expect(ask(desk)).to_be_focused()
    await desk.page.mouse.click(5, 400)
    await expect(ask(desk)).to_have_count(0)
    await desk.page.get_by_role("button", name="Go to or do anything").click()
    await desk.page.get_by_role("option").filter(has_text="bob").click()
    await expect(desk.thread("dm.ann.bob")).to_have_attribute("aria-current", "page")


async def test_what_is_not_found_is_said(desks: Desks, room: Room) -> None:
    desk = await at_a_thread(desks, room)
    await desk.page.keyboard.press("Control+k")
    await ask(desk).press_sequentially("qqqq")
    await expect(desk.page.get_by_role("dialog").get_by_role("status")).to_be_visible()
    await desk.page.keyboard.press("Enter")
    await expect(ask(desk)).to_be_focused()
