"""Reactions below messages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, WebSocket, expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Room
from tests.browser.support.wire import laid
from tests.unit.configs.people import Person

pytestmark = pytest.mark.behaviour("M-261")

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["reactions"]) as room:
        yield room
        await desks.leave()


async def posted(bob: Person, text: str) -> str:
    said = await bob.client.call("post_to_channel", channel="general", text=text)
    assert isinstance(said, dict)
    return str(said["id"])


async def reacts(bob: Person, message: str, emoji: str) -> None:
    await bob.client.call("toggle_reaction", message_id=message, emoji=emoji)


async def here(desks: Desks, office: Room, **how: Any) -> Desk:
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await desk.thread(THREAD).click()
    return desk


def reaction(message: Locator, name: str) -> Locator:
    return message.get_by_role("list", name="Reactions").get_by_role("button", name=name)


async def test_reactions_of_others_show_with_who_and_change_live(
    desks: Desks, office: Room
) -> None:
    bob, carol = await office.join("bob"), await office.join("carol")
    first, second = await posted(bob, "one"), await posted(bob, "two")
    await reacts(bob, first, "👍")
    desk = await here(desks, office)
    one, two = await desk.sees("one"), await desk.sees("two")
    await expect(reaction(one, "agreed, 1: bob")).to_be_visible()
    await expect(two.get_by_role("list", name="Reactions")).to_have_count(0)
    await reacts(carol, first, "👍")
    await expect(reaction(one, "agreed, 2: bob, carol")).to_be_visible()
    await reacts(carol, second, "🎉")
    await expect(reaction(two, "celebrate, 1: carol")).to_have_attribute("aria-pressed", "false")
    await reacts(carol, second, "🎉")
    await expect(two.get_by_role("list", name="Reactions")).to_have_count(0)


async def test_ones_own_is_marked_and_taken_back_by_pressing_it(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "look")
    await reacts(bob, message, "👀")
    desk = await here(desks, office)
    look = await desk.sees("look")
    await reaction(look, "seen, 1: bob").click()
    mine = reaction(look, "seen, 2: bob, ann (yours)")
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await desk.page.reload()
    await desk.is_joined()
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await mine.click()
    await expect(reaction(look, "seen, 1: bob")).to_have_attribute("aria-pressed", "false")


async def test_a_picker_adds_one_by_pointer_and_by_keyboard(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    await posted(bob, "look")
    desk = await here(desks, office)
    look = await desk.sees("look")
    picker = desk.page.get_by_role("dialog", name="Reactions to choose from")
    await desk.act(look, "React")
    await audit(desk.page)
    await picker.get_by_role("button", name="thanks").click()
    await expect(reaction(look, "thanks, 1: ann (yours)")).to_be_visible()
    await look.focus()
    await desk.page.keyboard.press("a")
    await expect(picker.get_by_role("button", name="agreed", exact=True)).to_be_focused()
    await desk.page.keyboard.press("ArrowRight")
    await desk.page.keyboard.press("ArrowRight")
    await desk.page.keyboard.press("Enter")
    await expect(reaction(look, "done, 1: ann (yours)")).to_be_visible()
    await expect(look).to_be_focused()
    await desk.page.keyboard.press("a")
    await expect(picker.get_by_role("button", name="agreed", exact=True)).to_be_focused()
    await desk.page.keyboard.press("Escape")
    await expect(picker).to_have_count(0)
    await expect(look).to_be_focused()


async def test_what_is_no_emoji_is_refused_at_the_message(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    await posted(bob, "look")
    desk = await here(desks, office)
    look = await desk.sees("look")
    await desk.act(look, "React")
    await desk.page.get_by_label("Another emoji").fill("word")
    await desk.page.keyboard.press("Enter")
    await expect(look.get_by_role("alert")).to_contain_text("'word' is no emoji")


async def test_all_that_is_seen_is_asked_for_in_one_call(desks: Desks, office: Room) -> None:
    bob = await office.join("bob")
    ids = [await posted(bob, f"message {n}.") for n in range(8)]
    await reacts(bob, ids[0], "👍")
    desk = await desks.sit(office.page)
    asked: list[str] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: asked.append(str(frame)))

    desk.page.on("websocket", watch)
    await desk.join_as("ann")
    await desk.thread(THREAD).click()
    await expect(reaction(await desk.sees("message 0."), "agreed, 1: bob")).to_be_visible()
    assert sum("list_reactions" in frame for frame in asked) == 1


async def test_what_changed_while_the_hub_was_away_is_there_afterwards(
    desks: Desks, office: Room
) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "look")
    async with laid(office.port) as wire:
        desk = await desks.sit(wire.url)
        desk.expect_losses()
        await desk.join_as("ann")
        await desk.thread(THREAD).click()
        look = await desk.sees("look")
        await reacts(bob, message, "👀")
        await expect(reaction(look, "seen, 1: bob")).to_be_visible()
        wire.cut()
        await desk.notices_the_loss()
        await reacts(bob, message, "👀")
        await reacts(bob, message, "👍")
        wire.mend()
        await expect(reaction(look, "agreed, 1: bob")).to_be_visible()
        await expect(reaction(look, "seen")).to_have_count(0)
        await desks.leave()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_reactions_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = await office.join("bob")
    message = await posted(bob, "look")
    for emoji in ("👍", "👀", "🎉", "🚀", "🔥", "💯", "👏", "💡", "🐛"):
        await reacts(bob, message, emoji)
    desk = await here(desks, office, color=color, size=NARROW)
    look = await desk.sees("look")
    await reaction(look, "agreed").click()
    await expect(reaction(look, "(yours)")).to_be_visible()
    await look.get_by_role("button", name="Add a reaction").click()
    await expect(desk.page.get_by_role("dialog")).to_be_visible()
    await audit(desk.page)
    assert await desk.page.evaluate("document.documentElement.scrollWidth") == 360
