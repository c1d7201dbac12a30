"""Files in the page: attached, shown, downloaded, listed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
import pytest_asyncio
from playwright.async_api import FilePayload, Locator, expect
from pydantic import JsonValue

from hubbub.client import Client
from hubbub.mods.files.words import File, Files
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.network import Room
from tests.browser.support.wire import laid

pytestmark = pytest.mark.behaviour("M-330")

THREAD = "channel.general"
LONG = b"0123456789abcdef" * 30_000
"""Of more than three parts."""

_DROP = """(place, [type, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const carried = type === "paste" ? {clipboardData: data} : {dataTransfer: data};
    const Kind = type === "paste" ? ClipboardEvent : DragEvent;
    place.dispatchEvent(new Kind(type, {bubbles: true, cancelable: true, ...carried}));
}"""


_KEPT = """async () => {
    const asked = indexedDB.open("hubbub-files");
    const opened = await new Promise((then) => (asked.onsuccess = () => then(asked.result)));
    for (let kept = 0; !kept; ) {
        const count = opened.transaction("hubbub-files").objectStore("hubbub-files").count();
        kept = await new Promise((then) => (count.onsuccess = () => then(count.result)));
    }
    opened.close();
}"""
"""Waits until the browser has put the bytes of a file away."""


@pytest_asyncio.fixture(loop_scope="session")
async def office(desks: Desks, tmp_path: Path) -> AsyncIterator[Room]:
    """A room with the mod, and small files only."""
    mods: list[JsonValue] = [{"files": {"max_size": "1MB", "types": ["image/*", "text/*", ".bin"]}}]
    async with Room.open(mods=mods, store=f"sqlite:{tmp_path}/hub.db") as room:
        yield room
        await desks.leave()


async def here(desks: Desks, office: Room, url: str | None = None, **how: Any) -> Desk:
    desk = await desks.sit(url or office.page, **how)
    await desk.join_as("ann")
    await desk.visit("thread", THREAD)
    await expect(clip(desk)).to_be_visible()
    return desk


def clip(desk: Desk) -> Locator:
    return desk.main.get_by_role("button", name="Attach files")


def tray(desk: Desk, name: str) -> Locator:
    """A file that goes along with the next message."""
    return desk.main.get_by_role("list", name="Files that go along").get_by_role(
        "listitem"
    ).filter(has_text=name)  # fmt: skip


def file(name: str, content: bytes = b"some words", kind: str = "text/plain") -> FilePayload:
    return FilePayload(name=name, mimeType=kind, buffer=content)


async def chooses(desk: Desk, *files: FilePayload) -> None:
    async with desk.page.expect_file_chooser() as asked:
        await clip(desk).click()
    await (await asked.value).set_files(list(files))


async def is_ready(desk: Desk, *names: str) -> None:
    for name in names:
        await expect(tray(desk, name)).to_have_attribute("data-state", "there")


async def listed(client: Client) -> Sequence[File]:
    answer = await client.call("list_files")
    return Files.model_validate(answer).files


async def brought(client: Client, name: str, text: str = "some words") -> str:
    """A text file of #general; its id."""
    made = await client.call("write_file", name=name, text=text, thread=THREAD)
    assert isinstance(made, dict)
    return str(made["id"])


async def picture(desk: Desk) -> bytes:
    return await desk.page.screenshot()


async def test_files_are_attached_by_the_button_and_downloaded(desks: Desks, office: Room) -> None:
    bob = (await office.join("bob")).client
    await bob.call("join_channel", channel="general")
    desk = await here(desks, office)
    await chooses(desk, file("long.bin", LONG), file("notes.md"))
    await is_ready(desk, "long.bin", "notes.md")
    await desk.says("Here they are.")
    await expect(tray(desk, "notes.md")).to_have_count(0)
    said = await desk.sees("Here they are.")
    await expect(said.get_by_role("button", name="About notes.md")).to_be_visible()
    await expect(said).to_contain_text("480 KB")
    async with desk.page.expect_download() as coming:
        await said.get_by_role("button", name="Download long.bin").click()
    got = await coming.value
    assert got.suggested_filename == "long.bin"
    assert (await got.path()).read_bytes() == LONG
    assert {each.name for each in await listed(bob)} == {"long.bin", "notes.md"}


@pytest.mark.parametrize("how", ["drop", "paste"])
async def test_files_are_dropped_and_pasted_and_go_without_words(
    desks: Desks, office: Room, how: str
) -> None:
    desk = await here(desks, office)
    await desk.composer.evaluate(_DROP, [how, "dropped.txt", "some words"])
    await is_ready(desk, "dropped.txt")
    await desk.composer.press("Enter")
    said = await desk.sees("dropped.txt")
    await expect(said.get_by_role("button", name="Download dropped.txt")).to_be_visible()


async def test_a_file_that_misses_the_conversation_does_not_replace_the_page(
    desks: Desks, office: Room
) -> None:
    desk = await here(desks, office)
    prevented = await desk.threads.evaluate(
        """(place) => {
            const data = new DataTransfer();
            data.items.add(new File(["x"], "x.txt"));
            const how = {bubbles: true, cancelable: true, dataTransfer: data};
            return !place.dispatchEvent(new DragEvent("drop", how));
        }"""
    )
    assert prevented
    await expect(tray(desk, "x.txt")).to_have_count(0)


async def test_what_is_refused_says_why_where_it_stands_and_keeps_the_message_back(
    desks: Desks, office: Room
) -> None:
    desk = await here(desks, office)
    big = file("big.bin", b"x" * 1_100_000)
    await chooses(desk, file("empty.txt", b""), big, file("song.mp3", b"ID3aaaa", "audio/mpeg"))
    await expect(tray(desk, "empty.txt").get_by_role("alert")).to_contain_text("empty")
    await expect(tray(desk, "big.bin").get_by_role("alert")).to_contain_text("at most")
    await expect(tray(desk, "song.mp3")).to_have_attribute("data-state", "failed")
    await desk.write("Look")
    await desk.send()
    await expect(desk.main.locator(".composer").get_by_role("alert")).to_contain_text(
        "could not be uploaded"
    )
    await expect(desk.composer).to_have_value("Look")
    for name in ("empty.txt", "big.bin", "song.mp3"):
        await tray(desk, name).get_by_role("button", name=f"Do not attach {name}").click()
        await expect(tray(desk, name)).to_have_count(0)
    await desk.send()
    await desk.is_stored("Look")


async def test_what_is_taken_out_is_not_kept_by_the_hub(desks: Desks, office: Room) -> None:
    desk = await here(desks, office)
    await chooses(desk, file("one.txt"), file("two.txt"))
    await is_ready(desk, "one.txt", "two.txt")
    await tray(desk, "one.txt").get_by_role("button", name="Do not attach one.txt").click()
    await desk.visit("files")
    names = desk.main.get_by_role("list", name="Files, the latest first").get_by_role("listitem")
    await expect(names).to_have_count(1)
    await expect(names).to_contain_text("two.txt")


@pytest.mark.behaviour("M-331")
async def test_an_upload_goes_on_when_the_hub_is_back(desks: Desks, office: Room) -> None:
    async with laid(office.port) as wire:
        desk = await here(desks, office, url=wire.url)
        desk.expect_losses()
        wire.cut()
        await desk.notices_the_loss()
        await chooses(desk, file("long.bin", LONG))
        await expect(tray(desk, "long.bin")).to_have_attribute("data-state", "sending")
        wire.mend()
        await is_ready(desk, "long.bin")


@pytest.mark.behaviour("M-331")
async def test_an_upload_goes_on_after_a_reload_and_what_is_there_stays(
    desks: Desks, office: Room
) -> None:
    async with laid(office.port) as wire:
        desk = await here(desks, office, url=wire.url)
        desk.expect_losses()
        await chooses(desk, file("first.md"))
        await is_ready(desk, "first.md")
        wire.silence()
        await chooses(desk, file("long.bin", LONG))
        await expect(tray(desk, "long.bin")).to_have_attribute("data-state", "sending")
        await desk.page.evaluate(_KEPT)
        wire.mend()
        await desk.page.reload()
        await desk.is_joined()
        await is_ready(desk, "first.md", "long.bin")
        await desk.says("after the reload")
        said = await desk.sees("after the reload")
        await expect(said.get_by_role("button", name="About long.bin")).to_be_visible()


@pytest.mark.behaviour("M-332")
async def test_pictures_show_below_the_message_and_large(desks: Desks, office: Room) -> None:
    desk = await here(desks, office)
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.broken = true</script></svg>'
    await chooses(
        desk,
        file("page.png", await picture(desk), "image/png"),
        file("a.svg", svg, "image/svg+xml"),
    )
    await is_ready(desk, "page.png", "a.svg")
    await desk.says("pictures")
    said = await desk.sees("pictures")
    await expect(said.locator("canvas")).to_have_attribute("data-state", "there")
    await expect(said.locator("canvas")).to_have_count(1)
    await expect(said.locator(".attached img, .attached iframe, .attached object")).to_have_count(0)
    await said.get_by_role("button", name="Show page.png").click()
    large = desk.page.get_by_role("dialog", name="page.png").get_by_role("img")
    await expect(large).to_have_attribute("data-state", "there")
    await desk.page.keyboard.press("Escape")
    await expect(said.get_by_role("button", name="Show page.png")).to_be_focused()
    assert not await desk.page.evaluate("'broken' in window")


async def test_a_file_of_a_thread_is_listed_live_and_deleted_by_its_owner(
    desks: Desks, office: Room
) -> None:
    bob = (await office.join("bob")).client
    first = await brought(bob, "first.md")
    said = await bob.call("post_to_channel", channel="general", text="look", attachments=[
        {"name": "first.md", "uri": f"file:{first}"}
    ])  # fmt: skip
    assert isinstance(said, dict)
    desk = await here(desks, office)
    await desk.main.get_by_role("button", name="More in this thread").click()
    await desk.page.get_by_role("menuitem", name="Files of this thread").click()
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Files in #general")
    files = desk.main.get_by_role("list", name="Files, the latest first").get_by_role("listitem")
    await expect(files).to_have_count(1)
    await brought(bob, "second.md", "one\ntwo\n")
    await expect(files).to_have_count(2)
    await files.first.get_by_role("button", name="second.md", exact=True).click()
    await expect(desk.details).to_contain_text("2 lines")
    await desk.visit("thread", THREAD)
    look = await desk.sees("look")
    await expect(look.get_by_role("button", name="Download first.md")).to_be_visible()
    await bob.call("delete_file", id=first)
    await expect(look.locator(".attached")).to_contain_text("deleted")
    await expect(look.get_by_role("button", name="Download first.md")).to_have_count(0)


async def test_ones_own_file_is_deleted_after_a_question(desks: Desks, office: Room) -> None:
    desk = await here(desks, office)
    await chooses(desk, file("mine.md"))
    await is_ready(desk, "mine.md")
    await desk.says("mine")
    await (await desk.sees("mine")).get_by_role("button", name="About mine.md").click()
    await desk.details.get_by_role("button", name="Delete").click()
    await desk.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(desk.details).to_contain_text("ann has deleted it")


@pytest.mark.parametrize("color", ["light", "dark"])
async def test_files_are_accessible_and_fit_a_telephone(
    desks: Desks, office: Room, color: Literal["light", "dark"]
) -> None:
    desk = await here(desks, office, color=color)
    name = f"{'w' * 150}.png"
    await chooses(
        desk, file(name, await picture(desk), "image/png"), file("notes.md"), file("no.mp3")
    )
    await expect(tray(desk, "no.mp3")).to_have_attribute("data-state", "failed")
    await audit(desk.page)
    await tray(desk, "no.mp3").get_by_role("button", name="Do not attach no.mp3").click()
    await desk.says("files")
    await expect((await desk.sees("files")).locator("canvas")).to_have_attribute(
        "data-state", "there"
    )
    await chooses(desk, file("more.md"), file(name), file("no.mp3"))
    await expect(tray(desk, "no.mp3")).to_have_attribute("data-state", "failed")
    for size in (WIDE, NARROW):
        await desk.page.set_viewport_size(size)
        for view, opened in (("thread", None), ("files", None), ("files", ("file", "f1"))):
            await desk.visit(view, THREAD, opened=opened)
            await desk.is_drawn()
            await audit(desk.page)
            assert await desk.page.evaluate("document.documentElement.scrollWidth") <= size["width"]
