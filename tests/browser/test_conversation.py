"""The conversation: drawing, scrolling, unread messages, and actions on messages."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Locator, Page, ViewportSize, expect
from pydantic import JsonValue

from tests.browser.support.desk import WIDE, Desk, Desks, becomes
from tests.browser.support.room import Room, call

GENERAL = "channel.general"
MANY = 2000
MOST_DRAWN = 60
IN_VIEW = """(it) => {
    const log = it.closest('[role=log]').getBoundingClientRect(), here = it.getBoundingClientRect();
    return here.bottom > log.top && here.top < log.bottom;
}"""
COUNT_CHANGES = """(it) => { window.drawn = 0; new MutationObserver((all) => drawn += all.length)
    .observe(it, {childList: true, subtree: true, characterData: true}); }"""
AT_END = "(log) => log.scrollHeight - log.clientHeight - log.scrollTop < 2.5"
TEXTS = (
    "Short {n}.",
    "What do you think of **number {n}**? I would rather wait for the figures of this week, since "
    "those of the last one were made before the change and say little about what people see.",
    "- first\n- second with `code`\n- third, see https://example.org/{n}",
    "```python\ndef answer(question: str) -> int:\n    return {n}  # always\n```",
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def long() -> AsyncIterator[Room]:
    """A room where cyd posted many messages in #general. The tests share it, each as a different
    person, so each sees the messages that the others post."""
    limits: JsonValue = {"calls_per_second": 1e9, "burst": 10**9}
    async with Room.open({"limits": limits}) as room:
        cyd = (await room.join("cyd")).client
        for start in range(0, MANY, 50):
            texts = [TEXTS[n % 4].replace("{n}", str(n)) for n in range(start, start + 50)]
            await asyncio.gather(
                *(cyd.post("post_to_channel", channel="general", text=text) for text in texts)
            )
        yield room


def by_id(desk: Desk, id: str) -> Locator:
    return desk.conversation.locator(f'[data-message="{id}"]')


async def in_view(message: Locator) -> None:
    await expect(message).to_be_visible()
    await becomes(message, IN_VIEW)


async def is_copied(desk: Desk, text: str) -> None:
    await desk.announces("copied")
    assert await desk.page.evaluate("navigator.clipboard.readText()") == text


async def heap_bytes(page: Page) -> int:
    """The heap of the page's scripts after garbage collection."""
    session = await page.context.new_cdp_session(page)
    for _ in range(3):  # finalizers free more for the next one
        await session.send("HeapProfiler.collectGarbage")
    usage = await session.send("Runtime.getHeapUsage")
    await session.detach()
    return int(usage["usedSize"])


# What is drawn ------------------------------------------------------------------------------


async def test_a_long_thread_draws_few_messages_at_any_position_and_leaks_no_memory(
    desks: Desks, long: Room
) -> None:
    desk = await desks.sit(long, "dan", GENERAL, new=True)

    async def visits(first: int) -> int:
        for number in range(first, first + 1500, 500):
            await desk.visit("thread", GENERAL, f"m{number}")
            await in_view(by_id(desk, f"m{number}"))
            assert len(await desk.messages()) <= MOST_DRAWN
        await desk.visit("")
        await expect(desk.conversation).to_have_count(0)
        return await heap_bytes(desk.page)

    await visits(100)
    before, after = await visits(200), await visits(300)
    assert after < before * 1.15, (before, after)
    await desk.visit("thread", GENERAL, "m1000")
    message = by_id(desk, "m1000")
    await in_view(message)
    await expect(message).to_have_attribute("data-marked", "true")
    await expect(message).to_be_focused()
    await desk.conversation.hover()
    top = "(it) => it.getBoundingClientRect().top"
    for _ in range(3):  # the reader stays in place while history is loaded above
        at = await message.evaluate(top)
        await desk.page.mouse.wheel(0, -40)
        moved = "([it, before]) => it.getBoundingClientRect().top >= before + 39"
        await desk.page.wait_for_function(moved, arg=[await message.element_handle(), at])
        await desk.next_frame()
        assert abs(await message.evaluate(top) - at - 40) <= 3
    for _ in range(15):
        await desk.page.mouse.wheel(0, -500)
        await desk.next_frame()
    await expect(desk.conversation.locator("[data-message]").nth(5)).to_be_visible()
    assert len(await desk.messages()) <= MOST_DRAWN
    await desk.to_the_end()
    await becomes(desk.conversation, AT_END)


