"""The composer: drafts, completions, commands, quotes, and refused messages."""

from __future__ import annotations

import re

from playwright.async_api import WebSocket, expect
from pydantic import JsonValue

from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

GENERAL = "channel.general"
LATER_MS = 4_000_000_000_000
"""In 2096."""


async def test_enter_sends_the_composer_grows_and_a_refused_message_is_edited_or_discarded(
    desks: Desks, room: Room
) -> None:
    await room.join("bob")
    desk = await desks.sit(room, "ann", GENERAL)
    height = "(it) => it.offsetHeight"
    one = await desk.composer.evaluate(height)
    await desk.composer.press_sequentially("one")
    await desk.composer.press("Shift+Enter")
    await desk.composer.press_sequentially("two")
    await expect(desk.composer).to_have_value("one\ntwo")
    two = await desk.composer.evaluate(height)
    await desk.composer.press("Enter")
    await expect(desk.composer).to_have_value("")
    await desk.is_stored("one")
    prose = desk.message("one").locator(".prose")
    await expect(prose).to_have_text(re.compile(r"^\s*one\s*two\s*$"))
    await desk.write("x\n" * 200)
    most = await desk.composer.evaluate(height)
    assert one < two < most <= 0.4 * 800 + 1
    await desk.write("")
    assert await desk.composer.evaluate(height) == one
    await desk.composer.press_sequentially("to @bob")
    await desk.composer.press("Control+Enter")  # also while a completion is offered
    await desk.is_stored("to @bob")
    await desk.composer.press("ArrowUp")
    await expect(desk.message("to @bob")).to_be_focused()
    too_long = "x" * 70_000
    refused = desk.conversation.locator("[data-state=refused]")
    for choice in ("Edit", "Try again"):
        await desk.submit(too_long)
        await expect(refused.get_by_role("alert")).to_contain_text("Not sent")
        await refused.get_by_role("button", name=choice).click()
        if choice == "Edit":
            await expect(refused).to_have_count(0)
            await expect(desk.composer).to_have_value(too_long)
    await expect(refused.get_by_role("alert")).to_contain_text("Not sent")
    await refused.get_by_role("button", name="Discard").click()
    await expect(refused).to_have_count(0)
    await desk.says("short")


async def test_drafts_are_stored_by_thread_and_shared_by_tabs_until_sent(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room, "ann", GENERAL)
    await bob.tells("ann", "hello")
    await desk.write("half a thought")
    await desk.open_thread("dm.ann.bob")
    await expect(desk.composer).to_have_value("")
    await expect(desk.thread(GENERAL).locator(".drafted")).to_be_visible()
    await desk.write("another half")
    await desk.page.reload()
    await expect(desk.composer).to_have_value("another half")
    await desk.open_thread(GENERAL)
    await expect(desk.composer).to_have_value("half a thought")
    other = await desk.another_tab(room.page)
    await other.open_thread(GENERAL)
    await expect(other.composer).to_have_value("half a thought")
    await desk.write("half a thought more")
    await expect(other.composer).to_have_value("half a thought more")
    await desk.send()
    await desk.is_stored("half a thought more")
    await expect(other.composer).to_have_value("")
    await expect(desk.thread(GENERAL).locator(".drafted")).to_have_count(0)
    await desk.page.reload()
    await expect(desk.composer).to_have_value("")


