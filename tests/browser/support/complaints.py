"""Errors that a browser reports while a test runs."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from playwright.async_api import BrowserContext, ConsoleMessage, Request, Response, WebError

__all__ = ["Complaints"]

_REPORT_VIOLATIONS = """
document.addEventListener('securitypolicyviolation', (event) => {
  console.error(`CSP ${event.effectiveDirective} forbids ${event.blockedURI} ` +
    `(${event.sourceFile}:${event.lineNumber} ${event.sample})`);
});
"""
_LOCAL = ("data", "blob", "about")


class Complaints:
    """Errors of the console, uncaught exceptions, violations of the content security policy,
    failed requests, and requests to other hosts, from all pages of a context."""

    def __init__(self, context: BrowserContext):
        self._context = context
        self._heard: list[str] = []
        self._expected: list[re.Pattern[str]] = []

    async def listen(self) -> None:
        """Start to listen; call it before the first page opens."""
        context = self._context
        await context.add_init_script(_REPORT_VIOLATIONS)
        context.on("console", self._on_console)
        context.on("weberror", self._on_error)
        context.on("request", self._on_request)
        context.on("response", self._on_response)

    def forget(self) -> None:
        """Forget everything for the next test."""
        self._heard.clear()
        self._expected.clear()

    def expect(self, pattern: str) -> None:
        """Allow errors that match, earlier ones included."""
        self._expected.append(re.compile(pattern))

    def unexpected(self) -> list[str]:
        """The unexpected errors, in order."""
        return [text for text in self._heard if not any(p.search(text) for p in self._expected)]

    def check(self) -> None:
        """Raises AssertionError with all unexpected errors."""
        found = self.unexpected()
        assert not found, "the browser complains:\n" + "\n".join(found)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location
            where = f" ({place['url']}:{place['lineNumber']})" if place.get("url") else ""
            self._heard.append(f"console {message.type}: {message.text}{where}")

    def _on_error(self, error: WebError) -> None:
        self._heard.append(f"uncaught: {error.error.stack or error.error.message}")

    def _on_request(self, request: Request) -> None:
        url = urlsplit(request.url)
        if url.scheme not in _LOCAL and url.hostname not in ("127.0.0.1", "localhost"):
            self._heard.append(f"another host is asked: {request.url}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self._heard.append(f"{response.status} for {response.url}")
