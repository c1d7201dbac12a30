"""Who is in the network, and their cards."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.client import Client, WebSocketTransport
from hubbub.protocol.messages import Card
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Room


async def joined(desks: Desks, network: Network | Room) -> Desk:
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    return desk


async def test_agents_come_before_people_and_who_is_here_before_who_is_not(
    desks: Desks, room: Room
) -> None:
    desk = await joined(desks, room)
    rows = desk.page.locator("[data-participant]")
    async with Client(WebSocketTransport(room.url), "abe", "human"):
        await expect(rows).to_have_count(1)
    await room.join("zoe")
    async with Client(WebSocketTransport(room.url), "scout", "agent"):
        await expect(rows.locator(".name")).to_have_text(["scout", "zoe", "abe"])
        await expect(rows.locator(".presence")).to_have_text(["here", "here", "away"])


async def test_a_card_tells_what_somebody_is_and_does(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    card = Card(description="Finds things", skills=("search", "maps"))
    transport = WebSocketTransport(room.url)
    async with Client(transport, "scout", "agent", card=card):
        await desk.page.locator('[data-participant="scout"]').click()
        await expect(desk.details).to_contain_text("Finds things")
        await expect(desk.details.get_by_role("list", name="Skills")).to_have_text("searchmaps")
        await expect(desk.details).to_contain_text("Agent")
        await expect(desk.details).to_contain_text("general")
    await expect(desk.details).to_contain_text("away")


async def test_the_card_of_one_who_works_leads_to_the_thread(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    async with Client(WebSocketTransport(room.url), "scout", "agent") as scout:
        await scout.signal("activity", "channel.general", {"state": "thinking"})
        await desk.page.locator('[data-participant="scout"]').click()
        await expect(desk.details).to_contain_text("thinking")
        await desk.details.get_by_role("link", name="#general").click()
        await expect(desk.thread("channel.general")).to_have_attribute("aria-current", "page")


async def test_a_message_is_a_click_away(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await joined(desks, room)
    await desk.page.locator('[data-participant="bob"]').click()
    await desk.details.get_by_role("button", name="Message").click()
    await desk.says("hello bob")
    assert (await bob.hears("ann")).text == "hello bob"


async def test_a_mention_goes_into_what_one_writes(desks: Desks, room: Room) -> None:
    bob = await room.join("bob")
    desk = await joined(desks, room)
    await desk.open_thread("channel.general")
    await desk.write("Ask")
    await desk.page.locator('[data-participant="bob"]').click()
    await desk.details.get_by_role("button", name="Mention").click()
    await expect(desk.composer).to_have_value("Ask @bob ")
    await expect(desk.composer).to_be_focused()
    await desk.send()
    assert (await bob.hears("ann")).mentions == ("bob",)


async def test_the_details_of_a_thread_tell_who_is_in_it(desks: Desks, room: Room) -> None:
    await room.join("bob")
    desk = await joined(desks, room)
    await desk.page.goto(f"{room.page}#/thread/channel.general?open=thread:channel.general")
    await expect(desk.details).to_contain_text("2 members")
    await desk.details.get_by_role("button", name="bob").click()
    await expect(desk.details).to_contain_text("Person")


async def test_somebody_who_is_unknown_is_said_to_be(desks: Desks, room: Room) -> None:
    desk = await joined(desks, room)
    await desk.page.goto(f"{room.page}#/?open=participant:nobody")
    await expect(desk.details).to_contain_text("Nobody here is called nobody.")
