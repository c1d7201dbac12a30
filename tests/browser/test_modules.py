"""Each test in js/*.test.js as a test of its own; see js/harness.js for how they are written."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser

from tests.browser.support.modules import JS, names, outcomes

FILES = sorted(JS.glob("*.test.js"))
_done: dict[Path, dict[str, str | None]] = {}


async def run(browser: Browser, file: Path) -> dict[str, str | None]:
    """A file runs once, whichever of its tests comes first."""
    if file not in _done:
        _done[file] = await outcomes(browser, file)
    return _done[file]


@pytest.mark.parametrize(
    ("file", "name"),
    [
        pytest.param(file, name, id=f"{file.name.partition('.')[0]}: {name}")
        for file in FILES
        for name in names(file)
    ],
)
async def test_in_javascript(browser: Browser, file: Path, name: str) -> None:
    problem = (await run(browser, file))[name]
    assert problem is None, problem


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.name))
async def test_every_javascript_test_is_reported(browser: Browser, file: Path) -> None:
    assert names(file) == list(await run(browser, file)), (
        "`test(` begins a line, its name in quotes"
    )
