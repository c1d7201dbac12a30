"""Shared documents on the page: reading, writing, history."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.room import Room, call

pytestmark = pytest.mark.behaviour("M-260")

MODS = [{"documents": {"max_lines": 12}}]
TEXT = "# Plan\n\nfirst\n\nsecond\n\nthird"
THREAD = "channel.general"


async def create_document(client: Client, title: str = "Plan", text: str = TEXT) -> str:
    """Create a document in #general; returns its id."""
    document = await call(client, "create_document", title=title, text=text, thread=THREAD)
    return str(document["id"])


def heading(desk: Desk) -> Locator:
    return desk.main.get_by_role("heading", level=1)


def body(desk: Desk) -> Locator:
    return desk.main.get_by_role("article")


def field(desk: Desk) -> Locator:
    return desk.main.get_by_label("Text of Plan, Markdown")


async def save(desk: Desk) -> None:
    await desk.main.get_by_role("button", name="Save").click()


async def text_of(client: Client, id: str) -> str:
    return str((await call(client, "read_document", id=id, numbers=False))["text"])


@pytest.mark.behaviour("M-265")
async def test_the_page_shows_and_fetches_only_features_of_configured_mods(
    desks: Desks, tmp_path: Path
) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with Room.open(mods=["documents"], store=store) as room:
        desk = await desks.sit(room, "ann", THREAD)
        await expect(desk.threads.get_by_role("link", name="Documents")).to_be_visible()
        desk.expect_losses()
    async with Room.open(store=store, port=room.port):
        await expect(desk.threads.get_by_role("link", name="Documents")).to_have_count(0)
        await desk.reload()
        more = desk.main.get_by_role("button", name="More in this thread")
        await expect(more).to_have_count(0)
        fetched = "performance.getEntriesByType('resource').map((it) => it.name)"
        names = await desk.page.evaluate(fetched)
        assert not [name for name in names if "documents" in name]
        await desks.leave()


async def test_a_document_is_created_edited_and_updated_live(desks: Desks, room: Room) -> None:
    bob = (await room.join("bob")).client
    desk = await desks.sit(room, "ann", THREAD)
    await desk.choose_in_thread_menu("Documents of this thread")
    await expect(desk.main).to_contain_text("No documents yet")
    await desk.main.get_by_role("button", name="New document").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Title")).to_be_focused()
    await expect(dialog.get_by_label("Shared with")).to_have_value(THREAD)
    await dialog.get_by_label("Title").fill("Plan")
    await desk.page.keyboard.press("Enter")
    await expect(field(desk)).to_be_focused()
    await field(desk).fill("x\n" * 13)
    await save(desk)
    await expect(desk.main.get_by_role("alert")).to_contain_text("the limit is 12")
    await expect(field(desk)).to_have_value("x\n" * 13)
    await field(desk).fill("## Plan\n\n#### Aims\n\n# End\n\n<b>no markup</b>")
    await desk.main.get_by_label("Summary of the change").fill("begun")
    await desk.page.keyboard.press("Enter")
    await expect(body(desk)).to_contain_text("<b>no markup</b>")
    await expect(desk.main).to_contain_text("begun")
    levels = await desk.main.get_by_role("heading").evaluate_all(
        "(all) => all.map((it) => Number(it.tagName.slice(1)))"
    )
    assert levels == [1, 2, 3, 4, 3, 2], "no level is skipped"
    (document,) = (await call(bob, "list_documents"))["documents"]
    assert (document["title"], document["thread_id"], document["version"]) == ("Plan", THREAD, 2)
    await desk.threads.get_by_role("link", name="Documents").click()
    await create_document(bob, "Notes")
    await expect(desk.main.get_by_role("link", name="Notes")).to_be_visible()
    await desk.main.get_by_role("link", name="Plan").click()
    new = {"base_version": 2, "text": "all new", "note": "rewritten"}
    await call(bob, "write_document", id=document["id"], **new)
    await expect(body(desk)).to_have_text("all new")
    await expect(desk.main).to_contain_text("version 3")


# Selects all as soon as the field exists, and types a moment later.
SELECTED_AT_ONCE = """
new MutationObserver((_, observer) => {
  const field = document.querySelector("textarea[name=document]");
  if (!field) return;
  observer.disconnect();
  field.focus();
  field.select();
  requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => {
    document.execCommand("insertText", false, "all of it new");
  })));
}).observe(document.body, { childList: true, subtree: true })
"""


