"""The network, live: who is here, who speaks to whom."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, WebSocket, expect

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Network, Room


async def seated(desks: Desks, network: Network | Room, *, calm: bool = True) -> Desk:
    """Ann, who looks at the network."""
    desk = await desks.sit(network.page, calm=calm)
    await desk.join_as("ann")
    await desk.page.keyboard.press("Escape")
    await desk.page.get_by_role("link", name="Show the network").click()
    return desk


def edges(desk: Desk) -> Locator:
    """The lines that messages have drawn."""
    return desk.page.locator("line.flow")


def nodes(desk: Desk) -> Locator:
    return desk.page.get_by_role("list", name="Participants and channels").get_by_role("listitem")


async def as_list(desk: Desk) -> None:
    await desk.page.get_by_role("main").get_by_role("button", name="List").click()


async def test_everybody_and_every_channel_is_in_the_picture(desks: Desks, room: Room) -> None:
    await room.join("bob")
    desk = await seated(desks, room)
    await expect(nodes(desk)).to_have_count(3)
    await room.join("cyd")
    await expect(nodes(desk).filter(has_text="cyd")).to_be_visible()


async def test_a_message_draws_a_line(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await seated(desks, room)
    await expect(nodes(desk)).to_have_count(3)
    await expect(edges(desk)).to_have_count(0)
    await bob.tells("ann", "hello")
    await expect(edges(desk)).to_have_count(1)
    await bob.posts("general", "hello all")
    await expect(edges(desk)).to_have_count(2)


async def test_what_was_said_just_before_is_in_the_picture(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    await bob.posts("general", "hello all")
    desk = await seated(desks, room)
    await expect(edges(desk)).to_have_count(1)


async def test_a_message_runs_along_its_line(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await seated(desks, room, calm=False)
    await expect(nodes(desk)).to_have_count(3)
    await bob.tells("ann", "hello")
    await expect(edges(desk)).to_have_count(1)
    await expect(desk.page.locator(".pulses")).to_be_attached()
    # Motion is over soon, so what counts is that it begins: with the next message.
    await desk.page.evaluate(
        "() => { window.ran = new Promise((then) => {"
        " new MutationObserver(then).observe(document.querySelector('.pulses'),"
        " {childList: true}); }); }"
    )
    await bob.tells("ann", "again")
    await desk.page.evaluate("() => window.ran.then(() => true)")


async def test_nothing_runs_for_who_prefers_reduced_motion(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await seated(desks, room)
    await expect(nodes(desk)).to_have_count(3)
    await desk.page.evaluate(
        "() => { window.ran = 0; new MutationObserver(() => window.ran++)"
        ".observe(document.querySelector('.pulses'), {childList: true}); }"
    )
    await bob.tells("ann", "hello")
    await expect(edges(desk)).to_have_count(1)
    assert await desk.page.evaluate("window.ran") == 0


async def test_a_node_opens_the_participant_and_a_channel_its_thread(
    desks: Desks, room: Room
) -> None:
    await room.join("bob")
    desk = await seated(desks, room)
    await nodes(desk).filter(has_text="bob").get_by_role("link").press("Enter")
    await expect(desk.details.get_by_role("heading", name="bob")).to_be_visible()
    await nodes(desk).filter(has_text="general").get_by_role("link").press("Enter")
    await expect(desk.composer).to_be_visible()


async def test_an_owner_sees_what_others_say_to_each_other(desks: Desks, room: Room) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    desk = await seated(desks, room)
    await as_list(desk)
    of_bob = desk.page.get_by_role("listitem").filter(has=desk.page.get_by_role("link", name="bob"))
    line = of_bob.last
    await expect(line).to_contain_text("quiet")
    await bob.tells("cyd", "between us")
    await cyd.tells("ann", "to ann")  # shows that the former has not come
    await expect(desk.page.get_by_text("spoke with cyd lately")).to_have_count(1)  # of ann
    await expect(line).to_contain_text("quiet")
    everything = desk.page.get_by_label("Everything")
    async with desk.page.expect_websocket() as opened:
        await everything.check()
    watching: WebSocket = await opened.value
    await expect(everything).to_have_attribute("aria-busy", "false")
    await bob.tells("cyd", "again")
    await expect(line).to_contain_text("spoke with cyd lately")
    async with watching.expect_event("close"):
        await desk.visit("")


async def test_g_n_shows_the_network(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.visit("")
    await desk.page.keyboard.type("gn")
    await expect(desk.page.get_by_role("heading", name="The network")).to_be_visible()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_the_network_is_accessible(desks: Desks, room: Room, color: str) -> None:
    bob = await room.join("bob")
    desk = await seated(desks, room)
    await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
    await bob.tells("ann", "hello")
    await expect(edges(desk)).to_have_count(1)
    await audit(desk.page)
    await as_list(desk)
    await audit(desk.page)
    await desk.page.set_viewport_size(NARROW)
    await audit(desk.page)
