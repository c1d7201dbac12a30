"""No view has a serious or critical finding of axe-core, light or dark, wide or narrow."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from playwright.async_api import ViewportSize

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import audit
from tests.browser.support.agents import NEWSROOM, newsroom_script
from tests.browser.support.desk import NARROW, WIDE, Desks
from tests.browser.support.network import Networks, Room
from tests.browser.support.scene import VIEWS, a_morning
from tests.browser.support.workplace import MODS, WORKPLACE_VIEWS, a_workday

_CUT = """() => [...document.querySelectorAll("main > *, aside > *")]
    .filter((it) => it.scrollWidth > it.clientWidth + 1 && !it.matches(".hidden-text"))
    .map((it) => `${it.tagName} ${it.className}: ${it.scrollWidth} of ${it.clientWidth} px`)
    .join(", ")"""
"""What in the middle or on the right is wider than its place, though nobody can scroll there."""


@pytest.mark.parametrize("color", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_every_view_can_be_used_by_everybody(
    desks: Desks, networks: Networks, color: Literal["light", "dark"], size: ViewportSize
) -> None:
    findings: dict[str, str] = {}
    async with ModelServer(newsroom_script()) as model:
        network = await networks.start(NEWSROOM, model=model)
        morning = await a_morning(network, model)
        desk = await desks.sit(network.page, color=color, size=size)
        for view in VIEWS:
            await view.arrange(desk, morning)
            try:
                await audit(desk.page)
            except AssertionError as error:
                findings[view.name] = str(error)
        model.release("thinking")
    assert not findings, "\n\n".join(f"{name}: {text}" for name, text in findings.items())


@pytest.mark.parametrize("color", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_every_view_of_mods_can_be_used_and_fits(
    desks: Desks, tmp_path: Path, color: Literal["light", "dark"], size: ViewportSize
) -> None:
    findings: dict[str, str] = {}
    async with Room.open({"store": f"sqlite:{tmp_path}/hub.db"}, mods=MODS) as room:
        day = await a_workday(room)
        desk = await desks.sit(room.page, color=color, size=size)
        await desk.join_as("ann")
        for view in WORKPLACE_VIEWS:
            await view.arrange(desk, day)
            try:
                await audit(desk.page)
            except AssertionError as error:
                findings[view.name] = str(error)
            if cut := await desk.page.evaluate(_CUT):
                findings[view.name] = f"wider than its place: {cut}"
        await desks.leave()
    assert not findings, "\n\n".join(f"{name}: {text}" for name, text in findings.items())