async def test_messages_that_arrive_for_hours_do_not_fill_the_memory(desks: Desks) -> None:
    limits: JsonValue = {"calls_per_second": 1e9, "burst": 10**9}
    async with Room.open({"limits": limits}) as room:
        bob = (await room.join("bob")).client
        desk = await desks.sit(room, "ann", new=True)
        times = 0

        async def arrive() -> int:
            nonlocal times
            for part in range(13):  # more in all than the page keeps
                texts = [f"{times}.{part}.{n} {'word ' * 2000}" for n in range(50)]
                await asyncio.gather(
                    *(bob.post("post_to_channel", channel="general", text=text) for text in texts)
                )
            await call(bob, "send_text_message", to="broadcast", text="the last")
            times += 1
            await expect(desk.thread("broadcast").get_by_title(f"{times} unread")).to_be_visible()
            return await heap_bytes(desk.page)

        views: tuple[tuple[str, ...], ...] = (("",), ("thread", GENERAL))
        for view in views:
            await desk.visit(*view)
            before, after = await arrive(), await arrive()
            assert after < before * 1.15, (view, before, after)
        await desks.leave()


async def test_messages_are_grouped_by_sender_and_day_and_offer_actions(
    desks: Desks, room: Room
) -> None:
    bob, carol = await room.join("bob"), await room.join("carol")
    desk = await desks.sit(room, "ann", GENERAL)
    await bob.posts("general", "first")
    await bob.posts("general", "look:\n```python\nreturn 1  # one\n```")
    await carol.posts("general", "see m1 in #general, @ann and @bob")
    await bob.client.call("send_message", to="ann", content={"answer": [42, {"deep": True}]})
    await desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    message = await desk.sees("see m1")
    named = desk.conversation.locator("[data-message] header")
    await expect(named).to_contain_text(["bob", "carol"])
    await expect(desk.conversation.get_by_text("Today")).to_have_count(1)
    await expect(message).to_have_class(re.compile("for-me"))
    await message.get_by_role("link", name="m1").click()
    await expect(by_id(desk, "m1")).to_have_attribute("data-marked", "true")
    await message.get_by_role("button", name="@bob").click()
    await expect(desk.details).to_contain_text("bob")
    code = await desk.sees("look:")
    await expect(code.locator(".code-kwd")).to_have_text("return")
    await code.get_by_role("button", name="Copy").click()
    await is_copied(desk, "return 1  # one")
    await code.click()
    await desk.page.keyboard.press("c")
    link = f"{room.page}#/thread/{GENERAL}/m2"
    await desk.announces("ink")
    await is_copied(desk, link)
    tab = await desk.another_tab(link)
    await expect(await tab.sees("look:")).to_have_attribute("data-marked", "true")
    await tab.page.goto(room.page + "#/message/m1")
    await expect(by_id(tab, "m1")).to_have_attribute("data-marked", "true")
    await desk.open_thread("dm.ann.bob")
    json = desk.message("JSON: answer").first
    await json.locator("summary").click()
    await expect(json.locator("pre")).to_contain_text('"deep": true')


# What is new --------------------------------------------------------------------------------


