"""The command palette."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, call, posted


def ask(desk: Desk) -> Locator:
    return desk.page.get_by_role("combobox", name="Go to or do anything")


def chosen(desk: Desk) -> Locator:
    return desk.page.get_by_role("option", selected=True)


async def asks(desk: Desk, words: str) -> None:
    await desk.page.keyboard.press("Control+k")
    await expect(ask(desk)).to_be_focused()
    await ask(desk).press_sequentially(words)


async def test_the_palette_opens_conversations_and_runs_commands_by_a_few_letters(
    desks: Desks, room: Room
) -> None:
    await room.join("bartholomew")
    desk = await desks.sit(room, "ann", "channel.general")
    await asks(desk, "")
    await desk.page.keyboard.press("Escape")
    await expect(ask(desk)).to_have_count(0)
    await expect(desk.composer).to_be_focused()
    await asks(desk, "btmw")
    await expect(chosen(desk)).to_contain_text("bartholomew")
    await desk.page.keyboard.press("Enter")
    await expect(desk.thread("dm.ann.bartholomew")).to_have_attribute("aria-current", "page")
    await expect(desk.composer).to_be_focused()
    await asks(desk, ">inbox")
    await expect(chosen(desk).locator("kbd")).to_have_text(["G", "I"])
    await desk.page.keyboard.press("Enter")
    await expect(desk.page.get_by_role("heading", name="Inbox")).to_be_focused()
    await desk.open_thread("channel.general")
    await asks(desk, "leave the channel")
    await desk.page.keyboard.press("Enter")
    await expect(desk.thread("channel.general")).to_have_count(0)
    await desk.reload()
    await desk.page.keyboard.press("Control+k")
    await expect(desk.page.get_by_role("option").nth(1)).to_contain_text("bartholomew")  # lately


async def test_the_palette_is_used_by_arrows_and_click_and_finds_replies_by_their_message(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    asked = await posted(bob, "where shall we have lunch?")
    await call(bob.client, "reply", message_id=asked, text="at the harbour")
    desk = await desks.sit(room, "ann", "channel.general")
    await asks(desk, ">")
    options = desk.page.get_by_role("option")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await desk.page.keyboard.press("ArrowUp")
    await expect(options.last).to_have_attribute("aria-selected", "true")
    named = await options.last.get_attribute("id")
    await expect(ask(desk)).to_have_attribute("aria-activedescendant", named or "")
    await desk.page.keyboard.press("ArrowDown")
    await expect(options.first).to_have_attribute("aria-selected", "true")
    await ask(desk).fill("qqqq")
    await expect(desk.page.get_by_role("dialog").get_by_role("status")).to_be_visible()
    await desk.page.keyboard.press("Enter")
    await expect(ask(desk)).to_be_focused()
    await desk.page.mouse.click(5, 400)
    await expect(ask(desk)).to_have_count(0)
    await desk.page.get_by_role("button", name="Go to or do anything").click()
    await options.filter(has_text="bob").click()
    await expect(desk.thread("dm.ann.bob")).to_have_attribute("aria-current", "page")
    await asks(desk, "lunch")
    await expect(chosen(desk)).to_contain_text("Replies to: where shall we have lunch?")
    await desk.page.keyboard.press("Enter")
    await expect(desk.main).to_contain_text("at the harbour")
