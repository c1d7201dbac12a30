"""The left column: threads in groups, with unread counts."""

from __future__ import annotations

import asyncio

from playwright.async_api import Locator, expect
from pydantic import JsonValue

from hubbub.client import Client, WebSocketTransport
from tests.browser.support.desk import Desk, Desks, becomes
from tests.browser.support.room import Room, call, posted

GENERAL = "channel.general"


def badge(row: Locator, words: str) -> Locator:
    """The count at a thread, by its text for screen readers."""
    return row.locator(".badge").filter(has_text=words)


def group(desk: Desk, name: str) -> Locator:
    return desk.page.get_by_role("region", name=name, exact=True)


async def stand(desk: Desk, name: str, *threads: str) -> None:
    """Wait until these are the threads of a group, from top to bottom."""
    found = group(desk, name).locator("[data-thread]")
    await expect(found).to_have_count(len(threads))
    for n, thread in enumerate(threads):
        await expect(found.nth(n)).to_have_attribute("data-thread", thread)


async def chooses(desk: Desk, what: str, deed: str, row: Locator) -> None:
    await row.hover()
    await desk.page.get_by_role("button", name=f"Actions for {what}").click()
    await desk.page.get_by_role("menuitem", name=deed).click()


async def test_threads_are_ordered_and_count_unread_messages(
    desks: Desks,
) -> None:
    async with Room.open(plan={"channels": {"zoo": {}, "general": {}, "art": {}}}) as room:
        desk = await desks.sit(room, "ann")
        other = await desk.another_tab(room.page)
        await other.is_joined()
        await expect(desk.thread("broadcast")).to_have_text("Everyone")
        bob, cyd = await room.join("bob"), await room.join("cyd")
        for person, name in ((bob, "bob"), (cyd, "cyd"), (bob, "bob")):
            await person.tells("ann", f"from {name}")
            first = group(desk, "Direct").locator("[data-thread]").first
            await expect(first).to_have_attribute("data-thread", f"dm.ann.{name}")
        await stand(desk, "Direct", "dm.ann.bob", "dm.ann.cyd")
        await stand(desk, "Channels", "channel.art", GENERAL, "channel.zoo")
        row = desk.thread("dm.ann.bob")
        await expect(badge(row, "2 unread")).to_be_visible()
        await row.click()
        await desk.sees("from bob")
        await expect(row.locator(".badge")).to_have_count(0)
        await expect(row).to_have_attribute("aria-current", "page")
        await chooses(desk, "cyd", "Mark as read", desk.thread("dm.ann.cyd"))
        await expect(desk.thread("dm.ann.cyd").locator(".badge")).to_have_count(0)
        # Mentions are counted separately, and "mark all as read" affects all tabs.
        await bob.posts("general", "something for everybody")
        await bob.posts("general", "@ann something for you")
        for each in (desk, other):
            await expect(badge(each.thread(GENERAL), "2 unread")).to_be_visible()
            await expect(badge(each.thread(GENERAL), "1 mention")).to_be_visible()
        inbox = desk.page.get_by_role("link", name="Inbox")
        await expect(badge(inbox, "1 mention")).to_be_visible()
        await desk.choose_in_own_menu("Mark all as read")
        for each in (desk, other):
            await expect(each.page.locator("nav .badge")).to_have_count(0)
        await desk.reload()
        await expect(desk.thread("dm.ann.bob")).to_be_visible()
        await expect(desk.page.locator("nav .badge")).to_have_count(0)
        await desks.leave()


async def test_a_conversation_older_than_a_thousand_reply_threads_is_listed(desks: Desks) -> None:
    limits: JsonValue = {"calls_per_second": 1e9, "burst": 10**9}
    async with Room.open({"limits": limits}) as room:
        bob = await room.join("bob")
        ann, cyd = (await room.join("ann")).client, (await room.join("cyd")).client
        await bob.tells("ann", "psst")
        for _ in range(20):
            topics = (call(cyd, "send_text_message", to="ann", text="a topic") for _ in range(53))
            ids = [topic["id"] for topic in await asyncio.gather(*topics)]
            # Those with an answer of ann's are not drawn: they are read.
            answers = [(cyd, id) for id in ids[:2]] + [(ann, id) for id in ids[2:]]
            await asyncio.gather(
                *(who.call("reply", message_id=id, text="so") for who, id in answers)
            )
        desk = await desks.sit(room, "ann")
        await expect(badge(desk.thread("dm.ann.bob"), "1 unread")).to_be_visible()
        await becomes(desk.page.locator(":root"), "(it) => it.scrollHeight === innerHeight")
        await desks.leave()


