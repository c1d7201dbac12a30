"""axe-core has no serious or critical findings in any view, light and wide or dark and narrow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hubbub.testing.model_server import ModelServer
from tests.browser.support.accessibility import problems
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks
from tests.browser.support.room import Room
from tests.browser.support.scene import VIEWS, Scene, View, set_up_newsroom
from tests.browser.support.workspace import MODS, WORKSPACE_VIEWS, set_up_workspace

_CUT = """() => [...document.querySelectorAll("main > *, aside > *")]
    .filter((it) => it.scrollWidth > it.clientWidth + 1 && !it.matches(".hidden-text"))
    .map((it) => `${it.tagName} ${it.className}: ${it.scrollWidth} of ${it.clientWidth} px`)
    .join(", ")"""
"""The overflowing elements of the middle and right columns, which cannot be scrolled."""

_OF_LOOKS = ("color-contrast", "scrollable-region-focusable", "label")
"""Rules whose findings depend on colours and on the width of the screen."""

_WITH_THREADS = ("home", "digest")
"""Views audited with the left column, which is the same in all of them."""


async def audit_views(desk: Desk, views: Sequence[View], scene: Scene) -> None:
    """Open each view and audit it light and wide, then dark and narrow."""
    findings: list[str] = []
    for view in views:
        await view.arrange(desk, scene)
        without = "" if view.name in _WITH_THREADS else "nav.left"
        await desk.page.emulate_media(color_scheme="light")
        if grave := await problems(desk.page, without=without):
            findings.append(f"{view.name}, light and wide: {grave}")
        await desk.page.emulate_media(color_scheme="dark")
        await desk.page.set_viewport_size(NARROW)
        await desk.next_frame()
        if grave := await problems(desk.page, *_OF_LOOKS, without=without):
            findings.append(f"{view.name}, dark and narrow: {grave}")
        if cut := await desk.page.evaluate(_CUT):
            findings.append(f"{view.name} overflows: {cut}")
        if await desk.page.evaluate("document.documentElement.scrollWidth") > NARROW["width"]:
            findings.append(f"{view.name} is wider than a phone")
        await desk.page.set_viewport_size(WIDE)
    assert not findings, "\n\n".join(findings)


async def test_every_view_passes_the_accessibility_audit(
    desks: Desks, newsroom: Room, model: ModelServer
) -> None:
    scene = await set_up_newsroom(newsroom, model)
    desk = await desks.sit(newsroom)
    await audit_views(desk, VIEWS, scene)
    model.release("thinking")


async def test_every_view_of_the_mods_passes_the_accessibility_audit(
    desks: Desks, tmp_path: Path
) -> None:
    async with Room.open(mods=MODS, store=f"sqlite:{tmp_path}/hub.db") as room:
        scene = await set_up_workspace(room)
        await audit_views(await desks.sit(room, "ann"), WORKSPACE_VIEWS, scene)
        await desks.leave()
