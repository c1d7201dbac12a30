"""Themes, density, reduced motion, and the layout on wide and narrow screens."""

from __future__ import annotations

from typing import Literal

from playwright.async_api import ViewportSize, expect

from hubbub.protocol.turns import TurnEnd
from tests.browser.support.desk import NARROW, Desk, Desks, becomes
from tests.browser.support.room import Room
from tests.browser.support.worker import worker

GENERAL = "channel.general"
LARGE = ViewportSize(width=1440, height=900)
LATER_MS = 4_000_000_000_000
"""In 2096."""
SMALLEST = 28
"""Minimum width and height of a tap target, in pixels."""
TOO_SMALL = """(smallest) => [...document.querySelectorAll("button, a, input, [role=menuitem]")]
  .filter((it) => it.checkVisibility({visibilityProperty: true, opacityProperty: true}))
  .filter((it) => !it.closest("[role=log], p, .skip") && it.type !== "radio")
  .map((it) => [it.outerHTML.slice(0, 90), it.getBoundingClientRect(),
    it.type === "checkbox" ? 24 : smallest])
  .filter(([, {width, height, bottom}, least]) => bottom > 0 && Math.min(width, height) < least)
  .map(([html, box]) => `${Math.round(box.width)}x${Math.round(box.height)} ${html}`)"""
FITS = """(it) => {
    const {left, right, bottom} = it.getBoundingClientRect();
    return left >= 0 && right <= innerWidth && bottom <= innerHeight;
}"""
IN_ONE_LINE = """(table) => [...table.querySelectorAll("tbody td:nth-child(-n+2) > *")].map(
  (it) => it.offsetHeight < 2 * parseFloat(getComputedStyle(it).lineHeight))"""
INSIDE_MAIN = """(it) => it.getBoundingClientRect().right
  <= document.querySelector("main").getBoundingClientRect().right"""
ABOVE_COMPOSER = """(it) => it.getBoundingClientRect().bottom
  < document.querySelector(".foot").getBoundingClientRect().top"""
IS_WITHIN = (
    "(it) => it.scrollWidth <= it.clientWidth && it.getBoundingClientRect().right <= innerWidth"
)
BRIGHTNESS = """getComputedStyle(it).backgroundColor.match(/\\d+/g).slice(0, 3)
  .reduce((sum, each) => sum + Number(each), 0) / 3"""


async def is_dark(desk: Desk, dark: bool = True) -> None:
    """Wait until the page's background is dark or light."""
    await becomes(desk.page.locator("body"), f"(it) => {BRIGHTNESS} {'<' if dark else '>'} 128")


async def settings(desk: Desk) -> None:
    await desk.choose_in_own_menu("Settings")
    await expect(desk.page.get_by_role("dialog")).to_be_visible()


async def test_the_theme_follows_the_system_or_the_setting_in_all_tabs(
    desks: Desks, room: Room
) -> None:
    desk = await desks.sit(room, "ann", color="dark")
    await is_dark(desk)
    await desk.page.emulate_media(color_scheme="light")
    await is_dark(desk, False)
    other = await desk.another_tab(room.page)
    await other.is_joined()
    await settings(desk)
    assert await desk.page.evaluate("document.getAnimations().length") == 0, "motion is reduced"
    await desk.page.get_by_role("radio", name="Dark").check(force=True)
    for each in (desk, other):
        await expect(each.page.locator(":root")).to_have_attribute("data-theme", "dark")
        await is_dark(each)
    await desk.reload()
    await is_dark(desk)
    row = desk.thread("broadcast")
    before = await row.evaluate("(it) => it.offsetHeight")
    await settings(desk)
    await desk.page.get_by_role("radio", name="Compact").check(force=True)
    await becomes(row, f"(it) => it.offsetHeight < {before}")
    await desk.page.get_by_role("radio", name="System").check(force=True)
    await expect(desk.page.locator(":root[data-theme]")).to_have_count(0)
    await is_dark(desk, False)


async def test_panels_toasts_and_the_current_mark_are_placed_correctly_on_a_wide_screen(
    desks: Desks, room: Room
) -> None:
    name = "an-agent-with-quite-a-long-name-as-teams-give-them"
    async with worker(room, name) as clerk:
        for each in ("librarian", "calculator"):
            await room.enters(each)
        desk = await desks.sit(room, "ann", size=LARGE, new=True)
        await desk.person("librarian").click()
        await expect(desk.details).to_be_visible()
        cards = desk.main.get_by_role("list", name="Agents").get_by_role("button")
        await expect(cards).to_have_count(3)
        for card in await cards.all():
            await becomes(card, INSIDE_MAIN)
        await desk.visit("thread", GENERAL)
        await desk.page.clock.install()
        await desk.page.clock.pause_at(LATER_MS)  # otherwise the toast disappears after seconds
        await desk.submit("/handback ")
        toast = desk.page.locator(".toast")
        await expect(toast).to_be_visible()
        assert await toast.evaluate(ABOVE_COMPOSER)
        await desk.page.clock.resume()
        await desk.page.evaluate("location.hash = '#/message/m999'")
        await desk.announces("m999")
        await desk.visit("thread", "channel_general")  # the id as agents see it
        await expect(desk.composer).to_have_attribute("aria-label", "Message #general")
        await expect(desk.page).to_have_url(f"{room.page}#/thread/{GENERAL}")
        await desk.talk_to(name)
        await desk.says("tidy up")
        await clerk.begins()
        await clerk.asks()
        await desk.threads.get_by_role("link", name="Approvals").click()
        current = desk.threads.locator("[aria-current=page]")
        await expect(current).to_have_count(1)
        await expect(current).to_contain_text("Approvals")
        end = TurnEnd(id=clerk.turn, outcome="finished", reason="said what there was to say " * 9)
        await clerk.client.call("end_turn", end=end)
        await desk.visit("turns", opened=("participant", name))
        await expect(desk.main.get_by_text("said what there was")).to_be_visible()
        assert await desk.main.get_by_role("table").evaluate(IN_ONE_LINE) == [True, True]
        await desks.leave()


