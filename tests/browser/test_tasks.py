"""Task boards."""

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

pytestmark = pytest.mark.behaviour("M-263")

THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["tasks"]) as room:
        yield room
        await desks.leave()


async def ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def made(client: Client, title: str, **more: Any) -> str:
    """A task of #general; its id."""
    return str((await ask(client, "create_task", thread=THREAD, title=title, **more))["id"])


async def at_board(desks: Desks, office: Room, **how: Any) -> Desk:
    """Ann looks at the tasks of #general."""
    desk = await desks.sit(office.page, **how)
    await desk.join_as("ann")
    await desk.visit("tasks", THREAD)
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Tasks in #general")
    return desk


def column(desk: Desk, title: str) -> Locator:
    return desk.main.get_by_role("region", name=title, exact=True)


def card(within: Locator, title: str) -> Locator:
    return within.get_by_role("article", name=title)


async def chooses(desk: Desk, title: str, deed: str) -> Locator:
    """From the menu of a task; the dialog that asks."""
    await card(desk.main, title).get_by_role("button", name=f"What to do with {title}").click()
    await desk.page.get_by_role("menuitem", name=deed).click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    return dialog


async def test_a_task_is_made_from_the_menu_of_its_thread(desks: Desks, office: Room) -> None:
    desk = await desks.sit(office.page)
    await desk.join_as("ann")
    bob = (await office.join("bob")).client
    await ask(bob, "join_channel", channel="general")
    await desk.open_thread(THREAD)
    await desk.main.get_by_role("button", name="More in this thread").click()
    await desk.page.get_by_role("menuitem", name="Tasks of this thread").click()
    await desk.main.get_by_role("button", name="New task").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Title")).to_be_focused()
    await dialog.get_by_label("Title").fill("Write the news")
    await dialog.get_by_label("Description").fill("with **care**")
    await dialog.get_by_label("Who does it").select_option("bob")
    await dialog.get_by_label("Priority").select_option("High")
    await dialog.get_by_label("Labels").fill("news, text")
    await dialog.get_by_role("button", name="Create").click()
    it = card(column(desk, "In work"), "Write the news")
    await expect(it).to_contain_text("bob")
    await expect(it).to_contain_text("High")
    (task,) = (await ask(bob, "list_tasks"))["tasks"]
    assert (task["owner"], task["priority"], task["labels"]) == ("bob", "high", ["news", "text"])


