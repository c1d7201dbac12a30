"""Takes the pictures of the page anew: `make screenshots`, or `python scripts/screenshots.py turn`.

A network with scripted agents runs, people and agents talk, and every view of
`tests/browser/support/scene.py` is brought up, light and dark, wide and narrow, into
docs/screenshots/<view>-<wide|narrow>-<light|dark>.png. So are those of
`tests/browser/support/workplace.py`, in a network with mods.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Sequence
from contextlib import AsyncExitStack
from itertools import product
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the scene and the way to drive it are those of the tests

from hubbub.testing.model_server import ModelServer  # noqa: E402  after the path
from tests.browser.support import chromium  # noqa: E402
from tests.browser.support.agents import NEWSROOM, newsroom_script  # noqa: E402
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks  # noqa: E402
from tests.browser.support.network import Networks, Room  # noqa: E402
from tests.browser.support.png import shrunk  # noqa: E402
from tests.browser.support.scene import VIEWS, View, a_morning  # noqa: E402
from tests.browser.support.workplace import (  # noqa: E402
    MODS,
    WORKPLACE_VIEWS,
    WorkplaceView,
    a_workday,
)

PICTURES = ROOT / "docs" / "screenshots"
SIZES = {"wide": WIDE, "narrow": NARROW}
COLORS: Sequence[Literal["light", "dark"]] = ("light", "dark")


async def take(views: Sequence[View], at_work: Sequence[WorkplaceView], executable: str) -> None:
    """All pictures of these views."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with chromium.running(executable) as browser:
        for color, size in product(COLORS, SIZES):
            with tempfile.TemporaryDirectory() as folder:
                desks = Desks(browser, Path(folder), lambda: False)
                if views:
                    await _take(views, desks, Path(folder), color, size)
                if at_work:
                    await _take_at_work(at_work, desks, Path(folder), color, size)


async def _take(
    views: Sequence[View], desks: Desks, folder: Path, color: Literal["light", "dark"], size: str
) -> None:
    """Each in a network of its own: who is at work in one picture is not in the next."""
    async with ModelServer(newsroom_script()) as model, AsyncExitStack() as stack:
        network = await Networks(stack, folder).start(NEWSROOM, model=model)
        morning = await a_morning(network, model)
        desk = await desks.sit(network.page, color=color, size=SIZES[size])
        for view in views:
            await view.arrange(desk, morning)
            await _keep(desk, f"{view.name}-{size}-{color}.png")
        model.release("thinking")
        await desks.leave()


async def _take_at_work(
    views: Sequence[WorkplaceView],
    desks: Desks,
    folder: Path,
    color: Literal["light", "dark"],
    size: str,
) -> None:
    """The same of a network with mods."""
    settings = {"name": "newsroom", "store": f"sqlite:{folder}/hub.db"}
    async with Room.open(settings, mods=MODS) as room:
        desk = await desks.sit(room.page, color=color, size=SIZES[size])
        await desk.join_as("ann")
        day = await a_workday(room)
        for view in views:
            await view.arrange(desk, day)
            await _keep(desk, f"{view.name}-{size}-{color}.png")
        await desks.leave()


async def _keep(desk: Desk, name: str) -> None:
    """A picture of what is shown now."""
    await desk.page.mouse.move(0, 0)  # nothing is pointed at
    await desk.is_drawn()
    (PICTURES / name).write_bytes(shrunk(await desk.page.screenshot()))


def main(names: Sequence[str]) -> int:
    """Exit code."""
    executable = chromium.find()
    if executable is None:
        sys.stderr.write(f"{chromium.MISSING}\n")
        return 2
    views = [view for view in VIEWS if view.shot and (not names or view.name in names)]
    at_work = [each for each in WORKPLACE_VIEWS if each.shot and (not names or each.name in names)]
    asyncio.run(take(views, at_work, executable))
    total = sum(path.stat().st_size for path in PICTURES.glob("*.png"))
    where = PICTURES.relative_to(ROOT)
    sys.stdout.write(f"{len(views) + len(at_work)} views in {where}, {total / 1e6:.1f} MB in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
