"""The Chromium that tests drive: the machine's own, never a download of playwright's.

`python -m tests.browser.support.chromium` installs it where that may be done without asking
(Debian's package, as root), and otherwise says in one line how to. It never fails: without a
browser the browser tests are skipped, with that same line as the reason. The shell without windows
is preferred: it takes a third of the time for each new context.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tests.packages import apt_get

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["MISSING", "find", "install", "running"]

MISSING = (
    "no Chromium: install it (on Debian `apt-get install chromium-headless-shell`), or name one "
    "with CHROMIUM=/path/to/it; the browser tests are skipped"
)
_NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
_PLACES = ("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",)
_PACKAGES = ("chromium-headless-shell", "fonts-dejavu-core", "fonts-noto-color-emoji")
_UPDATE_S = 60
_INSTALL_S = 300


def find() -> str | None:
    """Path of the browser to use, None if there is none."""
    if named := os.environ.get("CHROMIUM"):
        path = shutil.which(named)
        return path and os.path.abspath(path)
    found = (shutil.which(name) for name in (*_NAMES, *_PLACES))
    return next((path for path in found if path is not None), None)


def install() -> None:
    """Install a browser if there is none and no questions are needed."""
    allowed = os.geteuid() == 0 and shutil.which("apt-get") and not os.environ.get("CHROMIUM")
    if find() is None and allowed:
        sys.stderr.write("Installing Chromium for the browser tests (once) ...\n")
        apt_get("update", timeout=_UPDATE_S)
        apt_get("install", "-y", "--no-install-recommends", *_PACKAGES, timeout=_INSTALL_S)
    if find() is None:
        sys.stderr.write(f"{MISSING}\n")


@asynccontextmanager
async def running(executable: str) -> AsyncIterator[Browser]:
    """A headless browser without a profile."""
    from playwright.async_api import async_playwright  # slow, and not needed for `install`

    arguments = [
        "--disable-dev-shm-usage",  # containers have 64 MiB there
        "--disable-gpu",
        "--force-color-profile=srgb",
        "--process-per-site",  # tabs share compiled scripts
    ]
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")  # Chromium refuses to start as root with one
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            yield browser
        finally:
            await browser.close()


if __name__ == "__main__":
    install()
