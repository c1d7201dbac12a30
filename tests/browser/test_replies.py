"""Threads of replies, and what has become of a message."""

from __future__ import annotations

import re

from playwright.async_api import expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room

GENERAL = "channel.general"


async def sits(desks: Desks, network: Network | Room, name: str = "ann") -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as(name)
    await desk.open_thread(GENERAL)
    return desk


async def test_a_reply_opens_a_thread_below_its_message(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await bob.posts("general", "what about **lunch**?")
    await (await desk.sees("what about lunch?")).click()
    await desk.page.keyboard.press("r")
    await expect(desk.page.get_by_role("heading", level=1)).to_have_text("Replies in #general")
    parent = desk.page.get_by_role("region", name="The message that is replied to")
    await expect(parent).to_contain_text("what about lunch?")
    await expect(desk.composer).to_be_focused()
    await desk.says("noodles")
    heard = await bob.hears("ann")
    assert heard.thread_id == f"{GENERAL}.t1"
    await desk.page.get_by_role("link", name="Back to the message in #general").click()
    await expect(desk.message("what about lunch?")).to_have_attribute("data-marked", "true")
    await expect(desk.message("what about lunch?")).to_contain_text("1 reply")


async def test_replies_of_others_are_counted_below_the_message(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.says("what about lunch?")
    for n in range(2):
        await bob.client.call("reply", message_id="m1", text=f"answer {n}")
    summary = desk.conversation.get_by_role("link", name=re.compile("2 replies"))
    await expect(summary).to_contain_text("2 new")
    await audit(desk.page)
    await summary.click()
    await desk.sees("answer 1")
    await desk.has_read(f"{GENERAL}.t1")
    await desk.page.go_back()
    await expect(summary).not_to_contain_text("new")


async def test_a_thread_that_was_only_looked_at_leaves_no_trace(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room)
    await desk.says("what about lunch?")
    await desk.message("lunch").click()
    await desk.page.keyboard.press("r")
    await expect(desk.page.get_by_text("No replies yet")).to_be_visible()
    await desk.page.go_back()
    await desk.sees("what about lunch?")
    await expect(desk.thread(f"{GENERAL}.t1")).to_have_count(0)


async def test_a_message_is_stored_then_delivered_and_says_to_whom(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.says("are you there?")
    await bob.hears("ann")
    message = desk.message("are you there?")
    await expect(message).to_have_attribute("data-state", "delivered")
    await expect(message.get_by_title("Delivered to bob")).to_be_visible()


async def test_what_waits_for_somebody_who_is_away_says_so(desks: Desks, room: Room) -> None:
    desk = await sits(desks, room, "carol")
    await desk.page.close()
    desk = await sits(desks, room)
    await desk.says("for later")
    await expect(desk.message("for later")).to_have_attribute("data-state", "stored")
    await expect(desk.message("for later").get_by_title("waiting for carol (away)")).to_be_visible()


async def test_deliveries_of_before_are_known_after_a_reload(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await sits(desks, room)
    await desk.says("are you there?")
    await bob.hears("ann")
    await expect(desk.message("are you")).to_have_attribute("data-state", "delivered")
    await desk.page.reload()
    await expect(desk.message("are you")).to_have_attribute("data-state", "delivered")


async def test_names_of_nobody_are_told(desks: Desks, room: Room) -> None:
    await room.join("bob")
    desk = await sits(desks, room)
    await desk.says("@bbo, look")
    await expect(desk.message("@bbo")).to_contain_text("Nobody here is called @bbo.")


async def test_the_details_of_a_message_say_who_has_read_it(desks: Desks, room: Room) -> None:
    ann, bob = await sits(desks, room), await sits(desks, room, "bob")
    await ann.says("read this")
    await bob.sees("read this")
    await ann.message("read this").click()
    await ann.page.keyboard.press("d")
    await expect(ann.details).to_contain_text("bob has read it")
    await expect(ann.details.get_by_role("link", name="i1")).to_be_visible()
    await ann.details.get_by_text("As JSON").click()
    await expect(ann.details.locator("pre").last).to_contain_text('"id": "m1"')
    await audit(ann.page)


async def test_replies_nest_as_deep_as_the_hub_says(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await room.join("ann")
    limit = bob.client.hello.limits.thread_depth
    thread, above = GENERAL, await bob.client.call("post_to_channel", channel="general", text="0")
    desk = await sits(desks, room)
    for depth in range(1, limit + 1):
        assert isinstance(above, dict)
        above = await bob.client.call("reply", message_id=above["id"], text=f"{depth}")
        assert isinstance(above, dict)
        thread = str(above["thread_id"])
        await desk.visit("thread", thread)
        await (await desk.sees(f"{depth}")).hover()
        offered = desk.conversation.get_by_role("button", name="Reply in a thread")
        await expect(desk.conversation.get_by_role("button", name="Details")).to_be_visible()
        await expect(offered).to_have_count(1 if depth < limit else 0)
