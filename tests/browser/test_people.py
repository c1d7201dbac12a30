"""Cards of participants."""

from __future__ import annotations

from playwright.async_api import expect

from hubbub.client import Client, ClientOptions, WebSocketTransport
from hubbub.protocol.messages import Card
from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

GENERAL = "channel.general"


async def test_a_card_shows_a_participant_and_opens_a_conversation(
    desks: Desks, room: Room
) -> None:
    bob, desk = await room.join("bob"), await desks.sit(room, "ann", GENERAL)
    await bob.posts("general", "We wait for @scout, and @nobody else")
    mentioned = (await desk.sees("We wait")).locator(".mention")
    await expect(mentioned).to_have_count(0)
    card = Card(description="Finds things", skills=("search", "maps"))
    async with Client(
        WebSocketTransport(room.url), "scout", "agent", options=ClientOptions(card=card)
    ) as scout:
        await expect(mentioned).to_have_text(["@scout"])
        await scout.signal("activity", GENERAL, {"state": "thinking"})
        await desk.person("scout").click()
        for words in ("Finds things", "Agent", "general", "thinking"):
            await expect(desk.details).to_contain_text(words)
        await expect(desk.details.get_by_role("list", name="Skills")).to_have_text("searchmaps")
        await desk.details.get_by_role("link", name="#general").click()
        await expect(desk.thread(GENERAL)).to_have_attribute("aria-current", "page")
        await desk.person("scout").click()
    await expect(desk.details).to_contain_text("away")
    await desk.write("Ask")
    await desk.person("bob").click()
    await expect(desk.details).to_contain_text("Person")
    await desk.details.get_by_role("button", name="Mention").click()
    await expect(desk.composer).to_have_value("Ask @bob ")
    await expect(desk.composer).to_be_focused()
    await desk.send()
    assert (await bob.hears("ann")).mentions == ("bob",)
    await desk.details.get_by_role("button", name="Message").click()
    await desk.says("hello bob")
    assert (await bob.hears("ann")).text == "hello bob"
