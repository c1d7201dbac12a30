"""Shared documents, as people read, write and compare them on the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import Locator, expect

from hubbub.client import Client
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Room

pytestmark = pytest.mark.behaviour("M-260")

TEXT = "# Plan\n\nfirst\n\nsecond\n\nthird"
THREAD = "channel.general"


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks) -> AsyncIterator[Room]:
    """A room with the mod."""
    async with Room.open(mods=["documents"]) as room:
        yield room
        await desks.leave()


async def ask(client: Client, name: str, /, **args: Any) -> dict[str, Any]:
    answer = await client.call(name, **args)
    assert isinstance(answer, dict)
    return answer


async def written(client: Client, title: str = "Plan", text: str = TEXT) -> str:
    """A document of #general; its id."""
    made = await ask(client, "create_document", title=title, text=text, thread=THREAD)
    return str(made["id"])


@asynccontextmanager
async def opened(
    desks: Desks, office: Room, *what: str, text: str = TEXT
) -> AsyncIterator[tuple[Desk, Client, str]]:
    """Ann looks at bob's document; with `what` she does more: "edit", "history", ..."""
    bob = (await office.join("bob")).client
    id = await written(bob, text=text)
    desk = await desks.sit(office.page)
    await desk.join_as("ann")
    await desk.visit("document", id, *what)
    await expect(heading(desk)).to_have_text("Plan")
    yield desk, bob, id
    await desks.leave()


async def test_headings_of_a_document_leave_out_no_level(desks: Desks, office: Room) -> None:
    async with opened(desks, office, text="## Plan\n\n#### Aims\n\n# End") as (desk, _, _):
        await expect(desk.main.get_by_role("heading", name="Aims")).to_be_visible()
        levels = await desk.main.get_by_role("heading").evaluate_all(
            "(all) => all.map((it) => Number(it.tagName.slice(1)))"
        )
        assert levels == [1, 2, 3, 4, 3, 2]


def heading(desk: Desk) -> Locator:
    return desk.main.get_by_role("heading", level=1)


def body(desk: Desk) -> Locator:
    return desk.main.get_by_role("article")


def field(desk: Desk) -> Locator:
    return desk.main.get_by_label("Text of Plan, Markdown")


async def save(desk: Desk) -> None:
    await desk.main.get_by_role("button", name="Save").click()


async def text_of(client: Client, id: str) -> str:
    return str((await ask(client, "read_document", id=id, numbers=False))["text"])


@pytest.mark.behaviour("M-265")
async def test_a_hub_without_the_mod_shows_nothing_of_it(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room.page)
    await desk.join_as("ann")
    await desk.open_thread(THREAD)
    await expect(desk.threads.get_by_role("link", name="Documents")).to_have_count(0)
    await expect(desk.main.get_by_role("button", name="More in this thread")).to_have_count(0)
    fetched = "performance.getEntriesByType('resource').map((it) => it.name)"
    names = await desk.page.evaluate(fetched)
    assert not [name for name in names if "documents" in name]


@pytest.mark.behaviour("M-265")
async def test_what_a_hub_has_no_longer_goes_away(desks: Desks, tmp_path: Any) -> None:
    store = f"sqlite:{tmp_path / 'hub.db'}"
    async with Room.open(mods=["documents"], store=store) as room:
        desk = await desks.sit(room.page)
        await desk.join_as("ann")
        await expect(desk.threads.get_by_role("link", name="Documents")).to_be_visible()
        desk.expect_losses()
    async with Room.open(store=store, port=room.port):
        await expect(desk.threads.get_by_role("link", name="Documents")).to_have_count(0)
        await desks.leave()


