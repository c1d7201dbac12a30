"""No view has a serious or critical finding of axe-core, light and wide or dark and narrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import problems
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.room import Room
from tests.browser.support.scene import VIEWS, Scene, View, a_morning
from tests.browser.support.workspace import MODS, WORKPLACE_VIEWS, a_workday

_CUT = """() => [...document.querySelectorAll("main > *, aside > *")]
    .filter((it) => it.scrollWidth > it.clientWidth + 1 && !it.matches(".hidden-text"))
    .map((it) => `${it.tagName} ${it.className}: ${it.scrollWidth} of ${it.clientWidth} px`)
    .join(", ")"""
"""What in the middle or on the right is wider than its place, though nobody can scroll there."""

_OF_LOOKS = ("color-contrast", "scrollable-region-focusable", "label")
"""Rules whose findings may be others in other colours and on a narrow screen."""


async def looks_at_all(desk: Desk, views: Sequence[View], scene: Scene) -> None:
    """Arranges each view and audits it light and wide, then dark and narrow."""
    found: list[str] = []
    for view in views:
        await view.arrange(desk, scene)
        await desk.page.emulate_media(color_scheme="light")
        if grave := await problems(desk.page):
            found.append(f"{view.name}, light and wide: {grave}")
        await desk.page.emulate_media(color_scheme="dark")
        await desk.page.set_viewport_size(NARROW)
        await desk.next_frame()
        if grave := await problems(desk.page, *_OF_LOOKS):
            found.append(f"{view.name}, dark and narrow: {grave}")
        if cut := await desk.page.evaluate(_CUT):
            found.append(f"{view.name} is wider than its place: {cut}")
        if await desk.page.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
            found.append(f"{view.name} is wider than a telephone")
        await desk.page.set_viewport_size(WIDE)
    assert not found, "\n\n".join(found)


async def test_every_view_can_be_used_by_everybody(
    desks: Desks, newsroom: Room, model: ModelServer
) -> None:
    scene = await a_morning(newsroom, model)
    desk = await desks.sit(newsroom)
    await looks_at_all(desk, VIEWS, scene)
    model.release("thinking")


async def test_every_view_of_mods_can_be_used_by_everybody(desks: Desks, tmp_path: Path) -> None:
    async with Room.open(mods=MODS, store=f"sqlite:{tmp_path}/hub.db") as room:
        scene = await a_workday(room)
        await looks_at_all(await desks.sit(room, "ann"), WORKPLACE_VIEWS, scene)
        await desks.leave()
