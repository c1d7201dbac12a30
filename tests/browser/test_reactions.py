"""Reactions below messages."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, WebSocket, expect

from tests.browser.support.desk import NARROW, WIDE, Desks
from tests.browser.support.room import Room, posted
from tests.e2e.support.cables import tcp_cable
from tests.unit.configs.people import Person

pytestmark = pytest.mark.behaviour("M-261")

MODS = ["reactions"]
THREAD = "channel.general"


async def reacts(bob: Person, message: str, emoji: str) -> None:
    await bob.client.call("toggle_reaction", message_id=message, emoji=emoji)


def reaction(message: Locator, name: str) -> Locator:
    return message.get_by_role("list", name="Reactions").get_by_role("button", name=name)


async def test_reactions_are_loaded_in_one_call_and_updated_live_also_after_a_disconnect(
    desks: Desks, room: Room
) -> None:
    bob, carol = await room.join("bob"), await room.join("carol")
    first, second = await posted(bob, "one"), await posted(bob, "two")
    await reacts(bob, first, "👍")
    asked: list[str] = []

    def watch(socket: WebSocket) -> None:
        socket.on("framesent", lambda frame: asked.append(str(frame)))

    async with tcp_cable(room.address) as cable:
        desk = await desks.sit(cable.url, new=True)
        desk.expect_losses()
        desk.page.on("websocket", watch)
        await desk.join_as("ann")
        await desk.open_thread(THREAD)
        one, two = await desk.sees("one"), await desk.sees("two")
        await expect(reaction(one, "agreed, 1: bob")).to_be_visible()
        await expect(two.get_by_role("list", name="Reactions")).to_have_count(0)
        assert sum("list_reactions" in frame for frame in asked) == 1
        await reacts(carol, first, "👍")
        await expect(reaction(one, "agreed, 2: bob, carol")).to_be_visible()
        await reacts(carol, second, "🎉")
        await expect(reaction(two, "celebrate, 1: carol")).to_have_attribute(
            "aria-pressed", "false"
        )
        await reacts(carol, second, "🎉")
        await expect(two.get_by_role("list", name="Reactions")).to_have_count(0)
        cable.cut()
        await desk.notices_the_loss()
        await reacts(carol, first, "👍")
        await reacts(bob, first, "👀")
        cable.mend()
        await expect(reaction(one, "seen, 1: bob")).to_be_visible()
        await expect(reaction(one, "agreed, 1: bob")).to_be_visible()
        await desks.leave()


async def test_an_own_reaction_is_added_by_pointer_or_keyboard_marked_and_removed(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    message = await posted(bob, "look")
    await reacts(bob, message, "👀")
    desk = await desks.sit(room, "ann", THREAD)
    look = await desk.sees("look")
    picker = desk.page.get_by_role("dialog", name="Choose a reaction")
    await reaction(look, "seen, 1: bob").click()
    mine = reaction(look, "seen, 2: bob, ann (yours)")
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await desk.reload()
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await mine.click()
    await expect(reaction(look, "seen, 1: bob")).to_have_attribute("aria-pressed", "false")
    await desk.act(look, "React")
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
    await desk.act(look, "React")
    await desk.page.get_by_label("Another emoji").fill("word")
    await desk.page.keyboard.press("Enter")
    await expect(look.get_by_role("alert")).to_contain_text("'word' is not an emoji")
    for emoji in ("👍", "🎉", "🚀", "🔥", "💯", "👏", "💡", "🐛"):
        await reacts(bob, message, emoji)
    await expect(reaction(look, "agreed")).to_be_visible()
    await desk.page.set_viewport_size(NARROW)
    await desk.fits()
    await desk.page.set_viewport_size(WIDE)
