"""What the page costs: processor time of its scripts, long tasks, memory, bytes transferred.

Times are those of the page's main thread (what it computed, not what it waited), so that other
load on the machine does not count. They come from a trace, as DevTools' Performance panel has them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any  # playwright hands out the browser's events as they come

from playwright.async_api import CDPSession, Page
from pydantic import BaseModel

from hubbub.ids import new_ulid

__all__ = ["Cost", "Traffic", "heap_bytes", "measured", "traffic"]

_CATEGORIES = [
    "devtools.timeline",
    "disabled-by-default-devtools.timeline",  # the tasks
    "v8",
    "blink.user_timing",
]
_SCRIPTING = frozenset(
    (
        "FunctionCall", "EvaluateScript", "v8.evaluateModule", "RunMicrotasks", "v8.compile",
        "v8.compileModule", "v8.run", "EventDispatch", "TimerFire", "FireAnimationFrame",
        "FireIdleCallback", "WebSocketReceive", "MinorGC", "MajorGC", "V8.GCScavenger",
    )
)  # fmt: skip
_RENDERING = frozenset(
    ("Layout", "UpdateLayoutTree", "ParseHTML", "PrePaint", "Paint", "Layerize", "HitTest")
)
"""What scripts may cause in between and is not scripting."""
_TASK = "RunTask"
LONG_MS = 50.0


class _Event(BaseModel):
    """A trace event; times in microseconds."""

    name: str
    ph: str
    pid: int
    tid: int
    ts: float = 0.0
    dur: float = 0.0
    """By the wall's clock: for what lies within what."""
    tdur: float = 0.0
    """Of the thread's processor time."""


class _Trace(BaseModel):
    traceEvents: list[_Event]


@dataclass
class Cost:
    """Filled in when the measured context has ended; milliseconds of processor time."""

    scripting: float = 0.0
    """Of all scripts, without the layout that they cause."""
    rendering: float = 0.0
    """Styles, layout, paint."""
    tasks: Sequence[float] = field(default_factory=list)
    """Each task of the main thread, the longest first."""

    @property
    def long_tasks(self) -> Sequence[float]:
        """Those over 50 ms."""
        return [task for task in self.tasks if task > LONG_MS]

    def __str__(self) -> str:
        longest = ", ".join(f"{task:.1f}" for task in self.tasks[:3])
        return (
            f"scripting {self.scripting:.1f} ms, rendering {self.rendering:.1f} ms, "
            f"longest tasks {longest} ms"
        )


@asynccontextmanager
async def measured(page: Page) -> AsyncIterator[Cost]:
    """What the page's main thread does inside the context. One at a time per browser."""
    browser = page.context.browser
    assert browser is not None
    cost, mark = Cost(), f"measured {new_ulid()}"
    await browser.start_tracing(page=page, categories=_CATEGORIES)
    try:
        yield cost
    finally:
        # The mark stands in the trace on the page's thread, which nothing else in there names.
        await page.evaluate("(name) => void performance.mark(name)", mark)
        trace = _Trace.model_validate_json(await browser.stop_tracing())
    marked = next(event for event in trace.traceEvents if event.name == mark)
    home = (marked.pid, marked.tid)
    _fill(cost, [e for e in trace.traceEvents if e.ph == "X" and (e.pid, e.tid) == home])


def _fill(cost: Cost, events: list[_Event]) -> None:
    cost.tasks = sorted((e.tdur / 1000 for e in events if e.name == _TASK), reverse=True)
    spent = {_SCRIPTING: 0.0, _RENDERING: 0.0}
    around: list[tuple[float, frozenset[str]]] = []
    for event in sorted(events, key=lambda e: (e.ts, -e.dur)):
        kind = next((names for names in spent if event.name in names), None)
        if kind is None:
            continue
        while around and around[-1][0] <= event.ts:
            around.pop()
        if around:
            spent[around[-1][1]] -= event.tdur
        spent[kind] += event.tdur
        around.append((event.ts + event.dur, kind))
    cost.scripting, cost.rendering = spent[_SCRIPTING] / 1000, spent[_RENDERING] / 1000


async def heap_bytes(page: Page) -> int:
    """What the page's scripts still hold after a thorough garbage collection."""
    session = await page.context.new_cdp_session(page)
    try:
        for _ in range(3):  # what finalizers let go of goes with the next one
            await session.send("HeapProfiler.collectGarbage")
        usage = await session.send("Runtime.getHeapUsage")
    finally:
        await session.detach()
    return int(usage["usedSize"])


class Traffic:
    """Bytes as they came over the network, headers included."""

    def __init__(self, session: CDPSession):
        self.by_url: dict[str, int] = {}
        self.frames = 0
        """What came in WebSocket messages."""
        self._session, self._urls = session, dict[str, str]()

    @property
    def files(self) -> int:
        """All but WebSocket messages."""
        return sum(self.by_url.values())

    @property
    def total(self) -> int:
        return self.files + self.frames

    def __str__(self) -> str:
        largest = sorted(self.by_url.items(), key=lambda pair: -pair[1])
        lines = [f"{size:8} {url}" for url, size in largest]
        sums = [f"{self.frames:8} in WebSocket messages", f"{self.total:8} in all"]
        return "\n".join(lines + sums)

    async def begin(self) -> None:
        self._session.on("Network.responseReceived", self._on_response)
        self._session.on("Network.loadingFinished", self._on_finished)
        self._session.on("Network.webSocketFrameReceived", self._on_frame)
        await self._session.send("Network.enable")

    async def settled(self) -> None:
        """Returns when all that the browser has received by now is counted."""
        await self._session.send("Network.enable")  # its answer comes after what was before it

    def _on_response(self, told: dict[str, Any]) -> None:
        self._urls[told["requestId"]] = told["response"]["url"]

    def _on_finished(self, told: dict[str, Any]) -> None:
        url = self._urls.get(told["requestId"], "?")
        self.by_url[url] = self.by_url.get(url, 0) + int(told["encodedDataLength"])

    def _on_frame(self, told: dict[str, Any]) -> None:
        self.frames += len(told["response"]["payloadData"].encode())


async def traffic(page: Page) -> Traffic:
    """From now on counts what the page receives."""
    counted = Traffic(await page.context.new_cdp_session(page))
    await counted.begin()
    return counted
