"""Takeovers of agents."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room
from tests.browser.support.worker import worker

pytestmark = pytest.mark.behaviour("H-143")

GENERAL = "channel.general"


def held(desk: Desk, who: str = "You speak for clerk") -> Locator:
    """The banner in the thread."""
    return desk.banner(who)


async def takes_over(desk: Desk, agent: str) -> None:
    await desk.person(agent).click()
    await desk.details.get_by_role("button", name="Take over").click()
    panel = desk.banner(f"You speak for {agent}", desk.details)
    await expect(panel).to_contain_text(f"You speak for {agent} (15 min left)")


async def test_a_person_receives_and_answers_messages_in_an_agents_place(
    desks: Desks, room: Room
) -> None:
    async with worker(room):
        desk, bob = await desks.sit(room, "ann"), await desks.sit(room, "bob")
        await takes_over(desk, "clerk")
        await bob.talk_to("clerk")
        await expect(held(bob, "ann speaks for clerk")).to_be_visible()
        await bob.says("are you there?")
        heard = desk.details.get_by_role("log", name="Messages to it")
        await heard.get_by_role("link", name="are you there?").click()
        await desk.sees("are you there?")
        await audit(desk.page)
        await expect(desk.composer).to_have_attribute("aria-label", "Message bob, as clerk")
        await desk.says("I am, since nine.")
        for each in (desk, bob):
            said = await each.sees("I am, since nine.")
            await expect(said).to_contain_text("clerk")
            await expect(said).to_contain_text("sent by ann")
        await bob.says("good to know")
        await desk.sees("good to know")  # live, although ann is not in the thread
        # In a thread of both, the person chooses the sender.
        cyd = await room.join("cyd")
        await desk.visit("thread", GENERAL)
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general, as clerk")
        await desk.says("as the clerk")
        assert (await cyd.hears("clerk")).sent_by == "ann"
        await held(desk).get_by_role("button", name="As ann").click()
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general")
        await desk.says("as myself")
        assert (await cyd.hears("ann")).sent_by is None
        await desks.leave()


async def test_a_takeover_is_started_by_a_command_renewed_and_ended(
    desks: Desks, room: Room
) -> None:
    async with worker(room) as clerk:
        bob = await room.join("bob")
        desk = await desks.sit(room, "ann")
        await desk.talk_to("clerk")
        await desk.submit("/takeover ")
        await expect(held(desk)).to_be_visible()
        await bob.tells("clerk", "the first")
        await clerk.hears("the first")  # delivered, and it is not woken
        await desk.visit("thread", GENERAL)
        await desk.submit("/handback clerk")
        await expect(held(desk)).to_have_count(0)
        await desk.submit("/handback ")
        await desk.announces("Which agent? Add its name.")
        await bob.tells("clerk", "the second")
        assert (await clerk.woken()).message.text == "the second"
        await desk.submit("/takeover clerk soon")
        await desk.announces("For how long?")
        await desk.submit("/takeover @clerk 1h")
        await expect(held(desk)).to_contain_text("60 min left")
        ann = await room.join("ann")
        await ann.client.call("take_over", agent="clerk", minutes=1)
        await desk.visit("thread", "dm.ann.clerk")
        await expect(held(desk)).to_contain_text(" s left")
        await held(desk).get_by_role("button", name="Renew").click()
        await expect(held(desk)).to_contain_text("15 min left")
        await desk.page.reload()
        await expect(held(desk)).to_contain_text("min left")
        await held(desk).get_by_role("button", name="Hand back").click()
        await expect(held(desk)).to_have_count(0)
        await desks.leave()


async def test_an_agent_knows_the_messages_sent_during_a_takeover(
    desks: Desks, newsroom: Room, model: ModelServer
) -> None:
    desk, bob = await desks.sit(newsroom, "ann"), await newsroom.join("bob")
    await takes_over(desk, "editor")
    await bob.tells("editor", "Which headline?")
    await desk.details.get_by_role("link", name="Which headline?").click()
    await expect(desk.page.get_by_role("textbox", name="Message bob, as editor")).to_be_visible()
    await desk.says("The largest of all.")
    assert (await bob.hears("editor")).sent_by == "ann"
    await held(desk, "You speak for editor").get_by_role("button", name="Hand back").click()
    await expect(held(desk, "You speak for editor")).to_have_count(0)
    await bob.tells("editor", "Thanks")
    assert "Thanks" in (await bob.hears("editor")).text
    assert any("The largest of all." in str(request.raw) for request in model.requests)
