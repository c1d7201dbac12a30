"""Channels and groups: made, found, joined and left from the page."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Networks, Room


async def joined(desks: Desks, network: Network | Room, name: str = "ann") -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as(name)
    return desk


async def test_a_channel_is_made_and_opened(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.page.get_by_role("button", name="Create a channel").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name")).to_be_focused()
    await dialog.get_by_label("Name").press_sequentially("release notes")
    await dialog.get_by_label("What is it for?").fill("What changes and why")
    await dialog.get_by_role("button", name="Create").click()
    await expect(desk.thread("channel.release-notes")).to_have_attribute("aria-current", "page")
    await expect(desk.composer).to_be_focused()
    await desk.says("The first note")


async def test_a_name_that_is_taken_is_told(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.page.get_by_role("button", name="Create a channel").click()
    dialog = desk.page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("general")
    await dialog.get_by_role("button", name="Create").click()
    await expect(desk.page.locator(".announcer")).to_contain_text("exists")


async def test_channels_of_others_are_found_and_joined(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await bob.client.call("create_channel", name="birds", description="Those that sing")
    await bob.client.call("create_channel", name="stones", description="Those that do not")
    desk = await joined(desks, room)
    await expect(desk.thread("channel.birds")).to_have_count(0)
    await desk.page.get_by_role("button", name="Browse channels").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_role("listitem")).to_have_count(3)
    await dialog.get_by_label("Find a channel").fill("sing")
    item = dialog.get_by_role("listitem")
    await expect(item).to_have_count(1)
    await expect(item).to_contain_text("1 member")
    await item.get_by_role("button", name="Join #birds").click()
    await expect(desk.thread("channel.birds")).to_have_attribute("aria-current", "page")
    await bob.posts("birds", "A blackbird!")
    await desk.sees("A blackbird!")


async def test_leaving_a_channel_takes_it_from_the_column(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.page.goto(f"{desk.page.url}?open=thread:channel.general")
    await desk.details.get_by_role("button", name="Leave the channel").click()
    await expect(desk.thread("channel.general")).to_have_count(0)
    await desk.page.reload()
    await desk.is_joined()
    await expect(desk.thread("broadcast")).to_be_visible()
    await expect(desk.thread("channel.general")).to_have_count(0)


async def test_a_channel_that_one_may_not_join_says_so(desks: Desks, networks: Networks) -> None:
    network = await networks.start(
        {"channels": {"board": {"members": ["bob"]}}, "humans": {"bob": {}}}
    )
    desk = await joined(desks, network)
    await desk.page.get_by_role("button", name="Browse channels").click()
    await desk.page.get_by_role("button", name="Join #board").click()
    await expect(desk.page.locator(".announcer")).to_contain_text("you are none")


async def test_a_group_is_started_by_choosing_several(desks: Desks, room: Room) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    desk = await joined(desks, room)
    await desk.page.get_by_role("button", name="Start a conversation").first.click()
    dialog = desk.page.get_by_role("dialog")
    await dialog.get_by_label("With whom?").fill("bo")
    await dialog.get_by_role("checkbox", name="bob").check()
    await dialog.get_by_role("checkbox", name="cyd").check()
    await dialog.get_by_role("button", name="Start a group of 3").click()
    await expect(desk.thread("dm.ann.bob.cyd")).to_have_attribute("aria-current", "page")
    await desk.says("We three")
    for person in (bob, cyd):
        assert (await person.hears("ann")).text == "We three"


async def test_enter_talks_to_the_first_who_fits(desks: Desks, room: Room) -> None:
    await room.join("bob")
    desk = await joined(desks, room)
    await desk.page.get_by_role("button", name="Start a conversation").first.click()
    name = desk.page.get_by_label("With whom?")
    await expect(name).to_be_focused()
    await name.fill("bo")
    await name.press("Enter")
    await expect(desk.thread("dm.ann.bob")).to_have_attribute("aria-current", "page")
    await expect(desk.composer).to_be_focused()


@pytest.mark.parametrize(
    ("typed", "thread"),
    [
        ("/dm bob", "dm.ann.bob"),
        ("/dm bob,cyd", "dm.ann.bob.cyd"),
        ("/create birds Those that sing", "channel.birds"),
        ("/join stones", "channel.stones"),
    ],
)
async def test_a_slash_does_what_the_buttons_do(
    desks: Desks, room: Room, typed: str, thread: str
) -> None:
    bob = await room.join("bob")
    await room.join("cyd")
    await bob.client.call("create_channel", name="stones")
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write(typed)
    await desk.composer.press("Escape")  # the completions
    await desk.send()
    await expect(desk.thread(thread)).to_have_attribute("aria-current", "page")


async def test_a_slash_leaves_the_channel_one_is_in(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("/leave")
    await desk.composer.press("Escape")
    await desk.send()
    await expect(desk.thread("channel.general")).to_have_count(0)


async def test_somebody_who_is_not_here_cannot_be_talked_to(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("/dm nobody but you")
    await desk.composer.press("Escape")
    await desk.send()
    await expect(desk.page.get_by_role("alert")).to_have_text("Nobody here is called nobody.")
    await expect(desk.composer).to_have_value("/dm nobody but you")


async def test_a_slash_talks_to_somebody_directly_with_the_words_after_the_name(
    desks: Desks, room: Room
) -> None:
    for name in ("bob", "cyd"):
        await room.join(name)
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("/dm bob buy milk")
    await desk.send()
    await expect(desk.thread("dm.ann.bob")).to_have_attribute("aria-current", "page")
    await desk.is_stored("buy milk")
    await desk.write("/dm @bob, cyd and bread")
    await desk.send()
    await expect(desk.thread("dm.ann.bob.cyd")).to_have_attribute("aria-current", "page")
    await desk.is_stored("and bread")
