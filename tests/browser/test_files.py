"""Files in the page: attached, shown, downloaded, listed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from playwright.async_api import FilePayload, Locator, expect
from pydantic import JsonValue

from tests.browser.support.accessibility import audit
from tests.browser.support.desk import NARROW, Desk, Desks
from tests.browser.support.room import Room, call
from tests.e2e.support.cables import tcp_cable

pytestmark = pytest.mark.behaviour("M-330")

MODS: Sequence[JsonValue] = [
    {"files": {"max_size": "1MB", "types": ["image/*", "text/*", ".bin"]}}
]  # fmt: skip
THREAD = "channel.general"
LONG = b"0123456789abcdef" * 30_000
"""More than three upload parts."""

_DROP = """(place, [type, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const carried = type === "paste" ? {clipboardData: data} : {dataTransfer: data};
    const Kind = type === "paste" ? ClipboardEvent : DragEvent;
    const event = new Kind(type, {bubbles: true, cancelable: true, ...carried});
    return !place.dispatchEvent(event);
}"""
"""Returns whether the page prevented the browser from opening the file."""

_KEPT = """async (name) => {
    const asked = indexedDB.open("hubbub-files");
    const opened = await new Promise((then) => (asked.onsuccess = () => then(asked.result)));
    for (let kept = []; !kept.some((file) => file.name === name); ) {
        const all = opened.transaction("hubbub-files").objectStore("hubbub-files").getAll();
        kept = await new Promise((then) => (all.onsuccess = () => then(all.result)));
    }
    opened.close();
}"""
"""Waits until the browser has stored the bytes of a file."""


async def in_thread(desks: Desks, at: Room | str) -> Desk:
    desk = await desks.sit(at, "ann", THREAD)
    await expect(clip(desk)).to_be_visible()
    return desk


def clip(desk: Desk) -> Locator:
    return desk.main.get_by_role("button", name="Attach files")


def tray(desk: Desk, name: str) -> Locator:
    """A file of the next message."""
    along = desk.main.get_by_role("list", name="Files for the next message")
    return along.get_by_role("listitem").filter(has_text=name)


def listed(desk: Desk) -> Locator:
    return desk.main.get_by_role("list", name="Files, latest first").get_by_role("listitem")


def file(name: str, content: bytes = b"some words", kind: str = "text/plain") -> FilePayload:
    return FilePayload(name=name, mimeType=kind, buffer=content)


async def chooses(desk: Desk, *files: FilePayload) -> None:
    async with desk.page.expect_file_chooser() as asked:
        await clip(desk).click()
    await (await asked.value).set_files(list(files))


async def is_ready(desk: Desk, *names: str) -> None:
    for name in names:
        await expect(tray(desk, name)).to_have_attribute("data-state", "there")


async def takes_out(desk: Desk, name: str) -> None:
    await tray(desk, name).get_by_role("button", name=f"Remove {name}").click()
    await expect(tray(desk, name)).to_have_count(0)


async def test_files_are_attached_by_dialog_drop_and_paste_and_downloaded(
    desks: Desks, room: Room
) -> None:
    desk = await in_thread(desks, room)
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
    for way in ("drop", "paste"):  # a message can have no text
        await desk.composer.evaluate(_DROP, [way, f"{way}.txt", "some words"])
        await is_ready(desk, f"{way}.txt")
        await desk.composer.press("Enter")
        said = await desk.sees(f"{way}.txt")
        await expect(said.get_by_role("button", name=f"Download {way}.txt")).to_be_visible()
    # A file dropped outside the conversation does not replace the page.
    assert await desk.threads.evaluate(_DROP, ["drop", "x.txt", "x"])
    await expect(tray(desk, "x.txt")).to_have_count(0)
    # A removed file is not stored at the hub.
    await chooses(desk, file("one.txt"))
    await is_ready(desk, "one.txt")
    await takes_out(desk, "one.txt")
    await desk.visit("files")
    await expect(listed(desk)).to_have_count(4)
    await expect(listed(desk).filter(has_text="one.txt")).to_have_count(0)


async def test_a_refused_file_shows_the_reason_and_blocks_the_message(
    desks: Desks, room: Room
) -> None:
    desk = await in_thread(desks, room)
    big = file("big.bin", b"x" * 1_100_000)
    await chooses(desk, file("empty.txt", b""), big, file("song.mp3", b"ID3aaaa", "audio/mpeg"))
    await expect(tray(desk, "empty.txt").get_by_role("alert")).to_contain_text("empty")
    await expect(tray(desk, "big.bin").get_by_role("alert")).to_contain_text("the limit is")
    await expect(tray(desk, "song.mp3")).to_have_attribute("data-state", "failed")
    await desk.submit("Look")
    alert = desk.main.locator(".composer").get_by_role("alert")
    await expect(alert).to_contain_text("could not be uploaded")
    await expect(desk.composer).to_have_value("Look")
    await audit(desk.page)
    await desk.page.set_viewport_size(NARROW)
    await desk.fits()
    for name in ("empty.txt", "big.bin", "song.mp3"):
        await takes_out(desk, name)
    await desk.send()
    await desk.is_stored("Look")


@pytest.mark.behaviour("M-331")
async def test_an_upload_resumes_after_a_disconnect_and_after_a_reload(
    desks: Desks, room: Room
) -> None:
    async with tcp_cable(room.address) as cable:
        desk = await in_thread(desks, cable.url)
        desk.expect_losses()
        cable.cut()
        await desk.notices_the_loss()
        await chooses(desk, file("first.bin", LONG))
        await expect(tray(desk, "first.bin")).to_have_attribute("data-state", "sending")
        cable.mend()
        await is_ready(desk, "first.bin")
        cable.silence()
        await chooses(desk, file("long.bin", LONG))
        await expect(tray(desk, "long.bin")).to_have_attribute("data-state", "sending")
        await desk.page.evaluate(_KEPT, "long.bin")
        cable.mend()
        await desk.reload()
        await is_ready(desk, "first.bin", "long.bin")
        await desk.says("after the reload")
        said = await desk.sees("after the reload")
        await expect(said.get_by_role("button", name="About long.bin")).to_be_visible()
        await desks.leave()


async def test_a_file_is_uploaded_by_one_tab_only_also_if_that_is_closed(
    desks: Desks, room: Room
) -> None:
    ann = (await room.join("ann")).client
    async with tcp_cable(room.address) as cable:
        desk = await in_thread(desks, cable.url)
        other = await desk.another_tab(f"{cable.url}#/thread/{THREAD}")
        await expect(clip(other)).to_be_visible()
        await chooses(desk, file("notes.md"))
        for tab in (desk, other):
            await is_ready(tab, "notes.md")
        cable.silence()
        await chooses(desk, file("long.bin", LONG))
        await expect(tray(other, "long.bin")).to_have_attribute("data-state", "waiting")
        await desk.page.evaluate(_KEPT, "long.bin")
        await desk.page.close()
        cable.mend()
        await is_ready(other, "long.bin")
        await other.says("from the other tab")
        said = await call(ann, "read_thread", thread=THREAD)
        files = [each["uri"] for each in said["messages"][-1]["attachments"]]
        assert files == ["file:f1", "file:f2"]


@pytest.mark.behaviour("M-332")
async def test_images_are_previewed_and_enlarged_and_no_script_in_a_file_runs(
    desks: Desks, room: Room
) -> None:
    desk = await in_thread(desks, room)
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>window.broken = true</script></svg>'
    seen = await desk.page.screenshot()
    await chooses(desk, file("page.png", seen, "image/png"), file("a.svg", svg, "image/svg+xml"))
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


async def test_files_of_a_thread_are_listed_live_and_deleted_by_their_owners(
    desks: Desks, room: Room
) -> None:
    bob = (await room.join("bob")).client
    text = {"text": "one\ntwo\n", "thread": THREAD}
    first = (await call(bob, "write_file", name="first.md", **text))["id"]
    attached = [{"name": "first.md", "uri": f"file:{first}"}]
    await bob.call("post_to_channel", channel="general", text="look", attachments=attached)
    desk = await in_thread(desks, room)
    await desk.choose_in_thread_menu("Files of this thread")
    await expect(desk.main.get_by_role("heading", level=1)).to_have_text("Files in #general")
    await expect(listed(desk)).to_have_count(1)
    await bob.call("write_file", name="second.md", **text)
    await expect(listed(desk)).to_have_count(2)
    await listed(desk).first.get_by_role("button", name="second.md", exact=True).click()
    await expect(desk.details).to_contain_text("2 lines")
    await desk.visit("thread", THREAD)
    look = await desk.sees("look")
    await expect(look.get_by_role("button", name="Download first.md")).to_be_visible()
    await bob.call("delete_file", id=first)
    await expect(look.locator(".attached")).to_contain_text("deleted")
    await expect(look.get_by_role("button", name="Download first.md")).to_have_count(0)
    await chooses(desk, file("mine.md"))
    await is_ready(desk, "mine.md")
    await desk.says("mine")
    await (await desk.sees("mine")).get_by_role("button", name="About mine.md").click()
    await desk.details.get_by_role("button", name="Delete").click()
    await desk.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(desk.details).to_contain_text("ann deleted it")
