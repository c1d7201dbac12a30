"""Links to what is not there, and what the page costs to open."""

from __future__ import annotations

from playwright.async_api import expect

from tests.browser.support.desk import Desks
from tests.browser.support.room import Room

FIRST_LOAD_BYTES = 250 * 1024
SIZES = "performance.getEntriesByType('resource').map((it) => [it.name, it.transferSize])"


async def test_links_to_what_never_was_say_so(desks: Desks, room: Room) -> None:
    desk = await desks.sit(room, "ann")
    for place, words in (
        (("thread", "channel.nope"), "There is no channel #nope."),
        (("thread", "xyz"), "There is no thread “xyz”."),
        (("turn", "helper-m999"), "There is no record of this turn"),
        (("interaction", "i999"), "i999"),
        (("interaction",), "set in motion"),
        (("turn",), "Turn"),
        (("sequence",), "There is no thread without a name."),
        (("thread",), "There is no thread without a name."),
    ):
        await desk.visit(*place)
        await expect(desk.main).to_contain_text(words, ignore_case=True)
    await expect(desk.page).to_have_title("test")
    await desk.visit("", opened=("participant", "nobody"))
    await expect(desk.details).to_contain_text("Nobody here is called nobody.")


async def test_the_first_load_is_small_and_a_second_one_fetches_no_file_again(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann", "channel.general", new=True)
    await desk.page.wait_for_load_state("networkidle")
    sizes: list[tuple[str, int]] = await desk.page.evaluate(SIZES)
    assert sum(size for _, size in sizes) < FIRST_LOAD_BYTES, sizes
    await desk.page.reload()
    await desk.is_joined()
    await desk.page.wait_for_load_state("networkidle")
    assert [each for each in await desk.page.evaluate(SIZES) if each[1] > 0] == []
