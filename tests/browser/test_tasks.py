"""Task boards."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, call

pytestmark = pytest.mark.behaviour("M-263")

MODS = ["tasks"]
THREAD = "channel.general"


async def create_task(client: Client, title: str, **more: Any) -> str:
    """Create a task in #general; returns its id."""
    return str((await call(client, "create_task", thread=THREAD, title=title, **more))["id"])


async def at_board(desks: Desks, room: Room) -> Desk:
    """Ann's desk, at the tasks of #general."""
    desk = await desks.sit(room, "ann")
    await desk.visit("tasks", THREAD)
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Tasks in #general")
    return desk


def column(desk: Desk, title: str) -> Locator:
    return desk.main.get_by_role("region", name=title, exact=True)


def card(within: Locator, title: str) -> Locator:
    return within.get_by_role("article", name=title)


async def chooses(desk: Desk, title: str, deed: str) -> Locator:
    """Choose an item of a task's menu; returns its dialog."""
    await card(desk.main, title).get_by_role("button", name=f"Actions for {title}").click()
    await desk.page.get_by_role("menuitem", name=deed).click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog).to_be_visible()
    return dialog


async def test_a_task_is_created_claimed_finished_and_reopened(desks: Desks, room: Room) -> None:
    bob = (await room.join("bob")).client
    await bob.call("join_channel", channel="general")
    desk = await desks.sit(room, "ann", THREAD)
    await desk.choose_in_thread_menu("Tasks of this thread")
    await desk.main.get_by_role("button", name="New task").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Title")).to_be_focused()
    await dialog.get_by_label("Title").fill("Write the news")
    await dialog.get_by_label("Description").fill("with **care**")
    await dialog.get_by_label("Assignee").select_option("bob")
    await dialog.get_by_label("Priority").select_option("High")
    await dialog.get_by_label("Labels").fill("news, text")
    await dialog.get_by_role("button", name="Create").click()
    it = card(column(desk, "In progress"), "Write the news")
    await expect(it).to_contain_text("bob")
    await expect(it).to_contain_text("High")
    (task,) = (await call(bob, "list_tasks"))["tasks"]
    assert (task["owner"], task["priority"], task["labels"]) == ("bob", "high", ["news", "text"])
    await create_task(bob, "count")
    await card(desk.main, "count").get_by_role("button", name="I'll do it").click()
    mine = card(column(desk, "In progress"), "count")
    await mine.get_by_role("button", name="Done…").click()
    dialog = desk.page.get_by_role("dialog", name="Done")
    await dialog.get_by_label("The result").fill("It is **42**.")
    await dialog.get_by_role("button", name="Done").click()
    await expect(card(column(desk, "Done"), "count")).to_be_visible()
    await card(desk.main, "count").get_by_role("button", name="count", exact=True).click()
    await expect(desk.details.locator("strong")).to_have_text("42")
    history = desk.details.get_by_role("list", name="History").get_by_role("listitem")
    await expect(history).to_have_count(3)
    await desk.details.get_by_role("button", name="Reopen…").click()
    await desk.page.get_by_role("dialog").get_by_role("button", name="Reopen").click()
    await expect(card(column(desk, "To do"), "count")).to_be_visible()
    await expect(history).to_have_count(4)


async def test_the_board_is_updated_live_and_dialogs_keep_their_input(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    await bob.call("join_channel", channel="general")
    first = await create_task(bob, "first")
    await create_task(bob, "second", depends_on=[first])
    third = await create_task(bob, "third")
    desk = await at_board(desks, room)
    await expect(card(column(desk, "To do"), "first")).to_be_visible()
    await expect(card(column(desk, "Blocked"), "second")).to_contain_text("Blocked by t1")
    await call(bob, "claim_task", task=first)
    await expect(card(column(desk, "In progress"), "first")).to_contain_text("bob")
    dialog = await chooses(desk, "first", "Give back…")
    await dialog.get_by_role("textbox").fill("half of it is done")
    await call(bob, "finish_task", task=first, result="it is there")
    await expect(card(column(desk, "Done"), "first")).to_be_visible()
    await expect(card(column(desk, "To do"), "second")).to_be_visible()
    await expect(column(desk, "Blocked")).to_have_count(0)
    await dialog.get_by_role("button", name="Give back").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("done")
    await expect(dialog.get_by_role("textbox")).to_have_value("half of it is done")
    await desk.page.keyboard.press("Escape")
    dialog = await chooses(desk, "third", "Assign…")
    await dialog.get_by_label("To whom").select_option("bob")
    await dialog.get_by_role("button", name="Assign").click()
    await expect(card(column(desk, "In progress"), "third")).to_contain_text("bob")
    dialog = await chooses(desk, "third", "Edit…")
    await expect(dialog.get_by_label("Title")).to_have_value("third")
    await call(bob, "update_task", task=third, labels=["fast"])
    await dialog.get_by_label("Title").fill("third, twice")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("its version is 3, not 2")
    await expect(dialog.get_by_label("Title")).to_have_value("third, twice")
    await desk.page.keyboard.press("Escape")
    dialog = await chooses(desk, "third", "Cancel…")
    await dialog.get_by_role("button", name="Cancel the task").click()
    await expect(card(column(desk, "Cancelled"), "third")).to_be_visible()
    await call(bob, "post_to_channel", channel="general", text="Look at t1.")
    await desk.visit("thread", "channel.general")
    link = desk.conversation.get_by_role("link", name="t1", exact=True)
    await link.hover()
    await expect(desk.page.get_by_role("tooltip")).to_have_text("firstt1 · done · bob")


async def test_cards_are_selected_by_arrows_and_dragged_and_boards_are_listed(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    board = await call(bob, "create_board", thread=THREAD, name="Release")
    await call(bob, "create_task", board=board["id"], title="ship it")
    first = await create_task(bob, "one")
    await create_task(bob, "two")
    await create_task(bob, "three", owner="bob")
    await create_task(bob, "four", depends_on=[first])
    desk = await at_board(desks, room)
    await expect(card(column(desk, "Blocked"), "four")).to_be_visible()
    await card(desk.main, "two").focus()
    await desk.page.keyboard.press("ArrowDown")
    await expect(card(desk.main, "one")).to_be_focused()
    await card(desk.main, "one").drag_to(column(desk, "In progress"))
    await expect(card(column(desk, "In progress"), "one")).to_contain_text("ann")
    await card(desk.main, "four").drag_to(column(desk, "Done"))
    await desk.announces("can't be moved to “Done”")
    await card(desk.main, "three").focus()
    await desk.page.keyboard.press("Enter")
    await expect(desk.details.get_by_role("heading", name="three")).to_be_visible()
    await desk.details.get_by_role("button", name="Close").click()
    await desk.main.get_by_role("link", name="All boards").click()
    await expect(card(column(desk, "Your tasks"), "one")).to_be_visible()
    await desk.main.get_by_role("link", name="Release").click()
    await expect(card(column(desk, "To do"), "ship it")).to_be_visible()
    await expect(card(desk.main, "one")).to_have_count(0)
    await desk.main.get_by_role("link", name="All tasks").click()
    await expect(card(desk.main, "ship it")).to_contain_text("Release")
    await card(desk.main, "one").drag_to(column(desk, "Done"))
    await desk.page.get_by_role("dialog").get_by_role("button", name="Done").click()
    await expect(card(column(desk, "Done"), "one")).to_be_visible()
