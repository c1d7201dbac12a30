"""Audits of the current state of a page with axe-core."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any  # axe's findings

from playwright.async_api import Page

__all__ = ["audit", "problems"]

# `preload` would load the style sheets again, and look elsewhere for those that they import.
_RUN = """([without, only]) => axe.run(without ? {exclude: [[without]]} : document, {
    resultTypes: ['violations'], preload: false, ...(only.length && {runOnly: only}),
}).then((found) => found.violations)"""


@cache
def _axe() -> str:
    """Playwright's evaluation is exempt from the page's policy; a script element is not."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


async def problems(page: Page, *only: str, without: str = "") -> str:
    """The serious and critical findings as text; by the rules in `only`, or by all rules. Leaves
    out the elements that match `without`."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_axe())
    found: list[dict[str, Any]] = await page.evaluate(_RUN, [without, only])
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return "\n".join(map(_described, grave))


async def audit(page: Page) -> None:
    """Raises AssertionError if there is a serious or critical finding."""
    grave = await problems(page)
    assert not grave, f"{page.url}:\n{grave}"


def _described(finding: dict[str, Any]) -> str:
    lines = [f"{finding['impact']}: {finding['help']} ({finding['id']})"]
    for node in finding["nodes"]:
        lines += [f"  {node['html'][:300]}", f"    {' '.join(node['failureSummary'].split())}"]
    return "\n".join(lines)