async def test_a_phone_shows_one_column_at_a_time(desks: Desks, room: Room) -> None:
    await room.enters("concierge")
    desk = await desks.sit(room, "ann", size=NARROW)
    await expect(desk.threads).to_be_in_viewport()
    await desk.thread(GENERAL).click()
    await expect(desk.threads).to_be_hidden()
    await desk.says("from the train")
    await desk.page.get_by_role("button", name="Thread details").click()
    await expect(desk.details).to_be_in_viewport()
    await expect(desk.composer).to_be_hidden()
    await desk.page.get_by_role("button", name="Back").click()
    await expect(desk.details).to_have_count(0)
    await expect(desk.composer).to_be_visible()
    await desk.page.get_by_role("link", name="Back").click()
    await expect(desk.threads).to_be_visible()
    await desk.main.get_by_role("button", name="concierge").click()
    await expect(desk.composer).to_have_attribute("aria-label", "Message concierge")
    await expect(desk.threads).to_be_hidden()
    await desk.page.set_viewport_size(LARGE)
    await desk.page.get_by_role("button", name="Sidebar").click()
    await expect(desk.threads).to_be_hidden()
    await desk.page.set_viewport_size(NARROW)
    await desk.page.get_by_role("link", name="Back").click()
    await expect(desk.threads).to_be_visible()


async def test_everything_fits_the_screen_of_a_phone_and_is_large_enough_to_tap(
    desks: Desks, room: Room
) -> None:
    long = await room.join("W" * 64)
    await long.client.call("create_channel", name="C" * 64)
    desk = await desks.sit(room, "ann", size=NARROW)
    await long.posts("general", f"@ann {'w' * 300} and some words")
    await expect(desk.threads.locator(".badge.mention").first).to_be_visible()
    opened = (None, ("participant", "W" * 64), ("thread", GENERAL))
    for view in (("",), ("thread", GENERAL), ("inbox",), ("inbox", "threads"), ("network",)):
        for right in opened:
            await desk.visit(*view, opened=right)
            await expect(desk.details).to_have_count(1 if right else 0)
            await desk.fits()
            small: list[str] = await desk.page.evaluate(TOO_SMALL, SMALLEST)
            assert small == [], (view, right)
    paper = {"name": f"{'w' * 150}.pdf", "uri": "https://example.org/", "media_type": "text/pdf"}
    await long.client.call(
        "post_to_channel", channel="general", text="a paper", attachments=[paper]
    )
    await desk.visit("thread", GENERAL)
    attachment = (await desk.sees("a paper")).get_by_role("listitem")
    assert await attachment.evaluate(IS_WITHIN)
    await expect(attachment.get_by_text("text/pdf")).to_be_in_viewport()
    await desk.visit("thread", GENERAL, opened=("thread", GENERAL))
    member = desk.details.get_by_role("button", name="W" * 64)
    await expect(member).to_be_visible()
    assert await member.evaluate(IS_WITHIN)
    await desk.visit("network")
    channel = desk.main.get_by_role("link", name="C" * 64)
    await expect(channel).to_be_visible()
    assert await channel.evaluate(IS_WITHIN)
    for button in (
        "Browse channels", "Create a channel", "Start a conversation", "Go to or do anything",
    ):  # fmt: skip
        await desk.visit("")
        await desk.page.get_by_role("button", name=button).first.click()
        dialog = desk.page.get_by_role("dialog")
        await expect(dialog).to_be_visible()
        await becomes(dialog, FITS)


async def test_approvals_and_turns_of_an_agent_with_a_long_name_fit_the_screen_of_a_phone(
    desks: Desks, room: Room
) -> None:
    async with worker(room, "W" * 64) as clerk:
        desk = await desks.sit(room, "ann", size=NARROW)
        await desk.visit("thread", f"dm.{'W' * 64}.ann")
        await desk.says("tidy up")
        await clerk.begins()
        await clerk.asks("w" * 64)
        views: tuple[tuple[str, Literal["listitem", "cell"]], ...]
        views = (("agents", "listitem"), ("turns", "cell"))
        for view, item in views:
            await desk.visit(view)
            shown = desk.main.get_by_role(item).filter(has_text="W" * 64).first
            await expect(shown).to_be_visible()
            assert await shown.evaluate(IS_WITHIN)
            await desk.fits()
        await desk.visit("inbox", "approvals")
        asked = desk.main.get_by_role("article")
        await expect(asked.get_by_role("button", name="Approve")).to_be_visible()
        assert await asked.evaluate(IS_WITHIN)
        await expect(asked.get_by_text("Pending")).to_be_in_viewport(ratio=1)
        end = TurnEnd(id=clerk.turn, outcome="finished", reason="said what there was to say " * 9)
        await clerk.client.call("end_turn", end=end)
        await desk.visit("inbox", opened=("turn", clerk.turn))
        await expect(desk.details.get_by_text("said what there was")).to_be_visible()
        chip = desk.details.locator(".verdict .chip")
        assert await chip.evaluate("(it) => it.offsetHeight < it.offsetWidth")
        await desks.leave()