async def test_concurrent_edits_are_merged_or_shown_side_by_side_without_loss(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    id = await create_document(bob)
    desk = await desks.sit(room, "ann")
    await desk.page.evaluate(SELECTED_AT_ONCE)
    await desk.visit("document", id, "edit")
    await expect(field(desk)).to_have_value("all of it new")  # the cursor was not moved
    await desk.main.get_by_role("link", name="Back to the document").click()
    await expect(desk.main).to_contain_text("You have unsaved changes")
    await desk.main.get_by_role("link", name="Continue").click()
    await expect(field(desk)).to_have_value("all of it new")
    await desk.visit("document", id)
    await desk.main.get_by_role("button", name="Discard").click()
    await expect(desk.main.get_by_role("button", name="Discard")).to_have_count(0)
    await desk.visit("document", id, "edit")
    await expect(field(desk)).to_have_value(TEXT)
    # Changes in different places are merged.
    await field(desk).fill(TEXT.replace("third", "third of ann"))
    theirs = TEXT.replace("first", "first of bob")
    await call(bob, "write_document", id=id, base_version=1, text=theirs)
    await expect(desk.main).to_contain_text("bob saved version 2")
    await field(desk).press("Control+Enter")
    shown = desk.main.get_by_role("region", name="Differences")
    await expect(shown).to_contain_text("first of bob")
    await desk.announces("merged with changes by others")
    joined = theirs.replace("third", "third of ann")
    assert await text_of(bob, id) == joined
    # Changes in the same place are shown side by side.
    await desk.visit("document", id, "edit")
    mine = joined.replace("second", "second of ann")
    await field(desk).fill(mine)
    theirs = joined.replace("second", "second of bob")
    await call(bob, "write_document", id=id, base_version=3, text=theirs)
    await save(desk)
    place = desk.main.get_by_role("group", name="Place 1 of 1")
    await expect(place.locator(".theirs")).to_contain_text("second of bob")
    await expect(place.locator(".mine")).to_contain_text("second of ann")
    await audit(desk.page)
    assert await text_of(bob, id) == theirs
    await desk.reload()
    await expect(field(desk)).to_have_value(mine)
    await save(desk)
    await place.locator("label", has_text="Both, theirs first").click()
    await desk.main.get_by_role("button", name="Apply to the text").click()
    both = joined.replace("second", "second of bob\nsecond of ann")
    await expect(field(desk)).to_have_value(both)
    await save(desk)
    await expect(body(desk)).to_contain_text("second of ann")
    assert await text_of(bob, id) == both


async def test_history_shows_differences_and_comments_are_added_and_resolved(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    id = await create_document(bob)
    desk = await desks.sit(room, "ann")
    await desk.visit("document", id, "history")
    versions = desk.main.get_by_role("list", name="Versions, latest first")
    await expect(versions.get_by_role("listitem")).to_have_count(1)
    changed = TEXT.replace("second", "2nd")
    await call(bob, "write_document", id=id, base_version=1, text=changed, note="shorter")
    newest = versions.get_by_role("listitem").first
    await expect(newest).to_contain_text("shorter")
    await newest.get_by_role("link", name="Changes").click()
    shown = desk.main.get_by_role("region", name="Differences")
    await expect(shown.locator("del")).to_have_text("−second")
    await expect(shown.locator("ins")).to_have_text("+2nd")
    await desk.visit("document", id, "1")
    await expect(desk.main).to_contain_text("This is version 1 of 2.")
    await expect(body(desk)).to_contain_text("second")
    await desk.visit("document", id)
    comments = desk.main.get_by_role("region", name="Comments")
    await expect(comments).to_contain_text("No comments.")
    await call(bob, "comment_on_document", id=id, text="why **this**?", line=3)
    entries = comments.get_by_role("listitem")
    await expect(entries).to_have_count(1)
    entry = entries.first
    await expect(entry).to_contain_text("line 3")
    await expect(entry.locator("blockquote")).to_have_text("first")
    await expect(entry.locator("strong")).to_have_text("this")
    await comments.get_by_label("Comment", exact=True).fill("because")
    await comments.get_by_label("Line (optional)").fill("99")
    await comments.get_by_role("button", name="Comment").click()
    await expect(comments.get_by_role("alert")).to_contain_text("d1 has 7 lines")
    await comments.get_by_label("Line (optional)").fill("")
    await comments.get_by_label("Comment", exact=True).press("Control+Enter")
    await expect(entries).to_have_count(2)
    await expect(comments.get_by_label("Comment", exact=True)).to_have_value("")
    await entry.get_by_role("button", name="Resolve").click()
    await expect(entries).to_have_count(1)
    await comments.get_by_label("Show resolved ones").check()
    await expect(comments).to_contain_text("resolved by ann")
