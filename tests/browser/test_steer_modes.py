"""How a person's word reaches an agent that is at work."""

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

pytestmark = pytest.mark.behaviour("H-142")


@asynccontextmanager
async def working(desks: Desks, room: Room) -> AsyncIterator[tuple[Desk, Worker]]:
    async with worker(room) as clerk:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await desk.talk_to("clerk")
        await desk.says("tidy up")
        await clerk.begins()
        await expect(mode(desk)).to_be_visible()
        yield desk, clerk
        await desks.leave()


def mode(desk: Desk) -> Locator:
    return desk.main.get_by_role("button", name="How your next message reaches who is at work")


async def chooses(desk: Desk, name: str) -> None:
    await mode(desk).click()
    await desk.page.get_by_role("menuitemradio", name=name).click()


@pytest.mark.parametrize("way", ["queue", "steer", "interrupt"])
async def test_a_way_that_is_chosen_goes_with_the_next_message_only(
    desks: Desks, room: Room, way: str
) -> None:
    async with working(desks, room) as (desk, clerk):
        await chooses(desk, way.capitalize())
        await desk.says("and the cellar")
        assert (await clerk.hears("and the cellar")).mode == way
        await expect(mode(desk)).to_have_text("As the agent likes")
        await desk.says("and the roof")
        assert (await clerk.hears("and the roof")).mode is None


async def test_the_same_can_be_written(desks: Desks, room: Room) -> None:
    async with working(desks, room) as (desk, clerk):
        await desk.write("/steer look into the cellar")
        await desk.send()
        assert (await clerk.hears("look into the cellar")).mode == "steer"
        await desk.write("/queue")
        await desk.send()
        await expect(desk.main.get_by_role("alert")).to_have_text("What is to be said?")


async def test_the_choice_is_gone_with_the_work(desks: Desks, room: Room) -> None:
    async with working(desks, room) as (desk, clerk):
        await chooses(desk, "Interrupt")
        await clerk.ends()
        await expect(mode(desk)).to_have_count(0)
        await desk.says("thank you")
        assert (await clerk.hears("thank you")).mode is None


async def test_a_word_that_interrupts_ends_the_turn_and_begins_the_next(
    desks: Desks, networks: Networks
) -> None:
    async with ModelServer(newsroom_script()) as model:
        network = await networks.start(NEWSROOM, model=model)
        desk = await desks.sit(network.page)
        await desk.join_as("ann")
        await desk.talk_to("editor")
        await desk.says("think slowly")
        await model.held("thinking")
        await chooses(desk, "Interrupt")
        await desk.says("never mind, good morning")
        await desk.sees("You said: never mind, good morning")
        await expect(desk.message("I have thought about it.")).to_have_count(0)
        model.release("thinking")
        await desks.leave()
        await network.close()


async def test_the_choice_fits_on_a_telephone(desks: Desks, room: Room) -> None:
    async with working(desks, room) as (desk, _):
        await desk.page.set_viewport_size(NARROW)
        await chooses(desk, "Queue")
        await expect(mode(desk)).to_contain_text("Wait for the next turn")
        await expect(mode(desk)).to_be_in_viewport(ratio=1)
        await audit(desk.page)
        await mode(desk).click()
        await expect(desk.page.get_by_role("menu")).to_be_in_viewport(ratio=1)
        await audit(desk.page)
