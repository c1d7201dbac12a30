"""axe-core looks at a page as it stands."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from playwright.async_api import Page
from pydantic import BaseModel, TypeAdapter

__all__ = ["Finding", "audit", "findings"]

_GRAVE = ("serious", "critical")


class Node(BaseModel):
    """An element that a rule objects to."""

    html: str
    target: list[str | list[str]]
    failureSummary: str = ""


class Finding(BaseModel):
    """A rule and what it objects to."""

    id: str
    impact: str | None = None
    help: str
    nodes: list[Node]

    def __str__(self) -> str:
        lines = [f"{self.impact}: {self.help} ({self.id})"]
        for node in self.nodes:
            why = " ".join(node.failureSummary.split())
            lines += [f"  {node.html[:300]}", f"    {why}"]
        return "\n".join(lines)


_Findings = TypeAdapter(list[Finding])


@cache
def _axe() -> str:
    """Playwright's evaluation is not bound by the page's policy, a script element would be."""
    return files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


async def findings(page: Page, within: str = "html") -> list[Finding]:
    """All that axe finds in the element that the selector `within` names, the gravest first."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(_axe())
    found = await page.evaluate(
        # It would load the style sheets again, and look for those that they import elsewhere.
        "(within) => axe.run(within, {resultTypes: ['violations'], preload: false})"
        ".then((found) => found.violations)",
        within,
    )
    order = ("critical", "serious", "moderate", "minor", None)
    return sorted(_Findings.validate_python(found), key=lambda each: order.index(each.impact))


async def audit(page: Page, within: str = "html") -> None:
    """Raises AssertionError if there is a serious or critical finding."""
    grave = [each for each in await findings(page, within) if each.impact in _GRAVE]
    assert not grave, f"{page.url}:\n" + "\n".join(map(str, grave))