async def test_read_replies_and_groups_are_folded_and_long_lists_are_truncated(
    desks: Desks, room: Room
) -> None:
    bob, desk = await room.join("bob"), await desks.sit(room, "ann")
    said = await posted(bob, "Shall we start?")
    await bob.client.call("reply", message_id=said, text="I would.")
    replies = desk.thread(f"{GENERAL}.t{said[1:]}")
    await expect(badge(replies, "1 unread")).to_be_visible()
    await expect(replies).to_contain_text("Shall we start?")
    under = f'li:has(> [data-thread="{GENERAL}"]) > ul [data-thread]'
    await expect(desk.page.locator(under)).to_have_count(1)
    general = desk.thread(GENERAL)
    await chooses(desk, "#general", "Hide read replies", general)
    await expect(replies).to_be_visible()  # it is not read
    await replies.click()
    await desk.sees("I would.")
    await expect(replies.locator(".badge")).to_have_count(0)
    await general.click()
    await expect(replies).to_have_count(0)
    await chooses(desk, "#general", "Show replies", general)
    await expect(replies).to_be_visible()
    # Groups.
    for n in range(15):
        async with Client(WebSocketTransport(room.url), f"p{n:02}", "human") as client:
            await client.call("send_text_message", to="ann", text="hello")
    rows = group(desk, "Direct").locator("[data-thread]")
    await expect(rows).to_have_count(15)
    await desk.page.get_by_role("link", name="Inbox").click()
    await desk.page.get_by_role("button", name="Mark all as read").click()
    await expect(rows).to_have_count(12)
    await group(desk, "Direct").get_by_role("button", name="3 more").click()
    await expect(rows).to_have_count(15)
    fold = desk.page.get_by_role("button", name="Channels", exact=True)
    await fold.click()
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await expect(desk.thread(GENERAL)).to_have_count(0)
    await bob.posts("general", "news")
    await expect(desk.thread(GENERAL)).to_be_visible()
    await desk.page.reload()
    await expect(fold).to_have_attribute("aria-expanded", "false")


async def test_people_and_agents_are_listed_with_activity_and_present_ones_first(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann")
    rows = desk.page.locator("[data-participant]")
    async with Client(WebSocketTransport(room.url), "abe", "human"):
        await expect(rows).to_have_count(1)
    zoe = await room.join("zoe")
    async with Client(WebSocketTransport(room.url), "scout", "agent") as agent:
        await expect(rows.locator(".name")).to_have_text(["scout", "zoe"])
        await desk.threads.get_by_role("button", name="1 away").click()
        await expect(rows.locator(".name")).to_have_text(["scout", "zoe", "abe"])
        await expect(rows.locator(".presence")).to_have_text(["online", "online", "away"])
        person = desk.page.locator('[data-participant="scout"]')
        await agent.call("send_text_message", to="ann", text="I shall look.")
        thread = "dm.ann.scout"
        await agent.signal("activity", thread, {"state": "calling", "tool": "search"})
        for place in (person, desk.thread(thread)):
            await expect(place.locator(".activity")).to_contain_text("calling search")
        await expect(person.locator(".presence")).to_have_text("working")
        await agent.signal("activity", thread, {"state": "waiting", "for": "bob"})
        await expect(person.locator(".activity")).to_contain_text("waiting for bob")
        await agent.signal("activity", thread, {"state": "idle"})
        await expect(person.locator(".activity")).to_have_count(0)
        await zoe.tells("scout", "between us")  # work there shows without saying what
        await agent.signal("activity", "dm.scout.zoe", {"state": "thinking"})
        await expect(person.locator(".activity")).to_have_text("working elsewhere")
    await expect(person.locator(".presence")).to_have_text("away")
