"""Speaking for an agent, and handing it back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from playwright.async_api import Locator, expect

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.agents import NEWSROOM, newsroom_script
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.network import Networks, Room
from tests.browser.support.worker import Worker, worker

pytestmark = pytest.mark.behaviour("H-143")

BOBS = "dm.bob.clerk"


@asynccontextmanager
async def taken_over(desks: Desks, room: Room) -> AsyncIterator[tuple[Desk, Worker]]:
    """Ann speaks for the clerk, and has its panel before her."""
    async with worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.person("clerk").click()
        await desk.details.get_by_role("button", name="Take over").click()
        await expect(desk.banner("You speak for clerk", desk.details)).to_contain_text(
            "You speak for clerk for 15 min more"
        )
        yield desk, clerk
        await desks.leave()


def held(desk: Desk, who: str = "You speak for clerk") -> Locator:
    """The banner in the thread."""
    return desk.banner(who)


async def test_what_reaches_the_agent_is_heard_and_answered_in_its_place(
    desks: Desks, room: Room
) -> None:
    async with taken_over(desks, room) as (desk, _):
        bob = await room.join("bob")
        await bob.tells("clerk", "are you there?")
        heard = desk.details.get_by_role("log", name="What reaches it")
        await heard.get_by_role("link", name="are you there?").click()
        await desk.sees("are you there?")
        await expect(desk.composer).to_have_attribute("aria-label", "Message bob, as clerk")
        await desk.says("I am, since nine.")
        answer = await bob.hears("clerk")
        assert (answer.text, answer.spoken_by) == ("I am, since nine.", "ann")
        await expect(desk.message("since nine")).to_contain_text("spoken by ann")
        await bob.tells("clerk", "good to know")
        await desk.sees("good to know")  # live, though it is no thread of ann's


async def test_an_agent_is_taken_over_and_handed_back_by_a_line(desks: Desks, room: Room) -> None:
    async with worker(room):
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.write("/takeover ")
        await desk.send()
        await expect(held(desk)).to_be_visible()
        await desk.visit("thread", "channel.general")
        await desk.write("/handback clerk")
        await desk.send()
        await expect(held(desk)).to_have_count(0)
        await desk.write("/handback ")
        await desk.send()
        await expect(desk.page.locator(".announcer")).to_have_text("Which agent? Add its name.")
        await desks.leave()


async def test_who_is_answered_sees_who_has_spoken(desks: Desks, room: Room) -> None:
    async with taken_over(desks, room) as (desk, _):
        bob = await desks.sit(room.page)
        await bob.join_as("bob")
        await bob.talk_to("clerk")
        await expect(held(bob, "ann speaks for clerk")).to_be_visible()
        await bob.says("are you there?")
        await desk.visit("thread", BOBS)
        await desk.sees("are you there?")
        await desk.says("I am.")
        said = await bob.sees("I am.")
        await expect(said).to_contain_text("clerk")
        await expect(said).to_contain_text("spoken by ann")


async def test_in_a_thread_of_both_one_chooses_who_speaks(desks: Desks, room: Room) -> None:
    async with taken_over(desks, room) as (desk, _):
        bob = await room.join("bob")
        await desk.visit("thread", "channel.general")
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general, as clerk")
        await desk.says("as the clerk")
        assert (await bob.hears("clerk")).spoken_by == "ann"
        await held(desk).get_by_role("button", name="As ann").click()
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general")
        await desk.says("as myself")
        assert (await bob.hears("ann")).spoken_by is None


async def test_nothing_wakes_an_agent_that_is_taken_over_until_it_is_handed_back(
    desks: Desks, room: Room
) -> None:
    async with taken_over(desks, room) as (desk, clerk):
        bob = await room.join("bob")
        await bob.tells("clerk", "the first")
        await clerk.hears("the first")  # delivered
        await (
            desk.banner("You speak for clerk", desk.details)
            .get_by_role("button", name="Hand back")
            .click()
        )
        await expect(desk.details.get_by_role("button", name="Take over")).to_be_visible()
        await bob.tells("clerk", "the second")
        assert (await clerk.woken()).message.text == "the second"
        await desk.visit("thread", "channel.general")
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general")


async def test_a_lease_is_renewed_and_survives_a_reload(desks: Desks) -> None:
    async with Room.open() as room, worker(room):
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        ann = await room.join("ann")
        await ann.client.call("take_over", agent="clerk", minutes=1)
        await desk.visit("thread", "dm.ann.clerk")
        await expect(held(desk)).to_contain_text(" s more")
        await held(desk).get_by_role("button", name="Renew").click()
        await expect(held(desk)).to_contain_text("15 min more")
        await desk.page.reload()
        await expect(held(desk)).to_contain_text("min more")
        await held(desk).get_by_role("button", name="Hand back").click()
        await expect(held(desk)).to_have_count(0)
        await desks.leave()


async def test_an_agent_that_was_handed_back_knows_what_was_said_in_its_place(
    desks: Desks, networks: Networks
) -> None:
    async with ModelServer(newsroom_script()) as model:
        network = await networks.start(NEWSROOM, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        bob = await network.join("bob")
        await desk.person("editor").click()
        await desk.details.get_by_role("button", name="Take over").click()
        await bob.tells("editor", "Which headline?")
        await desk.details.get_by_role("link", name="Which headline?").click()
        await desk.says("The largest of all.")
        assert (await bob.hears("editor")).spoken_by == "ann"
        await held(desk, "You speak for editor").get_by_role("button", name="Hand back").click()
        await expect(held(desk, "You speak for editor")).to_have_count(0)
        await bob.tells("editor", "Thanks")
        assert "Thanks" in (await bob.hears("editor")).text
        assert any("The largest of all." in str(request.raw) for request in model.requests)
        await desks.leave()
        await network.close()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_taking_over_is_accessible(desks: Desks, room: Room, color: str) -> None:
    async with taken_over(desks, room) as (desk, _):
        await desk.page.emulate_media(color_scheme="dark" if color == "dark" else "light")
        bob = await room.join("bob")
        await bob.tells("clerk", "are you there?")
        await expect(desk.details).to_contain_text("are you there?")
        await audit(desk.page)
        await desk.visit("thread", "channel.general")
        await desk.says("as the clerk")
        await audit(desk.page)
        await desk.page.set_viewport_size(NARROW)
        await desk.is_drawn()
        await audit(desk.page)
        assert await desk.page.evaluate("document.documentElement.scrollWidth") == NARROW["width"]