async def test_the_board_follows_what_others_do(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    first = await made(bob, "first")
    await made(bob, "second", depends_on=[first])
    desk = await at_board(desks, office)
    await expect(card(column(desk, "To do"), "first")).to_be_visible()
    await expect(card(column(desk, "Waits"), "second")).to_contain_text("Waits for t1")
    await ask(bob, "claim_task", task=first)
    await expect(card(column(desk, "In work"), "first")).to_contain_text("bob")
    await ask(bob, "finish_task", task=first, result="it is there")
    await expect(card(column(desk, "Done"), "first")).to_be_visible()
    await expect(card(column(desk, "To do"), "second")).to_be_visible()
    await expect(column(desk, "Waits")).to_have_count(0)


async def test_one_claims_finishes_and_opens_again(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    await made(bob, "count")
    desk = await at_board(desks, office)
    await card(desk.main, "count").get_by_role("button", name="I do it").click()
    mine = card(column(desk, "In work"), "count")
    await mine.get_by_role("button", name="Done…").click()
    dialog = desk.page.get_by_role("dialog", name="Done")
    await dialog.get_by_label("What has come of it").fill("It is **42**.")
    await dialog.get_by_role("button", name="Done").click()
    await expect(card(column(desk, "Done"), "count")).to_be_visible()
    await card(desk.main, "count").get_by_role("button", name="count", exact=True).click()
    await expect(desk.details.locator("strong")).to_have_text("42")
    history = desk.details.get_by_role("list", name="History").get_by_role("listitem")
    await expect(history).to_have_count(3)
    await desk.details.get_by_role("button", name="Open again…").click()
    await desk.page.get_by_role("dialog").get_by_role("button", name="Open again").click()
    await expect(card(column(desk, "To do"), "count")).to_be_visible()
    await expect(history).to_have_count(4)


async def test_a_task_is_given_to_somebody_changed_and_cancelled(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    await ask(bob, "join_channel", channel="general")
    task = await made(bob, "count")
    desk = await at_board(desks, office)
    dialog = await chooses(desk, "count", "Give to…")
    await dialog.get_by_label("To whom").select_option("bob")
    await dialog.get_by_role("button", name="Give").click()
    await expect(card(column(desk, "In work"), "count")).to_contain_text("bob")
    dialog = await chooses(desk, "count", "Change…")
    await expect(dialog.get_by_label("Title")).to_have_value("count")
    await ask(bob, "update_task", task=task, labels=["fast"])
    await dialog.get_by_label("Title").fill("count twice")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("by now")
    await expect(dialog.get_by_label("Title")).to_have_value("count twice")
    await desk.page.keyboard.press("Escape")
    dialog = await chooses(desk, "count", "Cancel…")
    await dialog.get_by_role("button", name="Cancel the task").click()
    await expect(card(column(desk, "Cancelled"), "count")).to_be_visible()


async def test_arrows_lead_from_card_to_card_and_enter_opens_it(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    await made(bob, "one")
    await made(bob, "two")
    await made(bob, "three", owner="bob")
    desk = await at_board(desks, office)
    await card(desk.main, "two").focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(card(desk.main, "one")).to_be_focused()
    await desk.page.keyboard.press("ArrowRight")
    await expect(card(desk.main, "three")).to_be_focused()
    await desk.page.keyboard.press("Enter")
    await expect(desk.details.get_by_role("heading", name="three")).to_be_visible()


async def test_a_card_is_dragged_to_where_it_shall_be(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    first = await made(bob, "one")
    await made(bob, "two", depends_on=[first])
    desk = await at_board(desks, office)
    await card(desk.main, "one").drag_to(column(desk, "In work"))
    await expect(card(column(desk, "In work"), "one")).to_contain_text("ann")
    await card(desk.main, "two").drag_to(column(desk, "Done"))
    await expect(desk.page.locator(".toast")).to_contain_text("cannot be brought to “Done”")
    await card(desk.main, "one").drag_to(column(desk, "Done"))
    await desk.page.get_by_role("dialog").get_by_role("button", name="Done").click()
    await expect(card(column(desk, "Done"), "one")).to_be_visible()


async def test_what_one_writes_about_a_task_stays_when_the_task_moves(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    task = await made(bob, "count", owner="bob")
    desk = await at_board(desks, office)
    dialog = await chooses(desk, "count", "Give back…")
    await dialog.get_by_role("textbox").fill("half of it is done")
    await ask(bob, "finish_task", task=task)
    await expect(column(desk, "Done")).to_contain_text("count")
    await dialog.get_by_role("button", name="Give back").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("done")
    await expect(dialog.get_by_role("textbox")).to_have_value("half of it is done")


async def test_boards_are_listed_with_what_one_does(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    board = await ask(bob, "create_board", thread=THREAD, name="Release")
    await ask(bob, "create_task", board=board["id"], title="ship it")
    await made(bob, "count")
    desk = await at_board(desks, office)
    await card(desk.main, "count").get_by_role("button", name="I do it").click()
    await expect(card(column(desk, "In work"), "count")).to_be_visible()
    await desk.main.get_by_role("link", name="All boards").click()
    await expect(card(column(desk, "What you do"), "count")).to_be_visible()
    await desk.main.get_by_role("link", name="Release").click()
    await expect(card(column(desk, "To do"), "ship it")).to_be_visible()
    await expect(card(desk.main, "count")).to_have_count(0)
    await desk.main.get_by_role("link", name="All tasks").click()
    await expect(card(desk.main, "count")).to_be_visible()
    await expect(card(desk.main, "ship it")).to_contain_text("Release")


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_boards_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    task = await made(bob, "w" * 190, description="d" * 300, priority="urgent", labels=["l" * 30])
    await made(bob, "second", depends_on=[task], owner="bob")
    desk = await at_board(desks, office, color=color)
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        for opened in (None, ("task", task)):
            await desk.visit("tasks", THREAD, opened=opened)
            await expect(desk.details if opened else desk.main).to_contain_text("www")
            await desk.is_drawn()
            await audit(desk.page)
            assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        await desk.visit("tasks")
        await expect(desk.main.get_by_role("link", name="general")).to_be_visible()
        await audit(desk.page)
        await desk.visit("tasks", THREAD)
        await desk.main.get_by_role("button", name="New task").click()
        await expect(desk.page.get_by_role("dialog")).to_be_visible()
        await audit(desk.page)
