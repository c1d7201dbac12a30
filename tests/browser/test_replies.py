"""Reply threads and receipts."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desks
from tests.browser.support.room import Room, call

GENERAL = "channel.general"


async def test_a_reply_opens_a_thread_and_the_message_counts_new_replies(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    await bob.posts("general", "what about **lunch**?")
    desk = await desks.sit(room, "ann", GENERAL)
    lunch = await desk.sees("what about lunch?")
    await lunch.click()
    await desk.page.keyboard.press("r")
    await expect(desk.page.get_by_role("heading", level=1)).to_have_text("Replies in #general")
    parent = desk.page.get_by_role("region", name="Original message")
    await expect(parent).to_contain_text("what about lunch?")
    await expect(desk.page.get_by_text("No replies yet")).to_be_visible()
    await desk.page.go_back()
    await expect(desk.thread(f"{GENERAL}.t1")).to_have_count(0)  # opening it does not create it
    await desk.act(lunch, "Reply in a thread")
    await expect(desk.page.get_by_role("heading", level=1)).to_have_text("Replies in #general")
    await expect(desk.composer).to_be_focused()
    await desk.says("noodles")
    assert (await bob.hears("ann")).thread_id == f"{GENERAL}.t1"
    await desk.page.get_by_role("link", name="Back to the message in #general").click()
    await expect(lunch).to_have_attribute("data-marked", "true")
    await expect(lunch).to_contain_text("1 reply")
    for n in range(2):
        await bob.client.call("reply", message_id="m1", text=f"answer {n}")
    summary = desk.conversation.get_by_role("link", name=re.compile("3 replies"))
    await expect(summary).to_contain_text("2 new")
    await audit(desk.page)
    await summary.click()
    await desk.sees("answer 1")
    await desk.has_read(f"{GENERAL}.t1")
    await desk.page.go_back()
    await expect(summary).not_to_contain_text("new")


async def test_a_message_shows_its_receipts_and_unreachable_mentions(
    desks: Desks, room: Room
) -> None:
    carol = await desks.sit(room, "carol", GENERAL)
    await carol.page.close()
    ann = await desks.sit(room, "ann", GENERAL)
    await ann.threads.get_by_role("button", name="1 away").click()
    await expect(ann.person("carol")).to_contain_text("away")
    await ann.says("for later")
    await expect(ann.message("for later")).to_have_attribute("data-state", "stored")
    await expect(ann.message("for later").get_by_title("waiting for carol (away)")).to_be_visible()
    bob, _ = await desks.sit(room, "bob", GENERAL), await room.join("dan")
    await bob.visit("")
    await bob.visit("thread", "dm.ann.bob")
    await ann.visit("thread", "dm.ann.bob")
    await ann.says("read this, and ask @dan or @nobody")
    message = ann.message("read this")
    await expect(message).to_have_attribute("data-state", "delivered")
    await expect(message.get_by_title("Delivered to bob")).to_be_visible()
    await expect(message).to_contain_text("No one here is called @nobody.")
    await expect(message).to_contain_text("Not in this conversation, so not notified: @dan")
    await bob.sees("read this")
    await message.click()
    await ann.page.keyboard.press("d")
    await expect(ann.details).to_contain_text("bob read")
    await expect(ann.details.get_by_role("link", name="i2")).to_be_visible()
    await ann.details.get_by_text("As JSON").click()
    await expect(ann.details.locator("pre").last).to_contain_text('"id": "m2"')
    await audit(ann.page)
    await ann.page.reload()
    await expect(message).to_have_attribute("data-state", "delivered")


async def test_replies_nest_up_to_the_limit_of_the_hub(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await room.join("ann")
    limit = bob.client.hello.limits.thread_depth
    above = await call(bob.client, "post_to_channel", channel="general", text="0")
    desk = await desks.sit(room, "ann")
    for depth in range(1, limit + 1):
        above = await call(bob.client, "reply", message_id=above["id"], text=f"{depth}")
        if depth < limit - 1:
            continue
        await desk.visit("thread", str(above["thread_id"]))
        await (await desk.sees(f"{depth}")).hover()
        offered = desk.conversation.get_by_role("button", name="Reply in a thread")
        await expect(desk.conversation.get_by_role("button", name="Details")).to_be_visible()
        await expect(offered).to_have_count(1 if depth < limit else 0)
