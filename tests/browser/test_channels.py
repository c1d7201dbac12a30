"""Creating, finding, joining and leaving channels, and starting conversations."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Plan, Room

GENERAL = "channel.general"


async def is_at(desk: Desk, thread: str) -> None:
    await expect(desk.thread(thread)).to_have_attribute("aria-current", "page")


async def commands(desk: Desk, line: str) -> None:
    await desk.write(line)
    await desk.composer.press("Escape")  # the completions
    await desk.send()


async def test_channels_are_created_found_joined_and_left(desks: Desks) -> None:
    plan: Plan = {"channels": {"general": {}, "board": {"members": ["bob"]}}, "humans": {"bob": {}}}
    async with Room.open(plan=plan) as room:
        bob, desk = await room.join("bob"), await desks.sit(room, "ann")
        dialog = desk.page.get_by_role("dialog")
        await desk.page.get_by_role("button", name="Create a channel").click()
        await expect(dialog.get_by_label("Name")).to_be_focused()
        await dialog.get_by_label("Name").fill("general")
        await dialog.get_by_label("What is it for?").fill("What changes and why")
        await dialog.get_by_role("button", name="Create").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("exists")
        await expect(dialog.get_by_label("What is it for?")).to_have_value("What changes and why")
        await dialog.get_by_label("Name").fill("")
        await dialog.get_by_label("Name").press_sequentially("release notes")
        await dialog.get_by_role("button", name="Create").click()
        await is_at(desk, "channel.release-notes")
        await expect(desk.composer).to_be_focused()
        await desk.says("The first note")

        await bob.client.call("create_channel", name="birds", description="Those that sing")
        await expect(desk.thread("channel.birds")).to_have_count(0)
        await desk.page.get_by_role("button", name="Browse channels").click()
        item = dialog.get_by_role("listitem")
        await expect(item).to_have_count(4)
        await dialog.get_by_role("button", name="Join #board").click()
        await desk.announces("you are not one")
        await desk.page.get_by_role("button", name="Browse channels").click()
        await dialog.get_by_label("Find a channel").fill("sing")
        await expect(item).to_have_count(1)
        await expect(item).to_contain_text("1 member")
        await item.get_by_role("button", name="Join #birds").click()
        await is_at(desk, "channel.birds")
        await bob.posts("birds", "A blackbird!")
        await desk.sees("A blackbird!")

        await desk.visit("thread", "channel.birds", opened=("thread", "channel.birds"))
        await expect(desk.details).to_contain_text("2 members")
        await desk.details.get_by_role("button", name="Leave the channel").click()
        await expect(desk.thread("channel.birds")).to_have_count(0)
        await desk.reload()
        await expect(desk.thread(GENERAL)).to_be_visible()
        await expect(desk.thread("channel.birds")).to_have_count(0)
        await desks.leave()


async def test_a_channel_can_be_read_and_joined_by_an_owner_who_is_not_a_member(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    await bob.client.call("create_channel", name="birds")
    await bob.posts("birds", "A blackbird!")
    desk = await desks.sit(room, "ann", GENERAL)
    await bob.posts("general", "before you go")
    await desk.sees("before you go")
    await desk.has_read(GENERAL)
    await commands(desk, "/leave")  # before the read marker is sent
    await expect(desk.thread(GENERAL)).to_have_count(0)
    await expect(desk.page).to_have_title("test")  # the page leaves the thread
    await desk.announces("left #general")
    await desk.visit("thread", GENERAL)
    await desk.sees("before you go")
    await expect(desk.main).to_contain_text("You are not in #general.")
    await expect(desk.composer).to_have_count(0)
    await desk.visit("thread", "dm.bob.cyd")
    await expect(desk.main).to_contain_text("you can read along")
    await expect(desk.composer).to_have_count(0)
    await desk.send_read_markers()
    await desk.visit("thread", "broadcast")
    await desk.says("stored after the read marker")  # which the hub did not refuse
    await expect(desk.page.locator(".announcer")).not_to_contain_text("no thread")
    await desk.visit("thread", "channel.birds")
    await expect(desk.main).to_contain_text("You are not in #birds.")
    await expect(desk.main).not_to_contain_text("No messages")
    await desk.main.get_by_role("button", name="Join", exact=True).click()
    await desk.sees("A blackbird!")
    await expect(desk.main).not_to_contain_text("You are not in")


async def test_conversations_are_started_from_a_dialog_and_by_a_command(
    desks: Desks, room: Room
) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    await bob.client.call("create_channel", name="stones")
    desk = await desks.sit(room, "ann")
    start = desk.page.get_by_role("button", name="Start a conversation").first
    name, dialog = desk.page.get_by_label("With whom?"), desk.page.get_by_role("dialog")
    await start.click()
    await expect(name).to_be_focused()
    await name.fill("bo")
    await name.press("Enter")
    await is_at(desk, "dm.ann.bob")
    await expect(desk.composer).to_be_focused()
    await start.click()
    await name.fill("bo")
    await dialog.get_by_role("checkbox", name="bob").check()
    await dialog.get_by_role("checkbox", name="cyd").check()
    await dialog.get_by_role("button", name="Start a group of 3").click()
    await is_at(desk, "dm.ann.bob.cyd")
    await desk.says("We three")
    for person in (bob, cyd):
        assert (await person.hears("ann")).text == "We three"
    for line, thread in (
        ("/dm bob", "dm.ann.bob"),
        ("/create birds Those that sing", "channel.birds"),
        ("/join stones", "channel.stones"),
    ):
        await commands(desk, line)
        await is_at(desk, thread)
    await commands(desk, "/dm @bob, cyd and bread")
    await is_at(desk, "dm.ann.bob.cyd")
    await desk.is_stored("and bread")
    await commands(desk, "/dm nobody but you")
    await expect(desk.page.get_by_role("alert")).to_have_text("No one here is called nobody.")
    await expect(desk.composer).to_have_value("/dm nobody but you")