async def test_a_document_is_created_for_a_thread_and_written(desks: Desks, office: Room) -> None:
    desk = await desks.sit(office.page)
    await desk.join_as("ann")
    await desk.open_thread(THREAD)
    await desk.main.get_by_role("button", name="More in this thread").click()
    await desk.page.get_by_role("menuitem", name="Documents of this thread").click()
    await expect(desk.main).to_contain_text("No documents yet")
    await desk.main.get_by_role("button", name="New document").click()
    dialog = desk.page.get_by_role("dialog")
    await expect(dialog.get_by_label("Title")).to_be_focused()
    await expect(dialog.get_by_label("Who reads and changes it")).to_have_value(THREAD)
    await dialog.get_by_label("Title").fill("Plan")
    await desk.page.keyboard.press("Enter")
    await expect(field(desk)).to_be_focused()
    await field(desk).fill("# Hello\n\n<b>no markup</b>")
    await desk.main.get_by_label("What was changed, and why").fill("begun")
    await desk.page.keyboard.press("Enter")
    await expect(body(desk).get_by_role("heading", name="Hello")).to_be_visible()
    await expect(body(desk)).to_contain_text("<b>no markup</b>")
    await expect(desk.main).to_contain_text("begun")
    bob = (await office.join("bob")).client
    (found,) = (await ask(bob, "list_documents"))["documents"]
    assert (found["title"], found["thread_id"], found["version"]) == ("Plan", THREAD, 2)


