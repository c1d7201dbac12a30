"""Writing: drafts, completions, commands, quotes, and what becomes of what was sent."""

from __future__ import annotations

import asyncio
import re

from playwright.async_api import WebSocket, expect
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from tests.browser.support.desk import PATIENCE_S, Desk, Desks
from tests.browser.support.network import Network, Room

GENERAL = "channel.general"
NOW_MS = 1_760_000_000_000
"""In October 2025."""


async def sits(
    desks: Desks, network: Network | Room, name: str = "ann", thread: str = GENERAL
) -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as(name)
    await desk.open_thread(thread)
    return desk


async def test_enter_sends_and_shift_enter_begins_a_line(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    await desk.composer.press_sequentially("one")
    await desk.composer.press("Shift+Enter")
    await desk.composer.press_sequentially("two")
    await expect(desk.composer).to_have_value("one\ntwo")
    await desk.composer.press("Enter")
    await expect(desk.composer).to_have_value("")
    await desk.is_stored("one")
    await expect(desk.message("one").locator(".prose")).to_have_text(
        re.compile(r"^\s*one\s*two\s*$")
    )


async def test_control_enter_sends_even_while_a_completion_is_offered(
    desks: Desks, room: Room
) -> None:
    await room.join("bob")
    desk = await sits(desks, room)
    await desk.composer.press_sequentially("to @bob")
    await desk.composer.press("Control+Enter")
    await desk.is_stored("to @bob")


async def test_the_composer_grows_with_its_text_up_to_a_part_of_the_window(
    desks: Desks, room: Room
) -> None:
    desk = await sits(desks, room)
    height = "(it) => it.offsetHeight"
    one = await desk.composer.evaluate(height)
    await desk.write("a\nb\nc\nd")
    four = await desk.composer.evaluate(height)
    await desk.write("x\n" * 200)
    most = await desk.composer.evaluate(height)
    assert one < four < most <= 0.4 * 800 + 1
    await desk.write("")
    assert await desk.composer.evaluate(height) == one


async def test_drafts_are_kept_by_thread_over_a_reload(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.tells("ann", "hello")
    await desk.write("half a thought")
    await desk.open_thread("dm.ann.bob")
    await expect(desk.composer).to_have_value("")
    await desk.write("another half")
    await desk.page.reload()
    await expect(desk.composer).to_have_value("another half")
    await desk.open_thread(GENERAL)
    await expect(desk.composer).to_have_value("half a thought")
    await desk.send()
    await desk.is_stored("half a thought")
    await desk.page.reload()
    await expect(desk.composer).to_have_value("")


async def test_a_draft_survives_the_death_of_the_hub(desks: Desks, network: Network) -> None:
    desk = await sits(desks, network)
    desk.complaints.expect("WebSocket|ERR_CONNECTION")
    await desk.write("written while")
    await network.kill()
    await expect(desk.page.get_by_text("cannot be reached")).to_be_visible()
    await desk.composer.press_sequentially(" it was away")
    await desk.send()
    await expect(desk.message("while it was away")).to_have_attribute("data-state", "sending")
    await network.start()
    await desk.is_stored("written while it was away")
    await expect(desk.message("written while")).to_have_count(1)


async def test_names_are_completed_by_the_keyboard(desks: Desks, room: Room) -> None:
    await room.join("bob")
    await room.join("carol")
    desk = await sits(desks, room)
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


async def test_commands_are_completed_run_and_explained(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await bob.client.call("create_channel", name="attic")
    desk = await sits(desks, room)
    await desk.composer.press_sequentially("/jo")
    await desk.page.get_by_role("option").filter(has_text="/join").click()
    await expect(desk.composer).to_have_value("/join ")
    await desk.composer.press_sequentially("attic")
    await desk.send()
    await expect(desk.thread("channel.attic")).to_be_visible()
    await desk.open_thread(GENERAL)
    await desk.write("/fly away")
    await desk.send()
    await expect(desk.page.get_by_role("alert")).to_contain_text("no command /fly")
    await expect(desk.composer).to_have_value("/fly away")
    await desk.write("//fly away")
    await desk.send()
    await desk.is_stored("/fly away")


async def test_a_quote_goes_with_the_message_and_leads_back(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.posts("general", "a wise word")
    await (await desk.sees("a wise word")).click()
    await desk.page.keyboard.press("q")
    await expect(desk.composer).to_be_focused()
    chip = desk.page.locator(".quote-chip")
    await expect(chip).to_contain_text("a wise word")
    await desk.write("so true")
    await desk.send()
    await expect(chip).to_have_count(0)
    heard = await bob.hears("ann")
    assert heard.quote is not None
    assert (heard.quote.message_id, heard.quote.text) == ("m1", "a wise word")
    await desk.is_stored("so true")
    await desk.message("so true").locator(".quoted a").click()
    await expect(desk.message("a wise word").first).to_have_attribute("data-marked", "true")


async def test_a_quote_can_be_taken_back(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.posts("general", "a wise word")
    await (await desk.sees("a wise word")).click()
    await desk.page.keyboard.press("q")
    await desk.page.get_by_role("button", name="Do not quote").click()
    await expect(desk.page.locator(".quote-chip")).to_have_count(0)
    await expect(desk.composer).to_be_focused()


async def test_arrow_up_leads_from_the_empty_composer_to_my_last_message(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.says("mine")
    await bob.posts("general", "theirs")
    await desk.sees("theirs")
    await desk.composer.press("ArrowUp")
    await expect(desk.message("mine")).to_be_focused()


async def test_what_the_hub_refuses_can_be_edited_tried_again_or_discarded(
    desks: Desks, room: Room
) -> None:
    desk = await sits(desks, room)
    too_long = "x" * 70_000
    for choice in ("Edit", "Try again", "Discard"):
        await desk.write(too_long)
        await desk.send()
        refused = desk.conversation.locator("[data-state=refused]")
        await expect(refused.get_by_role("alert")).to_contain_text("Not sent")
        await refused.get_by_role("button", name=choice).click()
        if choice == "Edit":
            await expect(refused).to_have_count(0)
            await expect(desk.composer).to_have_value(too_long)
        elif choice == "Try again":
            await expect(refused).to_have_count(1)
            await refused.get_by_role("button", name="Discard").click()
    await expect(desk.conversation.locator("[data-message]")).to_have_count(0)
    await desk.says("short")


async def test_who_is_typing_is_shown_until_the_message_comes(desks: Desks, room: Room) -> None:
    ann, bob = await sits(desks, room), await sits(desks, room, "bob")
    await ann.says("shall we?")
    await bob.sees("shall we?")
    await bob.composer.press_sequentially("yes")
    line = ann.page.locator(".doing")
    await expect(line).to_contain_text("bob is typing…")
    await bob.send()
    await ann.sees("yes")
    await expect(line).not_to_contain_text("typing")


async def test_nothing_jumps_when_somebody_types(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    bob = await room.join("bob")
    await desk.says("shall we?")
    before = await desk.conversation.bounding_box()
    await bob.client.signal("typing", thread_id=GENERAL)
    await expect(desk.page.locator(".doing")).to_contain_text("bob is typing…")
    assert await desk.conversation.bounding_box() == before


async def test_typing_is_told_seldom(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    await desk.says("hello")
    sent: list[str] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: sent.append(str(frame)))

    desk.page.on("websocket", listen)
    await desk.page.reload()
    await desk.is_joined()
    # However long the machine takes for the letters.
    await desk.page.clock.set_fixed_time(NOW_MS)
    await desk.composer.press_sequentially("a few words, letter by letter")
    await desk.page.clock.set_fixed_time(NOW_MS + 5000)
    await desk.composer.press_sequentially(", and more")
    await desk.send()
    await desk.is_stored("a few words")
    async with asyncio.timeout(PATIENCE_S):
        while not any("and more" in frame for frame in sent):
            await desk.next_frame()
    assert sum('"typing"' in frame for frame in sent) == 2


async def test_what_an_agent_does_here_is_shown_above_the_composer(
    desks: Desks, room: Room
) -> None:
    async with Client(WebSocketTransport(room.url), "bot", "agent") as bot:
        await bot.call("join_channel", channel="general")
        desk = await sits(desks, room)
        await desk.says("hello")
        line = desk.page.locator(".doing")
        thinking: JsonValue = {"state": "thinking"}
        calling: JsonValue = {"state": "calling", "tool": "search"}
        for data, shown in (
            (thinking, "bot is thinking"),
            (calling, "bot is calling search"),
        ):
            await bot.signal("activity", thread_id=GENERAL, data=data)
            await expect(line.get_by_role("status")).to_have_text(shown)
        await expect(line.locator("time")).to_have_text(re.compile(r"^[1-9]"))
        await expect(line.get_by_role("status")).to_have_text("bot is calling search")
        await bot.signal("activity", thread_id=GENERAL, data={"state": "idle"})
        await expect(line.get_by_role("status")).to_have_text("")
