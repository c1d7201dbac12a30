"""Runs the JavaScript tests of the page's modules, all in one page."""

from __future__ import annotations

from pathlib import Path

from playwright.async_api import Page, Route

__all__ = ["JS", "failures"]

JS = Path(__file__).parents[1] / "js"
_STATIC = Path(__file__).parents[3] / "hubbub" / "web" / "static"
_ORIGIN = "http://localhost"
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types dompurify"
)
_RUN = """async (files) => {
    const {run} = await import('/js/harness.js');
    const results = {};
    for (const file of files) {
        await import(`/js/${file}`);
        results[file] = await run();
    }
    return results;
}"""


async def failures(page: Page) -> tuple[int, list[str]]:
    """The number of tests, and the failures."""
    await page.route(f"{_ORIGIN}/**", _serve)
    await page.goto(f"{_ORIGIN}/")
    ran: dict[str, list[tuple[str, str | None]]] = await page.evaluate(
        _RUN, sorted(file.name for file in JS.glob("*.test.js"))
    )
    assert all(ran.values()), [file for file, results in ran.items() if not results]
    results = [(f"{file}: {name}", why) for file, each in ran.items() for name, why in each]
    return len(results), [f"{name}\n{why}" for name, why in results if why is not None]


async def _serve(route: Route) -> None:
    """Serve files below /static/ and /js/, and an empty page, without a server."""
    _, _, path = route.request.url.removeprefix(_ORIGIN).partition("/")
    place, _, name = path.partition("?")[0].partition("/")
    file = {"static": _STATIC, "js": JS}.get(place, Path()) / name
    if not path:
        page = "<!doctype html><title>tests</title>"
        policy = {"Content-Security-Policy": _POLICY}
        await route.fulfill(body=page, content_type="text/html", headers=policy)
    else:
        kind = "text/css" if file.suffix == ".css" else "text/javascript"
        body = file.read_text(encoding="utf-8")
        await route.fulfill(body=body, content_type=f"{kind}; charset=utf-8")