async def test_lists_and_readers_follow_what_others_do(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    desk = await desks.sit(office.page)
    await desk.join_as("ann")
    await desk.threads.get_by_role("link", name="Documents").click()
    await expect(desk.main).to_contain_text("No documents yet")
    id = await written(bob, "Notes")
    await desk.main.get_by_role("link", name="Notes").click()
    await expect(body(desk)).to_contain_text("second")
    await ask(bob, "write_document", id=id, base_version=1, text="all new", note="anew")
    await expect(body(desk)).to_have_text("all new")
    await expect(desk.main).to_contain_text("version 2")


async def test_what_touches_other_places_is_joined_and_told(desks: Desks, office: Room) -> None:
    async with opened(desks, office, "edit") as (desk, bob, id):
        await field(desk).fill(TEXT.replace("third", "third of ann"))
        theirs = TEXT.replace("first", "first of bob")
        await ask(bob, "write_document", id=id, base_version=1, text=theirs)
        await expect(desk.main).to_contain_text("bob has saved version 2 meanwhile")
        await field(desk).press("Control+Enter")
        shown = desk.main.get_by_role("region", name="What is different")
        await expect(shown).to_contain_text("first of bob")
        await expect(desk.page.locator(".toast")).to_contain_text("joined with what others")
        joined = theirs.replace("third", "third of ann")
        assert await text_of(bob, id) == joined


async def test_a_conflict_stands_side_by_side_and_nothing_typed_is_lost(
    desks: Desks, office: Room
) -> None:
    async with opened(desks, office, "edit") as (desk, bob, id):
        await field(desk).fill(TEXT.replace("second", "second of ann").replace("third", "3"))
        theirs = TEXT.replace("second", "second of bob")
        await ask(bob, "write_document", id=id, base_version=1, text=theirs)
        await save(desk)
        place = desk.main.get_by_role("group", name="Place 1 of 1")
        await expect(place.locator(".theirs")).to_contain_text("second of bob")
        await expect(place.locator(".mine")).to_contain_text("second of ann")
        await audit(desk.page)
        assert await text_of(bob, id) == theirs
        await desk.page.reload()
        await desk.is_joined()
        await expect(field(desk)).to_have_value(
            TEXT.replace("second", "second of ann").replace("third", "3")
        )
        await save(desk)
        await place.locator("label", has_text="Both, theirs first").click()
        await desk.main.get_by_role("button", name="Take over into the text").click()
        both = TEXT.replace("second", "second of bob\nsecond of ann").replace("third", "3")
        await expect(field(desk)).to_have_value(both)
        await save(desk)
        await expect(body(desk)).to_contain_text("second of ann")
        assert await text_of(bob, id) == both


async def test_what_is_not_saved_is_there_again_and_can_be_discarded(
    desks: Desks, office: Room
) -> None:
    async with opened(desks, office, "edit") as (desk, bob, id):
        await field(desk).fill("half a tho")
        await desk.main.get_by_role("link", name="Back to the document").click()
        await expect(desk.main).to_contain_text("You have begun to change it")
        await desk.main.get_by_role("link", name="Go on").click()
        await expect(field(desk)).to_have_value("half a tho")
        await desk.visit("document", id)
        await desk.main.get_by_role("button", name="Discard").click()
        await expect(desk.main.get_by_role("button", name="Discard")).to_have_count(0)
        await desk.visit("document", id, "edit")
        await expect(field(desk)).to_have_value(TEXT)
        assert await text_of(bob, id) == TEXT


async def test_a_text_that_is_refused_stays_and_the_reason_stands_there(desks: Desks) -> None:
    async with (
        Room.open(mods=[{"documents": {"max_lines": 8}}]) as office,
        opened(desks, office, "edit") as (desk, _, _),
    ):
        long = "x\n" * 9
        await field(desk).fill(long)
        await save(desk)
        await expect(desk.main.get_by_role("alert")).to_contain_text("at most 8 lines")
        await expect(field(desk)).to_have_value(long)


async def test_history_names_versions_and_shows_what_changed(desks: Desks, office: Room) -> None:
    async with opened(desks, office, "history") as (desk, bob, id):
        versions = desk.main.get_by_role("list", name="Versions, the latest first")
        await expect(versions.get_by_role("listitem")).to_have_count(1)
        changed = TEXT.replace("second", "2nd")
        await ask(bob, "write_document", id=id, base_version=1, text=changed, note="shorter")
        newest = versions.get_by_role("listitem").first
        await expect(newest).to_contain_text("shorter")
        await newest.get_by_role("link", name="Changes").click()
        shown = desk.main.get_by_role("region", name="What is different")
        await expect(shown.locator("del")).to_have_text("−second")
        await expect(shown.locator("ins")).to_have_text("+2nd")
        await desk.visit("document", id, "1")
        await expect(desk.main).to_contain_text("This is version 1 of 2.")
        await expect(body(desk)).to_contain_text("second")


async def test_comments_are_made_seen_and_done_with(desks: Desks, office: Room) -> None:
    async with opened(desks, office) as (desk, bob, id):
        comments = desk.main.get_by_role("region", name="Comments")
        await expect(comments).to_contain_text("No comments.")
        await ask(bob, "comment_on_document", id=id, text="why **this**?", line=3)
        (entry,) = await one(comments.get_by_role("listitem"))
        await expect(entry).to_contain_text("line 3")
        await expect(entry.locator("blockquote")).to_have_text("first")
        await expect(entry.locator("strong")).to_have_text("this")
        await comments.get_by_label("Comment", exact=True).fill("because")
        await comments.get_by_label("Line (may be left empty)").fill("99")
        await comments.get_by_role("button", name="Comment").click()
        await expect(comments.get_by_role("alert")).to_contain_text("7 lines, not 99")
        await comments.get_by_label("Line (may be left empty)").fill("")
        await comments.get_by_label("Comment", exact=True).press("Control+Enter")
        await expect(comments.get_by_role("listitem")).to_have_count(2)
        await expect(comments.get_by_label("Comment", exact=True)).to_have_value("")
        await entry.get_by_role("button", name="Done").click()
        await expect(comments.get_by_role("listitem")).to_have_count(1)
        await comments.get_by_label("Those that are done, too").check()
        await expect(comments).to_contain_text("done, says ann")


async def one(found: Locator) -> list[Locator]:
    await expect(found).to_have_count(1)
    return [found.first]


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_documents_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    bob = (await office.join("bob")).client
    id = await written(bob, "A" * 190, f"# Head\n\n{'w' * 300}")
    await ask(bob, "comment_on_document", id=id, text="c" * 300)
    await ask(bob, "write_document", id=id, base_version=1, text="v" * 400, note="n" * 300)
    desk = await desks.sit(office.page, color=color)
    await desk.join_as("ann")
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        for what in ((), ("edit",), ("history",), ("changes", "1", "2"), ("1",)):
            await desk.visit("document", id, *what)
            await expect(heading(desk)).to_contain_text("AAA")
            await desk.is_drawn()
            await audit(desk.page)
            assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        await desk.visit("documents", THREAD)
        await expect(desk.main.get_by_role("listitem")).to_have_count(1)
        await audit(desk.page)
        await desk.main.get_by_role("button", name="New document").click()
        await audit(desk.page)
