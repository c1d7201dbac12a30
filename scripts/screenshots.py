"""Takes the pictures of the page anew: `make screenshots`, or `python scripts/screenshots.py turn`.

A network with scripted agents runs, people and agents talk, and every view of
`tests/browser/support/scene.py` is brought up, light and dark, wide and narrow, into
docs/screenshots/<view>-<wide|narrow>-<light|dark>.png.
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
from tests.browser.support.desk import NARROW, WIDE, Desks  # noqa: E402
from tests.browser.support.network import Networks  # noqa: E402
from tests.browser.support.png import shrunk  # noqa: E402
from tests.browser.support.scene import VIEWS, View, a_morning  # noqa: E402

PICTURES = ROOT / "docs" / "screenshots"
SIZES = {"wide": WIDE, "narrow": NARROW}
COLORS: Sequence[Literal["light", "dark"]] = ("light", "dark")


async def take(views: Sequence[View], executable: str) -> None:
    """All pictures of these views."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with chromium.running(executable) as browser:
        for color, size in product(COLORS, SIZES):
            with tempfile.TemporaryDirectory() as folder:
                desks = Desks(browser, Path(folder), lambda: False)
                await _take(views, desks, Path(folder), color, size)


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
            await desk.page.mouse.move(0, 0)  # nothing is pointed at
            await desk.is_drawn()
            picture = shrunk(await desk.page.screenshot())
            (PICTURES / f"{view.name}-{size}-{color}.png").write_bytes(picture)
        model.release("thinking")
        await desks.leave()


def main(names: Sequence[str]) -> int:
    """Exit code."""
    executable = chromium.find()
    if executable is None:
        sys.stderr.write(f"{chromium.MISSING}\n")
        return 2
    views = [view for view in VIEWS if view.shot and (not names or view.name in names)]
    asyncio.run(take(views, executable))
    total = sum(path.stat().st_size for path in PICTURES.glob("*.png"))
    where = PICTURES.relative_to(ROOT)
    sys.stdout.write(f"{len(views)} views in {where}, {total / 1e6:.1f} MB in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
