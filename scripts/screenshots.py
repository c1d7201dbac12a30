"""Takes the pictures of the page anew: `make screenshots`, or `python scripts/screenshots.py turn`.

A network with scripted agents runs, people and agents talk, and every view of
`tests/browser/support/scene.py` is brought up, light and dark, wide and narrow, into
docs/screenshots/<view>-<wide|narrow>-<light|dark>.png. So are those of
`tests/browser/support/workspace.py`, in a network with mods.
"""

from __future__ import annotations

import asyncio
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))  # the scene and the way to drive it are those of the tests

from hubbub.testing.model_server import ModelServer  # noqa: E402  after the path
from tests.browser.support import chromium  # noqa: E402
from tests.browser.support.agents import NEWSROOM, newsroom_script  # noqa: E402
from tests.browser.support.desk import NARROW, WIDE, Desk, Desks, Seats  # noqa: E402
from tests.browser.support.room import Room  # noqa: E402
from tests.browser.support.scene import VIEWS, View, set_up_newsroom  # noqa: E402
from tests.browser.support.workspace import MODS, WORKSPACE_VIEWS, set_up_workspace  # noqa: E402

PICTURES = ROOT / "docs" / "screenshots"
SIZES = {"wide": WIDE, "narrow": NARROW}
SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {2: 3, 6: 4}
COLORS: Sequence[Literal["light", "dark"]] = ("light", "dark")


async def take(views: Sequence[View], at_work: Sequence[View], executable: str) -> None:
    """All pictures of these views."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    async with chromium.running(executable) as browser, Seats.open(browser) as seats:
        for color, size in product(COLORS, SIZES):
            with tempfile.TemporaryDirectory() as folder:
                desks = Desks(seats, Path(folder), lambda: False)
                if views:
                    await _take(views, desks, color, size)
                if at_work:
                    await _take_at_work(at_work, desks, Path(folder), color, size)


async def _take(
    views: Sequence[View], desks: Desks, color: Literal["light", "dark"], size: str
) -> None:
    """Each in a network of its own: who is at work in one picture is not in the next."""
    async with (
        ModelServer(newsroom_script()) as model,
        Room.open({"name": "newsroom"}, plan=NEWSROOM, model=model) as room,
    ):
        morning = await set_up_newsroom(room, model)
        name = None if views[0].name == "join" else "ann"
        desk = await desks.sit(room, name, color=color, size=SIZES[size])
        for view in views:
            await view.arrange(desk, morning)
            await _keep(desk, f"{view.name}-{size}-{color}.png")
        model.release("thinking")
        await desks.leave()


async def _take_at_work(
    views: Sequence[View],
    desks: Desks,
    folder: Path,
    color: Literal["light", "dark"],
    size: str,
) -> None:
    """The same of a network with mods."""
    settings = {"name": "newsroom", "store": f"sqlite:{folder}/hub.db"}
    async with Room.open(settings, mods=MODS) as room:
        desk = await desks.sit(room, "ann", color=color, size=SIZES[size])
        day = await set_up_workspace(room)
        for view in views:
            await view.arrange(desk, day)
            await _keep(desk, f"{view.name}-{size}-{color}.png")
        await desks.leave()


async def _keep(desk: Desk, name: str) -> None:
    """A picture of what is shown now."""
    await desk.page.mouse.move(0, 0)  # nothing is pointed at
    await desk.is_drawn()
    (PICTURES / name).write_bytes(shrunk(await desk.page.screenshot()))


def shrunk(png: bytes) -> bytes:
    """The same pixels in fewer bytes. 8 bits a channel with or without alpha, not interlaced.

    Filtered lines, as browsers write them, suit photographs; flat areas and text compress better
    without (PNG specification, 12.7 "Filter selection").
    """
    chunks = list(_chunks(png))
    width, _, depth, color, _, _, interlaced = struct.unpack(">IIBBBBB", chunks[0][1])
    if depth != 8 or color not in CHANNELS or interlaced:
        raise ValueError(f"not a picture of this kind: {depth} bits, color type {color}")
    data = zlib.decompress(b"".join(body for kind, body in chunks if kind == b"IDAT"))
    lines = _unfiltered(data, width * CHANNELS[color], CHANNELS[color])
    packed = zlib.compress(b"".join(b"\0" + line for line in lines), 9)
    return SIGNATURE + b"".join(
        _chunk(kind, body)
        for kind, body in ((b"IHDR", chunks[0][1]), (b"IDAT", packed), (b"IEND", b""))
    )


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not png.startswith(SIGNATURE):
        raise ValueError("no PNG")
    at = len(SIGNATURE)
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + size]
        at += size + 12


def _chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def _unfiltered(data: bytes, size: int, step: int) -> Iterator[bytes]:
    """The lines of `size` bytes; `step` is the bytes of a pixel (PNG specification, 9.2)."""
    above = bytearray(size)
    for at in range(0, len(data), size + 1):
        line = bytearray(data[at + 1 : at + 1 + size])
        _unfilter(data[at], line, above, step)
        yield bytes(line)
        above = line


def _unfilter(how: int, line: bytearray, above: bytearray, step: int) -> None:
    for i in range(len(line)) if how else ():
        left = line[i - step] if i >= step else 0
        if how == 1:
            guess = left
        elif how == 2:
            guess = above[i]
        elif how == 3:
            guess = (left + above[i]) >> 1
        else:
            guess = _paeth(left, above[i], above[i - step] if i >= step else 0)
        line[i] = (line[i] + guess) & 0xFF


def _paeth(left: int, up: int, corner: int) -> int:
    near_left, near_up = abs(up - corner), abs(left - corner)
    near_corner = abs(left + up - 2 * corner)
    if near_left <= near_up and near_left <= near_corner:
        return left
    return up if near_up <= near_corner else corner


def main(names: Sequence[str]) -> int:
    """Exit code."""
    executable = chromium.find()
    if executable is None:
        sys.stderr.write(f"{chromium.MISSING}\n")
        return 2
    views = [view for view in VIEWS if view.shot and (not names or view.name in names)]
    at_work = [each for each in WORKSPACE_VIEWS if each.shot and (not names or each.name in names)]
    asyncio.run(take(views, at_work, executable))
    total = sum(path.stat().st_size for path in PICTURES.glob("*.png"))
    where = PICTURES.relative_to(ROOT)
    sys.stdout.write(f"{len(views) + len(at_work)} views in {where}, {total / 1e6:.1f} MB in all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
