"""The network as a graph and as a list."""

from __future__ import annotations

from playwright.async_api import Locator, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room

_COUNT_RUNS = """() => { window.ran = 0; new MutationObserver(() => window.ran++)
    .observe(document.querySelector('.pulses'), {childList: true}); }"""


def edges(desk: Desk) -> Locator:
    """The lines that messages drew."""
    return desk.page.locator("line.flow")


def nodes(desk: Desk) -> Locator:
    return desk.page.get_by_role("list", name="Participants and channels").get_by_role("listitem")


async def test_the_graph_shows_all_participants_and_animates_messages_unless_motion_is_reduced(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    await bob.posts("general", "said before")
    desk = await desks.sit(room, "ann", calm=True)
    await desk.page.get_by_role("link", name="Show the network").click()
    await expect(nodes(desk)).to_have_count(3)
    await expect(edges(desk)).to_have_count(1)
    await bob.tells("ann", "hello")
    await expect(edges(desk)).to_have_count(2)
    await expect(desk.page.locator(".pulses")).to_be_attached()
    # An animation is short, so the test counts its starts.
    await desk.page.evaluate(_COUNT_RUNS)
    await bob.tells("ann", "again")
    await room.join("cyd")
    await expect(nodes(desk).filter(has_text="cyd")).to_be_visible()
    assert await desk.page.evaluate("window.ran") == 0
    await desk.page.emulate_media(reduced_motion="no-preference")
    await bob.tells("ann", "once more")
    await desk.page.wait_for_function("() => window.ran > 0")
    await nodes(desk).filter(has_text="bob").get_by_role("link").press("Enter")
    await expect(desk.details.get_by_role("heading", name="bob")).to_be_visible()
    await nodes(desk).filter(has_text="general").get_by_role("link").press("Enter")
    await expect(desk.composer).to_be_visible()


async def test_an_owner_can_watch_the_messages_between_others(desks: Desks, room: Room) -> None:
    bob, cyd = await room.join("bob"), await room.join("cyd")
    desk = await desks.sit(room, "ann")
    await desk.visit("network")
    await desk.main.get_by_role("button", name="List").click()
    of_bob = desk.page.get_by_role("listitem").filter(has=desk.page.get_by_role("link", name="bob"))
    line = of_bob.last
    await expect(line).to_contain_text("quiet")
    await bob.tells("cyd", "between us")
    await cyd.tells("ann", "to ann")  # arrives after the other would have
    await expect(desk.page.get_by_text("recently spoke with cyd")).to_have_count(1)  # of ann
    await expect(line).to_contain_text("quiet")
    everything = desk.page.get_by_label("Everything")
    async with desk.page.expect_websocket() as opened:
        await everything.check()
    watching = await opened.value
    await expect(everything).to_have_attribute("aria-busy", "false")
    await bob.tells("cyd", "again")
    await expect(line).to_contain_text("recently spoke with cyd")
    async with watching.expect_event("close"):
        await desk.visit("")
