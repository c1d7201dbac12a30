"""The first minute as described in the README, by keyboard only."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest
from playwright.async_api import expect

from tests.browser.support import firefox
from tests.browser.support.accessibility import audit
from tests.browser.support.desk import Desk, Desks
from tests.e2e.support.config_network import ROOT, run_here

QUICKSTART = ROOT / "configs" / "quickstart.yaml"
EXAMPLE = "How many kilometres is the diameter of Jupiter plus the diameter of Saturn, in miles?"


class Browser(Protocol):
    """A browser without a mouse."""

    async def press(self, *keys: str) -> None: ...
    async def press_sequence(self, keys: str) -> None: ...
    async def write(self, text: str) -> None: ...
    async def reads(self, text: str) -> None: ...
    async def stands_in(self, name: str) -> None: ...


class Chromium:
    def __init__(self, desk: Desk):
        self._page, self.press_sequence = desk.page, desk.press_sequence

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._page.keyboard.press(key)

    async def write(self, text: str) -> None:
        await self._page.keyboard.type(text)

    async def reads(self, text: str) -> None:
        await expect(self._page.locator("body")).to_contain_text(text)

    async def stands_in(self, name: str) -> None:
        await expect(self._page.locator(":focus")).to_have_accessible_name(name)


async def _first_minute(browser: Browser) -> None:
    """Join, post to everyone, inspect the turn that answered, and return to the home view."""
    await browser.reads("Join quickstart")
    await browser.stands_in("Join")
    await browser.press("Enter")
    await browser.reads("First steps")
    await browser.stands_in("Message Everyone")
    await browser.write("hello")
    await browser.press("Enter")
    await browser.reads("You can ask:")
    await browser.reads("3 agents · ")
    await browser.press("Escape", "k", "i")
    await browser.reads("Where the time went")
    await browser.press("Escape")
    await browser.press_sequence("gh")
    await browser.reads("Ask an agent something, done")
    await browser.reads("See who did what for an answer, done")


@pytest.mark.behaviour("U-14")
async def test_the_first_minute_works_by_keyboard_and_an_example_by_one_click(
    desks: Desks, tmp_path: Path
) -> None:
    async with run_here(QUICKSTART, tmp_path) as network:
        desk = await desks.sit(network.url)
        await _first_minute(Chromium(desk))
        await audit(desk.page)
        await _an_example(desk)
        await desks.leave()


async def _an_example(desk: Desk) -> None:
    await desk.main.get_by_role("button", name=EXAMPLE).click()
    await desk.sees("163,743.74 miles")
    await expect(desk.message("163,743.74").last).to_contain_text("3 agents · ")


@pytest.mark.behaviour("U-14")
@pytest.mark.skipif(firefox.find() is None, reason=firefox.MISSING)
async def test_the_first_minute_works_in_firefox(tmp_path: Path) -> None:
    executable = firefox.find()
    assert executable is not None
    (profile := tmp_path / "profile").mkdir()
    async with (
        run_here(QUICKSTART, tmp_path) as network,
        firefox.running(executable, profile) as browser,
    ):
        await browser.goto(network.url.replace("ws://", "http://"))
        await _first_minute(browser)
