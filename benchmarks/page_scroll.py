"""How long Chromium's main thread is busy at a time while one scrolls up in a long conversation:
`python -m benchmarks.page_scroll`.

A channel with 5,000 messages (short ones, Markdown, code, tables) is opened at its end and scrolled
up by 120 steps of the wheel, three times in a new window each. Per run it prints the longest tasks
as Chromium's tracing has them (`RunTask` of the page's main thread), by the clock and by the
processor: on a machine with other work the first has waits in it. No task over 50 ms is wanted in
the median.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.async_api import Browser
from pydantic import JsonValue

from tests.browser.support import chromium
from tests.browser.support.desk import Desks, Seats
from tests.browser.support.room import Room

MESSAGES = 5000
STEPS = 120
STEP_PX = 400
RUNS = 3
AT_ONCE = 200
SHOWN = 5
LIMITS: dict[str, JsonValue] = {"calls_per_second": 1_000_000, "burst": 1_000_000}
CODE = "```python\ndef ratio(a: float, b: float) -> float:\n    return a / b\n```"
TABLE = "| planet | diameter |\n|---|---:|\n| Jupiter | 139,822 km |\n| Saturn | 116,464 km |"
TEXTS = (
    "Yes.",
    "A **word** about #general and @ann, see m12.",
    CODE,
    "- one\n- two\n- three",
    TABLE,
)
LONG = "A paragraph of some length, as agents write them when they explain what they did. " * 6
CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"]


async def fill(room: Room) -> None:
    """Say everything, several at a time."""
    bob = await room.join("bob")
    for first in range(0, MESSAGES, AT_ONCE):
        numbers = range(first, first + AT_ONCE)
        texts = [f"{n}. {LONG if n % 7 == 0 else TEXTS[n % len(TEXTS)]}" for n in numbers]
        said = (bob.client.call("post_to_channel", channel="general", text=text) for text in texts)
        await asyncio.gather(*said)


async def scroll(browser: Browser, room: Room) -> list[tuple[float, float]]:
    """The tasks of one run: milliseconds by the clock, and of the processor."""
    with tempfile.TemporaryDirectory() as folder:
        async with Seats.open(browser) as seats:
            desks = Desks(seats, Path(folder), lambda: False)
            desk = await desks.sit(room, "ann", "channel.general", new=True)
            await desk.to_the_end()
            await desk.is_drawn()
            await desk.conversation.hover()
            await browser.start_tracing(page=desk.page, categories=CATEGORIES)
            for _ in range(STEPS):
                await desk.page.mouse.wheel(0, -STEP_PX)
                await desk.next_frame()
            trace = json.loads(await browser.stop_tracing())["traceEvents"]
            await desks.leave()
    return tasks(trace)


def tasks(trace: list[dict[str, Any]]) -> list[tuple[float, float]]:
    """Those of the main threads of pages."""
    mains = {
        (each["pid"], each["tid"])
        for each in trace
        if each["name"] == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    found = [
        (each["dur"] / 1000, each.get("tdur", 0) / 1000)
        for each in trace
        if each["name"] == "RunTask" and "dur" in each and (each["pid"], each["tid"]) in mains
    ]
    assert found, "the trace has no tasks"
    return found


async def main() -> int:
    """Exit code."""
    executable = chromium.find()
    if executable is None:
        sys.stderr.write(f"{chromium.MISSING}\n")
        return 2
    longest: list[tuple[float, float]] = []
    async with (
        Room.open({"limits": LIMITS}) as room,
        chromium.running(executable) as browser,
    ):
        await fill(room)
        for run in range(RUNS):
            found = await scroll(browser, room)
            clock, processor = (sorted(each, reverse=True) for each in zip(*found, strict=True))
            longest.append((clock[0], processor[0]))
            by_clock, by_processor = (
                " ".join(f"{ms:.0f}" for ms in each[:SHOWN]) for each in (clock, processor)
            )
            sys.stdout.write(f"run {run + 1}, ms: {by_clock}; of the processor: {by_processor}\n")
    wall, busy = (statistics.median(each) for each in zip(*longest, strict=True))
    sys.stdout.write(f"median of the longest: {wall:.0f} ms, {busy:.0f} ms of the processor\n")
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
