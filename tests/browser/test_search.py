"""The search in the page."""

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

pytestmark = pytest.mark.behaviour("M-333")

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with documents that are searched, too."""
    async with Room.open(mods=["documents", "search"]) as room:
        yield room
        await desks.leave()


async def posted(client: Client, text: str) -> str:
    said = await client.call("post_to_channel", channel="general", text=text)
    assert isinstance(said, dict)
    return str(said["id"])


async def written(client: Client, title: str) -> str:
    made = await client.call("create_document", title=title, text="All of it.", thread=THREAD)
    assert isinstance(made, dict)
    return str(made["id"])


async def ann(desks: Desks, office: Room, **how: Any) -> Desk:
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await expect(desk.threads.get_by_role("link", name="Search")).to_be_attached()
    return desk


def hits(desk: Desk) -> Locator:
    return desk.main.get_by_role("list", name="What was found").get_by_role("listitem")


async def looks_for(desk: Desk, words: str) -> None:
    field = desk.main.get_by_role("searchbox")
    await field.fill(words)
    await field.press("Enter")


async def test_what_was_said_is_found_and_a_click_leads_to_it(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    await posted(bob, "The annual report is late")
    for n in range(30):
        await posted(bob, f"something else {n}")
    desk = await ann(desks, office)
    await desk.threads.get_by_role("link", name="Search").click()
    await expect(desk.main.get_by_role("searchbox")).to_be_focused()
    await looks_for(desk, '"annual report"')
    await expect(hits(desk)).to_have_count(1)
    await expect(hits(desk).locator("mark")).to_have_text(["annual", "report"])
    await hits(desk).get_by_role("link").click()
    await desk.sees("The annual report is late")
    await expect(desk.conversation.locator("[data-marked=true]")).to_contain_text("late")
    await desk.page.go_back()
    await expect(hits(desk)).to_have_count(1)
    await looks_for(desk, "nowhere")
    await expect(desk.main).to_contain_text("Nothing was found")


async def test_kinds_people_and_threads_narrow_it(desks: Desks, office: Room) -> None:
    bob, carol = (await office.join("bob")).client, (await office.join("carol")).client
    await posted(bob, "budget of bob")
    await posted(carol, "budget of carol")
    document = await written(bob, "The budget")
    desk = await ann(desks, office)
    await desk.visit("search", "budget")
    await expect(hits(desk)).to_have_count(3)
    await desk.main.get_by_role("button", name="Documents").click()
    await expect(hits(desk)).to_have_count(1)
    await desk.main.get_by_role("button", name="Messages").click()
    await expect(hits(desk)).to_have_count(2)
    await desk.main.get_by_text("Only some of it").click()
    await desk.main.get_by_role("combobox", name="From").select_option("carol")
    await expect(hits(desk)).to_have_count(1)
    await expect(hits(desk)).to_contain_text("budget of carol")
    await desk.main.get_by_role("combobox", name="In").select_option("broadcast")
    await expect(hits(desk)).to_have_count(0)
    await desk.visit("search", "budget", "kind=documents")
    await hits(desk).get_by_role("link").click()
    await expect(desk.page).to_have_url(f"{office.page}#/document/{document}")


async def test_more_of_it_comes_when_it_is_asked_for(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    for n in range(25):
        await posted(bob, f"news number {n}")
    desk = await ann(desks, office)
    await desk.visit("search", "news")
    await expect(hits(desk)).to_have_count(20)
    await desk.main.get_by_role("button", name="Show more").click()
    await expect(hits(desk)).to_have_count(25)
    await expect(desk.main.get_by_role("button", name="Show more")).to_have_count(0)


async def test_the_palette_and_a_command_search(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    await posted(bob, "zebra crossing")
    desk = await ann(desks, office)
    await desk.page.keyboard.press("Control+k")
    await desk.page.keyboard.type("zebra")
    await desk.page.get_by_role("option", name="Search everything for “zebra”").click()
    await expect(hits(desk)).to_have_count(1)
    await desk.visit("thread", THREAD)
    await desk.write("/search crossing")
    await desk.send()
    await expect(desk.main.get_by_role("searchbox")).to_have_value("crossing")
    await expect(hits(desk)).to_have_count(1)


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_the_search_is_accessible_and_fits_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    await posted(bob, f"word {'w' * 300} <b>bold</b>")
    await written(bob, f"word {'t' * 150}")
    desk = await ann(desks, office, color=color)
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        await desk.visit("search", "word", f"by=bob&thread={THREAD}")
        await expect(hits(desk)).to_have_count(2)
        await desk.is_drawn()
        await audit(desk.page)
        assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        await desk.visit("search")
        await audit(desk.page)
