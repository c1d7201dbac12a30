"""Tests of the page's modules, written in JavaScript and run in the browser."""

from __future__ import annotations

import json
import re
from pathlib import Path

from playwright.async_api import Browser, Route

from tests.browser.support.complaints import Complaints

__all__ = ["JS", "STATIC", "names", "outcomes"]

JS = Path(__file__).parents[1] / "js"
STATIC = Path(__file__).parents[3] / "hubbub" / "web" / "static"
_ORIGIN = "http://localhost"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
_TEST = re.compile(r'^test\(\s*("(?:[^"\\]|\\.)*")', re.MULTILINE)
_TYPES = {".js": "text/javascript", ".css": "text/css"}


def names(file: Path) -> list[str]:
    """The tests in a file, in order; they stand at the beginning of a line."""
    return [str(json.loads(name)) for name in _TEST.findall(file.read_text(encoding="utf-8"))]


async def outcomes(browser: Browser, file: Path) -> dict[str, str | None]:
    """Runs a file: by test what went wrong, or None."""
    async with await browser.new_context() as context:
        complaints = Complaints(context)
        await complaints.listen()
        await context.route(f"{_ORIGIN}/**", _serve)
        page = await context.new_page()
        await page.goto(f"{_ORIGIN}/")
        results = await page.evaluate(
            "(file) => import(file).then(() => import('/js/harness.js')).then((it) => it.run())",
            f"/js/{file.name}",
        )
        complaints.check()
    return dict(results)


async def _serve(route: Route) -> None:
    """Files below /static/ and /js/, and an empty page; no server is needed for that."""
    _, _, path = route.request.url.removeprefix(_ORIGIN).partition("/")
    room, _, name = path.partition("?")[0].partition("/")
    folder = {"static": STATIC, "js": JS}.get(room)
    if not path:
        await route.fulfill(
            body="<!doctype html><title>tests</title>",
            content_type="text/html",
            headers={"Content-Security-Policy": _POLICY},
        )
    elif folder is None or not (folder / name).is_file():
        await route.fulfill(status=404, body=f"there is no {path}")
    else:
        kind = _TYPES.get(Path(name).suffix, "text/plain")
        body = (folder / name).read_text(encoding="utf-8")
        await route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")
