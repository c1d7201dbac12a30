"""The conversation: what is drawn of it, where the reader is, what can be done with a message."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, ViewportSize, expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks, becomes
from tests.browser.support.measuring import heap_bytes
from tests.browser.support.network import Network, Networks, Room

GENERAL = "channel.general"
MANY = 10_000
MOST_DRAWN = 60
IN_VIEW = """(it) => {
    const log = it.closest('[role=log]').getBoundingClientRect(), here = it.getBoundingClientRect();
    return here.bottom > log.top && here.top < log.bottom;
}"""
ALL_SORTS = """**Words** for @ann

```js
const x = 1;
```

|a|b|
|-|-|
|1|2|

- [x] done"""
AT_END = "(log) => log.scrollHeight - log.clientHeight - log.scrollTop < 2.5"


@pytest_asyncio.fixture(loop_scope="session")
async def long_network(networks: Networks, seeded: Path, tmp_path: Path) -> Network:
    database = Path(shutil.copy(seeded, tmp_path / "long.db"))
    return await networks.start({"channels": {"general": {}}}, database=database)


async def sits(
    desks: Desks, network: Network | Room, name: str = "ann", thread: str = GENERAL
) -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as(name)
    await desk.open_thread(thread)
    return desk


def by_id(desk: Desk, id: str) -> Locator:
    return desk.conversation.locator(f'[data-message="{id}"]')


async def in_view(message: Locator) -> None:
    await expect(message).to_be_visible()
    await becomes(message, IN_VIEW)


async def at_end(desk: Desk) -> None:
    await expect(desk.page.get_by_title("To the latest message")).to_have_count(0)
    await becomes(desk.conversation, AT_END)


async def is_copied(desk: Desk, text: str) -> None:
    await expect(desk.page.locator(".announcer")).to_contain_text("copied")
    assert await desk.page.evaluate("navigator.clipboard.readText()") == text


# What is drawn ------------------------------------------------------------------------------


async def test_of_a_long_thread_little_is_drawn_also_while_one_scrolls(
    desks: Desks, long_network: Network
) -> None:
    desk = await sits(desks, long_network, "dan")
    await in_view(by_id(desk, f"m{MANY}"))
    assert len(await desk.messages()) <= MOST_DRAWN
    await desk.conversation.hover()
    for _ in range(40):
        await desk.page.mouse.wheel(0, -500)
        await desk.next_frame()
    await expect(desk.conversation.locator("[data-message]").nth(5)).to_be_visible()
    assert len(await desk.messages()) <= MOST_DRAWN


async def test_coming_and_going_leaves_nothing_behind(desks: Desks, long_network: Network) -> None:
    desk = await sits(desks, long_network, "dan")

    async def visit(first: int) -> int:
        for number in range(first, first + 2500, 500):
            await desk.visit("thread", GENERAL, f"m{number}")
            await in_view(by_id(desk, f"m{number}"))
        await desk.visit("")
        await expect(desk.conversation).to_have_count(0)
        return await heap_bytes(desk.page)

    await visit(100)
    before = await visit(200)
    after = [await visit(n) for n in (300, 1400, 4600)]
    assert min(after) < before * 1.15, (before, after)


async def test_a_link_opens_the_middle_of_a_long_thread_at_once(
    desks: Desks, long_network: Network
) -> None:
    desk = await sits(desks, long_network, "dan")
    await desk.visit("thread", GENERAL, "m5000")
    message = by_id(desk, "m5000")
    await in_view(message)
    await expect(message).to_have_attribute("data-marked", "true")
    await expect(message).to_be_focused()
    assert len(await desk.messages()) <= MOST_DRAWN
    await desk.page.keyboard.press("End")
    await in_view(by_id(desk, f"m{MANY}"))


async def test_the_reader_stays_in_place_while_history_is_loaded_above(
    desks: Desks, long_network: Network
) -> None:
    desk = await sits(desks, long_network, "dan")
    await desk.visit("thread", GENERAL, "m3000")
    message = by_id(desk, "m3000")
    await in_view(message)
    await expect(message).to_be_focused()
    await desk.conversation.hover()
    top = "(it) => it.getBoundingClientRect().top"
    for _ in range(5):
        before = await message.evaluate(top)
        await desk.page.mouse.wheel(0, -40)
        moved = "([it, before]) => it.getBoundingClientRect().top >= before + 39"
        await desk.page.wait_for_function(moved, arg=[await message.element_handle(), before])
        await desk.page.evaluate("new Promise(requestAnimationFrame)")
        assert abs(await message.evaluate(top) - before - 40) <= 3


async def test_messages_are_grouped_by_sender_and_told_apart_by_day(
    desks: Desks, room: Room
) -> None:
    bob, carol = await room.join("bob"), await room.join("carol")
    desk = await sits(desks, room)
    await bob.posts("general", "first")
    await bob.posts("general", "second")
    await carol.posts("general", "third")
    await desk.sees("third")
    named = desk.conversation.locator("[data-message] header")
    await expect(named).to_contain_text(["bob", "carol"])
    await expect(desk.conversation.get_by_text("Today")).to_have_count(1)


async def test_json_is_folded_and_written_out_when_it_is_opened(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await bob.client.call("send_message", to="ann", content={"answer": [42, {"deep": True}]})
    await desk.open_thread("dm.ann.bob")
    message = desk.message("JSON: answer").first
    await message.locator("summary").click()
    await expect(message.locator("pre")).to_contain_text('"deep": true')


async def test_code_is_coloured_and_copied(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await bob.posts("general", "look:\n```python\nreturn 1  # one\n```")
    message = await desk.sees("look:")
    await expect(message.locator(".code-kwd")).to_have_text("return")
    await message.get_by_role("button", name="Copy").click()
    await is_copied(desk, "return 1  # one")


async def test_references_lead_to_people_messages_and_channels(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.posts("general", "the first")
    await bob.posts("general", "see m1 in #general, @ann and @bob")
    message = await desk.sees("see m1")
    await expect(message).to_have_class(re.compile("for-me"))
    await message.get_by_role("link", name="m1").click()
    await expect(by_id(desk, "m1")).to_have_attribute("data-marked", "true")
    await message.get_by_role("button", name="@bob").click()
    await expect(desk.details).to_contain_text("bob")


# What is new --------------------------------------------------------------------------------


async def test_a_thread_opens_at_the_first_unread_message(
    desks: Desks, long_network: Network
) -> None:
    bob = await long_network.join("bob")
    desk = await desks.sit(long_network.page)
    await desk.join_as("dan")
    for n in range(60):
        await bob.posts("general", f"new {n}\n\nwith a second line")
    await expect(desk.thread(GENERAL).get_by_title("60 unread")).to_be_visible()
    await desk.open_thread(GENERAL)
    await in_view(desk.message("new 0"))
    await expect(desk.conversation.get_by_role("separator", name="New")).to_be_in_viewport()
    await expect(desk.message("new 59")).to_have_count(0)
    await expect(desk.thread(GENERAL).get_by_title("60 unread")).to_have_count(0)
    await desk.page.get_by_role("button", name=re.compile("new messages?$")).click()
    await in_view(desk.message("new 59"))
    await at_end(desk)
    # All of it is read now, for another tab as well.
    await desk.has_read(GENERAL)
    tab = await desk.another_tab(long_network.page)
    await tab.has_read(GENERAL)


async def test_new_messages_are_followed_at_the_end_and_announced_elsewhere(
    desks: Desks, long_network: Network
) -> None:
    bob = await long_network.join("bob")
    desk = await sits(desks, long_network, "dan")
    await in_view(by_id(desk, f"m{MANY}"))
    await bob.posts("general", "followed\n" * 12)
    await in_view(await desk.sees("followed"))
    await at_end(desk)
    await desk.visit("thread", GENERAL, "m5000")
    await in_view(by_id(desk, "m5000"))
    await bob.posts("general", "not seen yet")
    new = desk.page.get_by_role("button", name="1 new message")
    await expect(new).to_be_visible()
    await in_view(by_id(desk, "m5000"))
    await new.click()
    await in_view(await desk.sees("not seen yet"))


async def test_what_is_marked_unread_stays_so_until_one_comes_back(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    for n in range(3):
        await bob.posts("general", f"message {n}")
    await desk.sees("message 2")
    await desk.has_read(GENERAL)
    await desk.message("message 1").click()
    await desk.page.keyboard.press("u")
    await expect(desk.thread(GENERAL).get_by_title("2 unread")).to_be_visible()
    await bob.posts("general", "message 3")
    await desk.sees("message 3")
    await expect(desk.thread(GENERAL).get_by_title("3 unread")).to_be_visible()
    await desk.visit("")
    await desk.open_thread(GENERAL)
    await desk.has_read(GENERAL)


async def test_what_comes_in_while_nobody_looks_is_not_read(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.posts("general", "seen")
    await desk.sees("seen")
    await desk.has_read(GENERAL)
    await desk.page.evaluate("document.hasFocus = () => false")
    await bob.posts("general", "while away")
    await desk.sees("while away")
    await expect(desk.thread(GENERAL).get_by_title("1 unread")).to_be_visible()
    await expect(desk.conversation.get_by_role("separator", name="New")).to_be_visible()
    await desk.page.evaluate(
        "document.hasFocus = () => true; window.dispatchEvent(new Event('focus'))"
    )
    await desk.has_read(GENERAL)
    await expect(desk.conversation.get_by_role("separator", name="New")).to_be_visible()


async def test_a_hub_with_another_log_leaves_nothing_of_the_old_one(
    desks: Desks, network: Network
) -> None:
    desk = await sits(desks, network)
    desk.complaints.expect("WebSocket|ERR_CONNECTION")
    for n in range(3):
        await desk.says(f"before {n}")
    await network.kill()
    for file in network.database.parent.glob(f"{network.database.name}*"):
        file.unlink()
    await network.start()
    await expect(desk.message("before")).to_have_count(0)
    await desk.says("after")
    assert [message.id for message in await desk.messages()] == ["m1"]


# The keyboard -------------------------------------------------------------------------------


async def test_the_keyboard_goes_from_message_to_message(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    for n in range(4):
        await bob.posts("general", f"message {n}")
    await desk.sees("message 3")
    await desk.composer.press("Escape")
    for key, expected in (("k", 3), ("k", 2), ("ArrowUp", 1), ("j", 2), ("ArrowDown", 3), ("j", 3)):
        await desk.page.keyboard.press(key)
        await expect(desk.message(f"message {expected}")).to_be_focused()
    await expect(desk.message("message 3")).to_have_attribute("aria-setsize", "4")
    await desk.page.keyboard.press("Enter")
    await expect(desk.details).to_contain_text("bob, person")


async def test_the_keyboard_reaches_messages_that_were_not_drawn(
    desks: Desks, long_network: Network
) -> None:
    desk = await sits(desks, long_network, "dan")
    await in_view(by_id(desk, f"m{MANY}"))
    await desk.composer.press("Escape")
    for step in range(30):
        await desk.page.keyboard.press("k")
        await expect(by_id(desk, f"m{MANY - step}")).to_be_focused()
    await desk.page.keyboard.press("Home")
    await expect(by_id(desk, "m1")).to_be_focused()


async def test_a_link_to_a_message_is_copied_and_works(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await bob.posts("general", "the one")
    message = await desk.sees("the one")
    await message.click()
    await desk.page.keyboard.press("c")
    link = f"{room.page}#/thread/{GENERAL}/{await message.get_attribute('data-message')}"
    await is_copied(desk, link)
    tab = await desk.another_tab(link)
    await expect(await tab.sees("the one")).to_have_attribute("data-marked", "true")
    await tab.page.goto(room.page + "#/message/m1")
    await expect(by_id(tab, "m1")).to_have_attribute("data-marked", "true")


# For everybody ------------------------------------------------------------------------------


@pytest.mark.parametrize(("color", "size"), [("light", WIDE), ("dark", NARROW)])
async def test_a_conversation_is_accessible_and_fits(
    desks: Desks, room: Room, color: Literal["light", "dark"], size: ViewportSize
) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room.page, color=color, size=size)
    await desk.join_as("ann")
    await desk.visit("thread", GENERAL)
    await bob.posts("general", ALL_SORTS)
    await bob.posts("general", "line\n" * 60)
    await desk.sees("Words")
    await desk.says("mine, with @nobody")
    await expect(desk.conversation.locator(".code-kwd").first).to_be_visible()
    await desk.message("Words").last.hover()
    await audit(desk.page)
    wide = "(it) => it.scrollWidth - it.clientWidth"
    assert await desk.page.locator("html").evaluate(wide) <= 0
    assert await desk.conversation.evaluate(wide) <= 0
