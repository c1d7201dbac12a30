"""Polls in their threads."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, call

pytestmark = pytest.mark.behaviour("M-264")

MODS = ["polls"]
THREAD = "channel.general"
QUESTION = "When do we ship?"


async def asked(client: Client, **more: Any) -> str:
    """Create a poll in #general; returns its id."""
    options = ["today", "tomorrow", "never"]
    args = {"thread": THREAD, "question": QUESTION, "options": options, **more}
    return str((await call(client, "create_poll", **args))["id"])


def poll(desk: Desk, question: str = QUESTION) -> Locator:
    return desk.main.get_by_role("region", name=f"Poll: {question}")


async def test_a_vote_in_the_thread_shows_the_current_result(desks: Desks, room: Room) -> None:
    bob = (await room.join("bob")).client
    desk = await desks.sit(room, "ann", THREAD)
    id = await asked(bob)
    it = poll(desk)
    await expect(it).to_contain_text("bob asks")
    await it.get_by_role("button", name="tomorrow, 0 votes").click()
    mine = it.get_by_role("button", name="tomorrow, 1 vote, your vote")
    await expect(mine).to_have_attribute("aria-pressed", "true")
    await call(bob, "vote", poll=id, options=["today"])
    await expect(it.get_by_role("button", name="today, 1 vote")).to_be_visible()
    await expect(it).to_contain_text("2 have voted")
    await it.get_by_role("button", name="never").click()
    await expect(it.get_by_role("button", name="never, 1 vote, your vote")).to_be_visible()
    await it.get_by_role("button", name="never").click()
    await expect(it).to_contain_text("1 has voted")
    await desk.page.reload()
    await expect(it.get_by_role("button", name="today, 1 vote")).to_be_visible()
    # A secret poll shows no votes before its end.
    secret = await asked(bob, question="Who?", secret=True)
    it = poll(desk, "Who?")
    await call(bob, "vote", poll=secret, options=["never"])
    await it.get_by_role("button", name="today").click()
    await expect(it).to_contain_text("2 have voted")
    await expect(it.get_by_role("button", name="never", exact=True)).to_be_visible()
    await call(bob, "close_poll", poll=secret)
    await expect(it).to_contain_text("A tie: today, never")


async def test_a_poll_is_created_from_the_composer_closed_and_listed(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    desk = await desks.sit(room, "ann", THREAD)
    await desk.submit("/poll What to eat?")
    dialog = desk.page.get_by_role("dialog", name="New poll")
    await expect(dialog.get_by_label("Question")).to_have_value("What to eat?")
    await expect(dialog.get_by_label("Who can vote")).to_have_value(THREAD)
    await dialog.get_by_role("textbox", name="Options").fill("soup\n\n bread \n")
    await dialog.get_by_label("Allow votes for several options").check()
    await dialog.get_by_role("button", name="Ask").click()
    it = poll(desk, "What to eat?")
    for option in ("soup", "bread"):
        await it.get_by_role("button", name=option).click()
        voted = it.get_by_role("button", name=f"{option}, 1 vote, your vote")
        await expect(voted).to_be_visible()
    await call(bob, "vote", poll="p1", options=["soup"])
    await it.get_by_role("button", name="End it…").click()
    await it.get_by_role("button", name="End it now").click()
    await expect(it).to_contain_text("Decided: soup")
    await expect(it.get_by_role("button")).to_have_count(0)
    await desk.choose_in_thread_menu("Polls of this thread")
    ended = desk.main.get_by_role("region", name="Ended")
    await expect(ended).to_contain_text("Decided: soup")
    await asked(bob)
    opened = desk.main.get_by_role("region", name="Open", exact=True)
    await opened.get_by_role("button", name="today").click()
    await expect(opened.get_by_role("button", name="today, 1 vote, your vote")).to_be_visible()
    await desk.main.get_by_role("link", name="All polls").click()
    await expect(desk.main.get_by_role("link", name="#general").first).to_be_visible()
