"""Search, and the digest since the last visit."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, expect

from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, call, posted

MODS = ["documents", "search", "digest"]
THREAD = "channel.general"


def hits(desk: Desk) -> Locator:
    return desk.main.get_by_role("list", name="Results").get_by_role("listitem")


async def looks_for(desk: Desk, words: str) -> None:
    field = desk.main.get_by_role("searchbox")
    await field.fill(words)
    await field.press("Enter")


@pytest.mark.behaviour("M-333")
async def test_search_finds_messages_from_everywhere_and_opens_them(
    desks: Desks, room: Room
) -> None:
    bob = await room.join("bob")
    await posted(bob, "The annual report is late")
    for n in range(25):
        await posted(bob, f"news number {n}")
    desk = await desks.sit(room, "ann")
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
    await expect(desk.main).to_contain_text("No results")
    await looks_for(desk, "news")
    await expect(hits(desk)).to_have_count(20)
    await desk.main.get_by_role("button", name="Show more").click()
    await expect(hits(desk)).to_have_count(25)
    await expect(desk.main.get_by_role("button", name="Show more")).to_have_count(0)
    await desk.page.keyboard.press("Control+k")
    await desk.page.get_by_role("combobox", name="Go to or do anything").fill("annual")
    await desk.page.get_by_role("option", name="Search everything for “annual”").click()
    await expect(hits(desk)).to_have_count(1)
    await desk.visit("thread", THREAD)
    await desk.submit("/search report")
    await expect(desk.main.get_by_role("searchbox")).to_have_value("report")
    await expect(hits(desk)).to_have_count(1)


@pytest.mark.behaviour("M-333")
async def test_search_is_filtered_by_kind_person_and_thread(desks: Desks, room: Room) -> None:
    bob, carol = await room.join("bob"), await room.join("carol")
    await posted(bob, "budget of bob")
    await posted(carol, "budget of carol")
    what = {"title": "The budget", "text": "All of it.", "thread": THREAD}
    document = (await call(bob.client, "create_document", **what))["id"]
    desk = await desks.sit(room, "ann")
    await desk.visit("search", "budget")
    await expect(hits(desk)).to_have_count(3)
    await desk.main.get_by_role("button", name="Documents").click()
    await expect(hits(desk)).to_have_count(1)
    await desk.main.get_by_role("button", name="Messages").click()
    await expect(hits(desk)).to_have_count(2)
    await desk.main.get_by_text("Filters").click()
    await desk.main.get_by_role("combobox", name="From").select_option("carol")
    await expect(hits(desk)).to_have_count(1)
    await expect(hits(desk)).to_contain_text("budget of carol")
    await desk.main.get_by_role("combobox", name="In").select_option("broadcast")
    await expect(hits(desk)).to_have_count(0)
    await desk.visit("search", "budget", "kind=documents")
    await hits(desk).get_by_role("link").click()
    await expect(desk.page).to_have_url(f"{room.page}#/document/{document}")


@pytest.mark.behaviour("M-334")
async def test_the_digest_lists_news_since_the_last_visit_once_and_links_to_it(
    desks: Desks, room: Room
) -> None:
    def thread(title: str) -> Locator:
        return desk.main.get_by_role("article", name=title)

    bob, desk = await room.join("bob"), await desks.sit(room, "ann")
    await posted(bob, "The release is out")
    await posted(bob, "@ann can you look?")
    await bob.tells("ann", "Hello ann")
    await desk.threads.get_by_role("link", name="What's new").click()
    general = thread("#general")
    for words in ("2 new", "1 mention of you", "bob 2"):
        await expect(general).to_contain_text(words)
    await expect(thread("bob")).to_contain_text("Hello ann")
    waiting = desk.main.get_by_role("region", name="Waiting for you")
    await expect(waiting).to_contain_text("can you look?")
    await general.get_by_role("link", name="The release is out").click()
    await expect(desk.conversation.locator("[data-marked=true]")).to_contain_text("The release")
    await desk.visit("digest")
    await desk.main.get_by_role("button", name="Mark as seen").click()
    await expect(desk.main).to_contain_text("Nothing new")
    await posted(bob, "And now the next")
    await desk.main.get_by_role("button", name="Refresh").click()
    await expect(general).to_contain_text("1 new")
    await desk.main.get_by_label("Since").select_option("a week ago")
    await expect(general).to_contain_text("3 new")