async def test_messages_that_fit_the_screen_are_read_at_once_and_are_of_yesterday_after_midnight(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await desks.sit(room, "ann", GENERAL, new=True)
    await desk.page.evaluate("performance.now = () => 0")  # what lasts a while lasts for ever
    for n in range(2):
        await bob.posts("general", f"good night {n}")
        await desk.sees(f"good night {n}")
        await desk.has_read(GENERAL)
    await desk.page.clock.install()
    await desk.reload()
    for n in range(40):
        await bob.posts("general", f"good night {n}")
    await desk.sees("good night 39")
    day = desk.main.locator(".day.floating")
    await expect(day).to_have_text("Today")
    await desk.is_drawn()
    await desk.page.clock.fast_forward("24:00:00")
    await expect(day).to_have_text("Yesterday")


async def test_a_thread_opens_at_the_first_unread_message_and_follows_new_ones_at_the_end(
    desks: Desks, long: Room
) -> None:
    bob, desk = await long.join("bob"), await desks.sit(long, "eve")
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
    await desk.has_read(GENERAL)
    tab = await desk.another_tab(long.page)
    await tab.has_read(GENERAL)
    await tab.page.close()
    await bob.posts("general", "followed\n" * 12)
    await in_view(await desk.sees("followed"))
    await expect(desk.page.get_by_title("To the latest message")).to_have_count(0)
    await becomes(desk.conversation, AT_END)
    await desk.visit("thread", GENERAL, "m1000")
    await in_view(by_id(desk, "m1000"))
    await bob.posts("general", "not seen yet")
    new = desk.page.get_by_role("button", name="1 new message")
    await expect(new).to_be_visible()
    await in_view(by_id(desk, "m1000"))
    await new.click()
    await in_view(await desk.sees("not seen yet"))


async def test_messages_below_the_screen_stay_unread_and_new_ones_do_not_redraw_the_others(
    desks: Desks, room: Room
) -> None:
    bob, desk = await room.join("bob"), await desks.sit(room, "ann", GENERAL)
    for n in range(12):
        await bob.posts("general", f"read {n}")
    await desk.sees("read 11")
    await desk.has_read(GENERAL)
    await desk.visit("")
    for n in range(30):
        await bob.posts("general", f"new {n}")
    await expect(desk.thread(GENERAL).get_by_title("30 unread")).to_be_visible()
    await desk.open_thread(GENERAL)
    await in_view(desk.message("new 0"))
    await expect(desk.thread(GENERAL).get_by_title("30 unread")).to_have_count(0)
    await expect(desk.message("new 29")).not_to_be_in_viewport()
    await expect(desk.thread(GENERAL).get_by_title("unread")).to_be_visible()
    await desk.to_the_end()
    await desk.has_read(GENERAL)
    await desk.page.evaluate(COUNT_CHANGES, await desk.message("new 29").element_handle())
    await bob.posts("general", "the next.")
    await desk.sees("the next.")
    assert await desk.page.evaluate("window.drawn") == 0


async def test_keys_reach_undrawn_messages_and_a_reader_at_the_end_stays_there_in_a_smaller_window(
    desks: Desks, long: Room
) -> None:
    bob = await long.join("bob")
    desk = await desks.sit(long, "fay", GENERAL)
    await desk.says("mine, at the very end")
    last = int(str(await desk.message("mine, at the very end").get_attribute("data-message"))[1:])
    await desk.composer.press("Escape")
    for key, back in (("k", 0), ("k", 1), ("ArrowUp", 2), ("j", 1), ("ArrowDown", 0), ("j", 0)):
        await desk.page.keyboard.press(key)
        await expect(by_id(desk, f"m{last - back}")).to_be_focused()
    await expect(by_id(desk, f"m{last}")).to_have_attribute("aria-setsize", str(last))
    for _ in range(30):
        await desk.page.keyboard.press("k")
    await expect(by_id(desk, f"m{last - 30}")).to_be_focused()
    await desk.page.keyboard.press("Home")
    await expect(by_id(desk, "m1")).to_be_focused()
    await desk.page.keyboard.press("Enter")
    await expect(desk.details).to_contain_text("cyd, person")
    await desk.page.keyboard.press("Escape")
    await desk.to_the_end()
    await becomes(desk.conversation, AT_END)
    await desk.write("a line\n" * 7)
    await becomes(desk.conversation, AT_END)
    await desk.page.set_viewport_size(ViewportSize(width=360, height=400))  # with a keyboard
    await becomes(desk.conversation, AT_END)
    await bob.posts("general", "said while fay writes")
    await in_view(await desk.sees("said while fay writes"))
    await desk.conversation.press("Home")
    await in_view(by_id(desk, "m1"))
    await desk.page.set_viewport_size(WIDE)
    await in_view(by_id(desk, "m1"))


async def test_back_returns_to_the_place_that_was_read_and_a_link_works_repeatedly(
    desks: Desks, long: Room
) -> None:
    desk = await desks.sit(long, "gil", GENERAL)
    await desk.conversation.press("Home")
    await in_view(by_id(desk, "m1"))
    for message in ("m1", "m1000"):
        await in_view(by_id(desk, message))
        await desk.visit("inbox")
        await desk.page.go_back()
        await in_view(by_id(desk, message))
        await desk.visit("thread", GENERAL, "m1000")
    await desk.visit("")
    await desk.open_thread(GENERAL)  # not Back: it opens at its end
    await becomes(desk.conversation, AT_END)
    await desk.says("look at m7")
    for _ in range(2):
        await desk.message("look at").get_by_role("link", name="m7").click()
        await in_view(by_id(desk, "m7"))
        await desk.to_the_end()
        await becomes(desk.conversation, AT_END)


async def test_messages_marked_unread_or_received_without_focus_stay_unread(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    for n in range(3):
        await bob.posts("general", f"message {n}")
    desk = await desks.sit(room, "ann", GENERAL)
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
    await desk.page.evaluate("document.hasFocus = () => false")
    await bob.posts("general", "while away")
    await desk.sees("while away")
    await expect(desk.thread(GENERAL).get_by_title("1 unread")).to_be_visible()
    separator = desk.conversation.get_by_role("separator", name="New")
    await expect(separator).to_be_visible()
    await desk.page.evaluate("delete document.hasFocus; window.dispatchEvent(new Event('focus'))")
    await desk.has_read(GENERAL)
    await expect(separator).to_be_visible()


async def test_an_empty_conversation_suggests_a_first_message(desks: Desks, newsroom: Room) -> None:
    desk = await desks.sit(newsroom, "ann", "channel.desk")
    await expect(desk.main).to_contain_text("No messages in #desk yet")
    await desk.main.get_by_role("button", name="Ask editor").click()
    await expect(desk.composer).to_have_value("@editor ")
    await desk.visit("thread", "dm.ann.editor")
    await desk.main.get_by_role("button", name="How large is Jupiter?").click()
    await desk.sees("139,822 km")
