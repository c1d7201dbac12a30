"""Polls: in their thread, and in a list."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Room

pytestmark = pytest.mark.behaviour("M-264")

THREAD = "channel.general"
QUESTION = "When do we ship?"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["polls"]) as room:
        yield room
        await desks.leave()


async def ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def asked(client: Client, **more: Any) -> str:
    """A poll in #general; its id."""
    options = ["today", "tomorrow", "never"]
    args = {"thread": THREAD, "question": QUESTION, "options": options, **more}
    return str((await ask(client, "create_poll", **args))["id"])


async def here(desks: Desks, office: Room, **how: Any) -> Desk:
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await desk.thread(THREAD).click()
    return desk


def poll(desk: Desk, question: str = QUESTION) -> Locator:
    return desk.main.get_by_role("region", name=f"Poll: {question}")


async def test_one_votes_where_it_was_asked_and_sees_how_it_stands(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    desk = await here(desks, office)
    id = await asked(bob)
    await expect(poll(desk)).to_contain_text("bob asks")
    await poll(desk).get_by_role("button", name="tomorrow, 0 votes").click()
    mine = poll(desk).get_by_role("button", name="tomorrow, 1 vote, your vote")
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await ask(bob, "vote", poll=id, options=["today"])
    await expect(poll(desk).get_by_role("button", name="today, 1 vote")).to_be_visible()
    await expect(poll(desk)).to_contain_text("2 have voted")
    await poll(desk).get_by_role("button", name="never").click()
    await expect(poll(desk).get_by_role("button", name="never, 1 vote, your vote")).to_be_visible()
    await poll(desk).get_by_role("button", name="never").click()
    await expect(poll(desk)).to_contain_text("1 has voted")
    await desk.page.reload()
    await expect(poll(desk).get_by_role("button", name="today, 1 vote")).to_be_visible()


async def test_a_poll_is_asked_from_the_composer_and_ended(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    desk = await here(desks, office)
    await desk.write("/poll What to eat?")
    await desk.send()
    dialog = desk.page.get_by_role("dialog", name="New poll")
    await expect(dialog.get_by_label("Question")).to_have_value("What to eat?")
    await expect(dialog.get_by_label("Who may vote")).to_have_value(THREAD)
    await dialog.get_by_role("textbox", name="Options").fill("soup\n\n bread \n")
    await dialog.get_by_label("One may vote for several options").check()
    await audit(desk.page)
    await dialog.get_by_role("button", name="Ask").click()
    it = poll(desk, "What to eat?")
    await it.get_by_role("button", name="soup").click()
    await expect(it.get_by_role("button", name="soup, 1 vote, your vote")).to_be_visible()
    await it.get_by_role("button", name="bread").click()
    await expect(it.get_by_role("button", name="bread, 1 vote, your vote")).to_be_visible()
    await ask(bob, "vote", poll="p1", options=["soup"])
    await it.get_by_role("button", name="End it…").click()
    await it.get_by_role("button", name="End it now").click()
    await expect(it).to_contain_text("Decided: soup")
    await expect(it.get_by_role("button")).to_have_count(0)
    await expect(desk.conversation).to_contain_text("soup")


async def test_a_secret_poll_tells_nothing_before_its_end(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    id = await asked(bob, secret=True)
    desk = await here(desks, office)
    await ask(bob, "vote", poll=id, options=["never"])
    await poll(desk).get_by_role("button", name="today").click()
    await expect(poll(desk)).to_contain_text("2 have voted")
    await expect(poll(desk).get_by_role("button", name="never", exact=True)).to_be_visible()
    await ask(bob, "close_poll", poll=id)
    await expect(poll(desk)).to_contain_text("A tie: today, never")


async def test_polls_are_listed_open_ones_first(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    first = await asked(bob, question="over?")
    await ask(bob, "close_poll", poll=first)
    desk = await here(desks, office)
    await desk.main.get_by_role("button", name="More in this thread").click()
    await desk.page.get_by_role("menuitem", name="Polls of this thread").click()
    ended = desk.main.get_by_role("region", name="Ended")
    await expect(ended).to_contain_text("Nobody has voted.")
    await asked(bob)
    opened = desk.main.get_by_role("region", name="Open", exact=True)
    await opened.get_by_role("button", name="today").click()
    await expect(opened.get_by_role("button", name="today, 1 vote, your vote")).to_be_visible()
    await desk.main.get_by_role("link", name="All polls").click()
    await expect(desk.main.get_by_role("link", name="#general").first).to_be_visible()


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_polls_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    id = await asked(bob, question="q" * 300, options=["a" * 190, "b"], quorum=2)
    await ask(bob, "vote", poll=id, options=["b"])
    over = await asked(bob)
    await ask(bob, "vote", poll=over, options=["never"])
    await ask(bob, "close_poll", poll=over)
    desk = await here(desks, office, color=color)
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        for place in (("thread", THREAD), ("polls",)):
            await desk.visit(*place)
            await expect(poll(desk)).to_contain_text("Decided: never")
            await desk.is_drawn()
            await audit(desk.page)
            assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
