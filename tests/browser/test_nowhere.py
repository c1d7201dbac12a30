"""Links to missing objects."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

MODS = ["documents", "files", "tasks"]


async def test_a_link_to_a_missing_object_shows_an_explanation(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room, "ann")
    for place, words in (
        (("thread", "channel.nope"), "There is no channel #nope."),
        (("thread", "xyz"), "There is no thread “xyz”."),
        (("turn", "helper-m999"), "There is no record of this turn"),
        (("tasks", "nope"), "There is nothing here that you can see."),
        (("documents", "dm.bob.cyd"), "There is nothing here that you can see."),
        (("interaction", "i999"), "i999"),
        (("interaction",), "set in motion"),
        (("turn",), "Turn"),
        (("no-view",), "Page not found"),
        (("sequence",), "There is no thread without a name."),
        (("thread",), "There is no thread without a name."),
    ):
        await desk.visit(*place)
        await expect(desk.main).to_contain_text(words, ignore_case=True)
    await expect(desk.page).to_have_title("test")
    await desk.visit("", opened=("participant", "nobody"))
    await expect(desk.details).to_contain_text("No one here is called nobody.")
    for kind in ("task", "file"):
        await desk.visit("", opened=(kind, "nope"))
        await expect(desk.details).to_contain_text("There is nothing here that you can see.")