async def test_names_and_commands_are_completed_and_commands_run(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await room.join("carol")
    await bob.client.call("create_channel", name="attic")
    desk = await desks.sit(room, "ann", GENERAL)
    await desk.composer.press_sequentially("hello @")
    options = desk.page.get_by_role("option")
    await expect(options).to_have_count(2)
    await desk.composer.press("ArrowDown")
    await expect(desk.page.get_by_role("option", selected=True)).to_contain_text("carol")
    active = await desk.composer.get_attribute("aria-activedescendant")
    await expect(desk.page.locator(f"#{active}")).to_contain_text("carol")
    await desk.composer.press("Tab")
    await expect(desk.composer).to_have_value("hello @carol ")
    await expect(options).to_have_count(0)
    await desk.composer.press_sequentially("@b")
    await desk.composer.press("Escape")
    await expect(options).to_have_count(0)
    await expect(desk.composer).to_be_focused()
    await desk.write("")
    await desk.composer.press_sequentially("/jo")
    await options.filter(has_text="/join").click()
    await expect(desk.composer).to_have_value("/join ")
    await desk.composer.press_sequentially("attic")
    await desk.send()
    await expect(desk.thread("channel.attic")).to_be_visible()
    await desk.open_thread(GENERAL)
    await desk.submit("/fly away")
    await expect(desk.page.get_by_role("alert")).to_contain_text("no command /fly")
    await expect(desk.composer).to_have_value("/fly away")
    await desk.submit("//fly away")
    await desk.is_stored("/fly away")


async def test_a_quote_links_to_its_source_and_activity_is_shown_below_the_last_message(
    desks: Desks, room: Room
) -> None:
    bob, bot = await room.join("bob"), await room.enters("bot")
    await bot.call("join_channel", channel="general")
    await bob.posts("general", "a wise word")
    desk = await desks.sit(room, "ann", GENERAL)
    chip = desk.page.locator(".quote-chip")
    await (await desk.sees("a wise word")).click()
    await desk.page.keyboard.press("q")
    await desk.page.get_by_role("button", name="Remove the quote").click()
    await expect(chip).to_have_count(0)
    await expect(desk.composer).to_be_focused()
    await desk.message("a wise word").click()
    await desk.page.keyboard.press("q")
    await expect(desk.composer).to_be_focused()
    await expect(chip).to_contain_text("a wise word")
    await desk.submit("so true")
    await expect(chip).to_have_count(0)
    heard = await bob.hears("ann")
    assert heard.quote is not None
    assert (heard.quote.message_id, heard.quote.text) == ("m1", "a wise word")
    await desk.is_stored("so true")
    await desk.message("so true").locator(".quoted a").click()
    await expect(desk.message("a wise word").first).to_have_attribute("data-marked", "true")
    line = desk.page.locator(".doing")
    before = await desk.conversation.bounding_box()
    await bob.client.signal("typing", thread_id=GENERAL)
    await expect(line).to_contain_text("bob is typing…")
    assert await desk.conversation.bounding_box() == before
    await bob.posts("general", "yes")
    await desk.sees("yes")
    await expect(line).not_to_contain_text("typing")
    thinking: JsonValue = {"state": "thinking"}
    calling: JsonValue = {"state": "calling", "tool": "search"}
    status = line.get_by_role("status")
    at_work = desk.conversation.get_by_role("article", name="bot is working")
    for data, shown in ((thinking, "thinking"), (calling, "calling search")):
        await bot.signal("activity", thread_id=GENERAL, data=data)
        await expect(status).to_have_text(f"bot is {shown}")
        await expect(at_work).to_contain_text(shown)
    await bot.signal("activity", thread_id=GENERAL, data={"state": "idle"})
    await expect(status).to_have_text("")
    await expect(at_work).to_have_count(0)


async def test_typing_signals_are_throttled(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room, new=True)
    sent: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(str(frame)))

    desk.page.on("websocket", listen)
    await desk.join_as("ann")
    await desk.open_thread(GENERAL)
    await desk.says("hello")
    sent.clear()
    # The clock stands still, so that the speed of the machine does not matter.
    await desk.page.clock.set_fixed_time(LATER_MS)
    await desk.composer.press_sequentially("letter by letter")
    await desk.page.clock.set_fixed_time(LATER_MS + 5000)
    await desk.composer.press_sequentially(", and more")
    await desk.send()
    await desk.is_stored("and more")
    assert any("and more" in frame for frame in sent)
    assert sum('"typing"' in frame for frame in sent) == 2
